"""Timeline figures of one rank's GPU work: duplicates, overruns, busy time and span; pure.

Everything is said of kernels; copies and fills run beside them on copy engines. Events mostly come
in time order, so each stream is checked in C first and sorted only when it has to be.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, islice, repeat
from operator import add, le, lt, sub

from agent.core.kernels import ClippedTotal
from agent.traces.collect import KernelColumns
from agent.traces.events import KERNEL
from agent.traces.numbers import packed

LEGAL_OVERLAP_NS = 5_000
"""Programmatic dependent launch lets neighbours on a stream overlap by under 5 us each."""

_PLAUSIBLE_GAP_NS = 1_000_000_000
_FEW_STREAMS = 12
_NO_TIME = 255

_Place = tuple[int, int, int]
"""Device, stream and kind of work."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Figures over the events that have a usable time.

    Attributes:
        duplicates: positions of events that repeat an earlier one in everything.
        unplaced: events without a usable time.
        origin_ns: first start of any GPU work.
        span_ns, busy_ns: last end minus first start of kernels; their union per device, summed.
        widest_gap_ns: the longest time in which a device did nothing.
        clipped: kernels that run past the next of their stream by more than is legal.
    """

    duplicates: frozenset[int] = frozenset()
    unplaced: int = 0
    origin_ns: int = 0
    span_ns: int = 0
    busy_ns: int = 0
    widest_gap_ns: int = 0
    clipped: ClippedTotal = field(default_factory=ClippedTotal)


@dataclass(frozen=True, slots=True)
class _Line:
    """Starts and ends of some events in time order."""

    starts: array[int]
    ends: array[int]


def measure(kernels: KernelColumns, *, block: int = 16_384) -> Timeline:
    """Measure the timeline of one rank; without `work` in the columns, all events are kernels.

    Streams of a device are merged `block` events at a time, so that memory stays bounded.
    """
    starts = kernels.start_ns
    usable = _usable(starts, kernels.duration_ns, kernels.timeless)
    unplaced = usable.count(0)
    if unplaced == len(starts):
        return Timeline(unplaced=unplaced)
    origin = min(compress(starts, usable)) if unplaced else min(starts)
    devices: dict[int, list[_Line]] = {}
    duplicates: set[int] = set()
    overruns = excess = 0
    for group in _groups(kernels, usable):
        line, repeated = _line(kernels, group)
        duplicates.update(repeated)
        if group.is_kernels:
            devices.setdefault(group.device, []).append(line)
            n_over, n_excess = _overruns(line)
            overruns += n_over
            excess += n_excess
    lines = [line for of_device in devices.values() for line in of_device]
    first = min((line.starts[0] for line in lines), default=origin)
    last = max((max(line.ends) for line in lines), default=first)
    busy = [_busy(of_device, block) for of_device in devices.values()]
    return Timeline(
        frozenset(duplicates),
        unplaced,
        origin,
        span_ns=last - first,
        busy_ns=sum(ns for ns, _ in busy),
        widest_gap_ns=max((gap for _, gap in busy), default=0),
        clipped=ClippedTotal(overruns, excess),
    )


def _usable(starts: Sequence[int], durations: Sequence[int], timeless: Sequence[int]) -> bytes:
    """Tell for each event whether it has a usable time.

    A time of 0 is the profiler's "no stamp", unless the events really begin there.
    """
    if 0 not in starts:
        return b"\1" * len(starts)
    earliest = min(filter(None, starts), default=0)
    begins_at_zero = earliest <= _PLAUSIBLE_GAP_NS
    usable = bytearray(
        start != 0 or (begins_at_zero and duration > 0)
        for start, duration in zip(starts, durations, strict=True)
    )
    for position in timeless:
        usable[position] = 0
    return bytes(usable)


@dataclass(frozen=True, slots=True)
class _Group:
    """The events of one stream that do one kind of work.

    `chosen` has a 1 for each event that belongs to it; with many streams it is their positions.
    """

    device: int
    is_kernels: bool
    chosen: bytes | array[int]

    def positions(self) -> Iterable[int]:
        """Give the positions of its events, in file order."""
        if isinstance(self.chosen, bytes):
            return compress(range(len(self.chosen)), self.chosen)
        return self.chosen

    def column(self, values: array[int]) -> array[int]:
        """Give a column of its events alone."""
        if not isinstance(self.chosen, bytes):
            return packed(map(values.__getitem__, self.chosen))
        return packed(compress(values, self.chosen))


def _groups(kernels: KernelColumns, usable: bytes) -> Iterator[_Group]:
    """Group the events with a usable time by device, stream and kind of work."""
    numbers = {place: number for number, place in enumerate(sorted(set(_places(kernels))))}
    if len(numbers) == 1 and 0 not in usable:
        ((device, _, work),) = numbers
        yield _Group(device, work == KERNEL, usable)
    elif len(numbers) <= _FEW_STREAMS:
        yield from _by_mask(kernels, usable, numbers)
    else:
        yield from _by_position(kernels, usable, numbers)


def _places(kernels: KernelColumns) -> Iterator[_Place]:
    works = kernels.work or repeat(KERNEL)
    return zip(kernels.device, kernels.stream, works, strict=False)


def _by_mask(
    kernels: KernelColumns, usable: bytes, numbers: Mapping[_Place, int]
) -> Iterator[_Group]:
    codes = bytes(map(numbers.__getitem__, _places(kernels)))
    if 0 in usable:
        in_place = zip(codes, usable, strict=True)
        codes = bytes(code if has_time else _NO_TIME for code, has_time in in_place)
    for (device, _, work), number in numbers.items():
        chosen = codes.translate(bytes(number) + b"\1" + bytes(255 - number))
        if 1 in chosen:
            yield _Group(device, work == KERNEL, chosen)


def _by_position(
    kernels: KernelColumns, usable: bytes, numbers: Mapping[_Place, int]
) -> Iterator[_Group]:
    members = [array("I") for _ in numbers]
    for position, place in enumerate(_places(kernels)):
        if usable[position]:
            members[numbers[place]].append(position)
    for (device, _, work), number in numbers.items():
        if members[number]:
            yield _Group(device, work == KERNEL, members[number])


def _line(kernels: KernelColumns, group: _Group) -> tuple[_Line, Sequence[int]]:
    """Give the events of a stream in time order, and the positions of those that are repeats.

    Of two that start together the shorter comes first.
    """
    starts = group.column(kernels.start_ns)
    durations = group.column(kernels.duration_ns)
    if all(map(lt, starts, islice(starts, 1, None))):
        return _Line(starts, packed(map(add, starts, durations))), ()
    repeats = _duplicates(kernels, group, starts)
    dropped = set(repeats)
    pairs = sorted(
        (start, start + duration)
        for start, duration, at in zip(starts, durations, group.positions(), strict=True)
        if at not in dropped
    )
    in_order = array("q", [start for start, _ in pairs])
    return _Line(in_order, array("q", [end for _, end in pairs])), repeats


def _duplicates(kernels: KernelColumns, group: _Group, starts: array[int]) -> Sequence[int]:
    """Give the positions that repeat an earlier event of the stream in every respect."""
    repeated = _repeated_values(starts)
    seen: set[tuple[int, int, int, int]] = set()
    found: list[int] = []
    for start, position in zip(starts, group.positions(), strict=True) if repeated else ():
        if start in repeated:
            identity = (
                start,
                kernels.duration_ns[position],
                kernels.name[position],
                kernels.correlation[position],
            )
            if identity in seen:
                found.append(position)
            seen.add(identity)
    return found


def _repeated_values(values: array[int]) -> set[int]:
    """Give the values that occur more than once."""
    in_order = values if all(map(le, values, islice(values, 1, None))) else sorted(values)
    neighbours = zip(in_order, islice(in_order, 1, None), strict=False)
    return {value for value, following in neighbours if value == following}


def _overruns(line: _Line) -> tuple[int, int]:
    """Count events that run past the start of the next of their stream by far."""
    past = map(sub, line.ends, islice(line.starts, 1, None))
    far = [ns for ns in past if ns > LEGAL_OVERLAP_NS]
    return len(far), sum(far)


def _busy(lines: Sequence[_Line], block: int) -> tuple[int, int]:
    """Give the union of the intervals of one device (its span without gaps), and the widest gap.

    Nothing runs before the start number k just when the k earliest ends lie before it: with starts
    and ends sorted each for itself, the gaps are between neighbours.
    """
    until = first = min(line.starts[0] for line in lines)
    idle = widest = 0
    for starts, ends in _in_time(lines, block):
        n_before = bisect_right(ends, until)
        ends[:n_before] = [until] * n_before
        gaps = [gap for gap in map(sub, starts, chain((until,), ends)) if gap > 0]
        idle += sum(gaps)
        widest = max(widest, max(gaps, default=0))
        until = max((until, *ends[-1:]))
    return until - first - idle, widest


def _in_time(lines: Sequence[_Line], size: int) -> Iterator[tuple[list[int], list[int]]]:
    """Merge the streams of a device by start, a bounded block at a time; starts and ends sorted."""
    at = [0] * len(lines)
    while True:
        bounds = [
            line.starts[done + size]
            for line, done in zip(lines, at, strict=True)
            if done + size < len(line.starts)
        ]
        starts: list[int] = []
        ends: list[int] = []
        for number, line in enumerate(lines):
            done = at[number]
            stop = bisect_right(line.starts, min(bounds), done) if bounds else len(line.starts)
            starts += line.starts[done:stop]
            ends += line.ends[done:stop]
            at[number] = stop
        starts.sort()
        ends.sort()
        yield starts, ends
        if not bounds:
            return
