"""What is kept of the events of a rank while its file is read: columns of integers.

Ids and durations nearly always fit in 32 bits: such a column begins narrow and is widened once a
number does not fit. What is asked for once is packed until then.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from agent.traces.packed import PackedColumn
from agent.traces.steps import Annotation
from agent.traces.vectors import Vector

UNKNOWN: Final = -1
COUNTED, GRAPH = 1, 2
"""Flags of a launch: its name says that it puts work on the GPU; it replays a graph."""

_NARROW: Final = np.iinfo(np.int32)
_NarrowName = Literal["duration_ns", "correlation", "external_id"]


@dataclass(slots=True)
class KernelColumns:
    """One entry per GPU event, in file order; `start_ns` 0 where the file has no usable time."""

    name: array[int] = field(default_factory=lambda: array("I"))
    work: array[int] = field(default_factory=lambda: array("B"))
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    duration_ns: array[int] = field(default_factory=lambda: array("q"))
    device: array[int] = field(default_factory=lambda: array("i"))
    stream: array[int] = field(default_factory=lambda: array("q"))
    correlation: array[int] = field(default_factory=lambda: array("q"))
    external_id: array[int] = field(default_factory=lambda: array("q"))
    timeless: array[int] = field(default_factory=lambda: array("I"))
    """Positions of events whose time stamp is no usable number."""


@dataclass(slots=True)
class PackedKernels:
    """As `KernelColumns`, while a file is read: what is asked for once is packed until then."""

    work: array[int] = field(default_factory=lambda: array("B"))
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    duration_ns: array[int] = field(default_factory=lambda: array("i"))
    timeless: array[int] = field(default_factory=lambda: array("I"))
    names: PackedColumn = field(default_factory=PackedColumn)
    devices: PackedColumn = field(default_factory=PackedColumn)
    streams: PackedColumn = field(default_factory=PackedColumn)
    correlations: PackedColumn = field(default_factory=PackedColumn)
    external_ids: PackedColumn = field(default_factory=PackedColumn)

    @property
    def name(self) -> array[int]:
        """Unpack the names."""
        return self.names.unpacked()

    @property
    def device(self) -> array[int]:
        """Unpack the devices."""
        return self.devices.unpacked()

    @property
    def stream(self) -> array[int]:
        """Unpack the streams."""
        return self.streams.unpacked()

    @property
    def correlation(self) -> array[int]:
        """Unpack the correlations."""
        return self.correlations.unpacked()

    @property
    def external_id(self) -> array[int]:
        """Unpack the external ids."""
        return self.external_ids.unpacked()


Kernels = KernelColumns | PackedKernels
"""Columns of GPU events to be read, one by one; a packed one is unpacked each time it is asked."""


@dataclass(slots=True)
class LaunchColumns:
    """One entry per runtime call that may put work on the GPU."""

    correlation: array[int] = field(default_factory=lambda: array("q"))
    external_id: array[int] = field(default_factory=lambda: array("q"))
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    thread: array[int] = field(default_factory=lambda: array("I"))
    flags: array[int] = field(default_factory=lambda: array("B"))


@dataclass(frozen=True, slots=True)
class SpanTimes:
    """When spans began and ended, and on which thread."""

    start_ns: array[int]
    end_ns: array[int]
    thread: array[int]


@dataclass(slots=True)
class SpanColumns:
    """One entry per operator or Python frame; `what` indexes the file's operators or frames.

    All are packed: they are asked for once, or never where ids name the operators.
    """

    what: PackedColumn = field(default_factory=PackedColumn)
    external_id: PackedColumn = field(default_factory=PackedColumn)
    start_ns: PackedColumn = field(default_factory=PackedColumn)
    end_ns: PackedColumn = field(default_factory=PackedColumn)
    thread: PackedColumn = field(default_factory=PackedColumn)

    def times(self) -> SpanTimes:
        """Unpack the times; keep them as long as they are needed, and no longer."""
        return SpanTimes(self.start_ns.unpacked(), self.end_ns.unpacked(), self.thread.unpacked())


@dataclass(slots=True)
class RankColumns:
    """All that is kept of one rank; `key` is the merged file's prefix (`TP00-DP00`) or ""."""

    key: str
    kernels: Kernels = field(default_factory=KernelColumns)
    launches: LaunchColumns = field(default_factory=LaunchColumns)
    operators: SpanColumns = field(default_factory=SpanColumns)
    frames: SpanColumns = field(default_factory=SpanColumns)
    steps: list[Annotation] = field(default_factory=list)
    negative: int = 0
    no_time: int = 0
    shapes: int = 0


@dataclass(slots=True)
class FileRank(RankColumns):
    """A rank of a Kineto file while it is read."""

    kernels: PackedKernels = field(default_factory=PackedKernels)
    launches: LaunchColumns = field(
        default_factory=lambda: LaunchColumns(correlation=_narrow(), external_id=_narrow())
    )


def _narrow() -> array[int]:
    return array("i")


def append(column: array[int], values: Sequence[int] | Vector) -> None:
    """Append a block of values: as an array they go in at once, in half the time of one by one.

    Those of a numpy array must fit the column's type: they are not looked at.

    Raises:
        OverflowError: another value is no number of the column's type.
    """
    if isinstance(values, np.ndarray):
        column.frombytes(values.astype(column.typecode).tobytes())
        return
    alike = isinstance(values, array) and values.typecode == column.typecode
    column.extend(values if alike else array(column.typecode, values))


def append_narrow(
    columns: PackedKernels | LaunchColumns, name: _NarrowName, values: Sequence[int] | Vector
) -> None:
    """Append a block of numbers to a column, and widen it to 64 bits where one needs them."""
    column: array[int] = getattr(columns, name)
    added = np.asarray(values, np.int64)
    is_narrow = not len(added) or _NARROW.min <= added.min() <= added.max() <= _NARROW.max
    if column.typecode == "i" and not is_narrow:
        column = array("q", column)
        setattr(columns, name, column)
    append(column, added)
