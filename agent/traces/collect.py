"""Events -> columns, one set per rank of a file.

Times are absolute integer nanoseconds of the file's own clock here. Names are interned at once;
nothing else of an event is kept. The loops are plain and flat because they see every event: see
`benchmarks/`.
"""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, Final

import numpy as np

from agent.traces.columns import (
    COUNTED,
    GRAPH,
    UNKNOWN,
    FileRank,
    SpanColumns,
    append,
    append_narrow,
)
from agent.traces.events import (
    ANNOTATION,
    FRAME,
    GPU_ANNOTATION,
    IGNORED,
    KERNEL,
    MEMCPY,
    MEMSET,
    OPERATOR,
    RUNTIME,
    Arguments,
    Event,
    kind_of,
    launches_graph,
    launches_work,
)
from agent.traces.halves import HALVES, pair_halves
from agent.traces.numbers import INT64_MAX, to_ns
from agent.traces.steps import Annotation, is_step
from agent.traces.times import all_to_ns
from agent.traces.vectors import Vector

_MERGED_PID: Final = re.compile(r"^\[(?P<rank>[^\]]+)\] *(?P<pid>.*)$", re.DOTALL)
_LAST_NUMBER: Final = re.compile(r"(-?\d+)\s*$")
_GROUP: Final = {
    KERNEL: KERNEL,
    MEMCPY: KERNEL,
    MEMSET: KERNEL,
    OPERATOR: OPERATOR,
    RUNTIME: RUNTIME,
    FRAME: FRAME,
    ANNOTATION: ANNOTATION,
    GPU_ANNOTATION: ANNOTATION,
}
"""Which kinds go into the same columns, in file order."""

_NOWHERE: Final = deque[Event](maxlen=0)
"""Takes the events that are of no kind we keep, and holds none."""

_COMPLETE: Final = "X"
"""The phase of an event with a start and a duration."""
_NO_ARGUMENTS: Final = Arguments()
_INT32_MAX: Final = (1 << 31) - 1
_MAX_DIGITS: Final = 40


class Interner:
    """Distinct values in order of appearance."""

    def __init__(self) -> None:
        self.ids: dict[Any, int] = {}

    def id(self, value: object) -> int:
        """Give the id of one value."""
        return self.ids.setdefault(value, len(self.ids))

    def all(self, values: Sequence[object]) -> list[int]:
        """Give the id of each value."""
        ids = self.ids
        try:
            return [ids[value] for value in values]
        except KeyError:
            for value in values:
                if value not in ids:
                    ids[value] = len(ids)
        return [ids[value] for value in values]


class Collector:
    """Takes blocks of events and keeps columns."""

    def __init__(self, *, context: bool = False) -> None:
        """Keep Python frames and shapes only with `context`."""
        self.context = context
        self.names = Interner()
        self.operators = Interner()
        self.frames = Interner()
        self.threads = Interner()
        self.ranks: dict[str, FileRank] = {}
        self.n_frames = 0
        self.unpaired = 0
        self.phased = False
        self._calls: dict[str, int] = {}
        self._halves: list[Event] = []
        self._found: dict[int, list[Event]] = {kind: [] for kind in _GROUP.values()}
        self._sinks: dict[str, Callable[[Event], None]] = {}
        self._adders: dict[int, Callable[[FileRank, list[Event]], None]] = {
            KERNEL: self._add_kernels,
            OPERATOR: self._add_operators,
            RUNTIME: self._add_launches,
            FRAME: self._add_frames,
            ANNOTATION: self._add_steps,
        }

    def take(self, events: Sequence[Event]) -> None:
        """Sort one block of events by kind and add them."""
        whole = [event for event in events if event.ph == _COMPLETE]
        self.phased |= bool(whole)
        if len(whole) < len(events):
            phases = {event.ph for event in events}
            self.phased |= phases != {""}
            if not HALVES.isdisjoint(phases):
                self._halves += [event for event in events if event.ph in HALVES]
        sink_of, unseen = self._sinks.get, self._sort_unseen
        for event in whole:
            sink_of(event.cat, unseen)(event)
        for kind, members in self._found.items():
            if members:
                self._add(self._adders[kind], members)
                members.clear()

    def finish(self) -> None:
        """Make complete events of what begins (`B`) and what ends (`E`), wherever it stood."""
        whole, open_ones = pair_halves(self._halves)
        self._halves = []
        self.unpaired = sum(kind_of(event.cat) != IGNORED for event in open_ones)
        self.take(whole)

    def rank(self, key: str) -> FileRank:
        """Give the columns of one rank."""
        if key not in self.ranks:
            self.ranks[key] = FileRank(key)
        return self.ranks[key]

    def flags_of(self, call: str) -> int:
        """Give the flags of a runtime call, or `UNKNOWN` for one that puts no work on the GPU."""
        if call not in self._calls:
            self._calls[call] = _launch_flags(call)
        return self._calls[call]

    def _sort_unseen(self, event: Event) -> None:
        """Sort the first event of a category, and remember where its like go."""
        kind = kind_of(event.cat)
        sink = _NOWHERE.append if kind == IGNORED else self._found[_GROUP[kind]].append
        self._sinks[event.cat] = sink
        sink(event)

    def _add(self, adder: Callable[[FileRank, list[Event]], None], events: list[Event]) -> None:
        if {type(event.pid) for event in events} == {int}:
            adder(self.rank(""), events)
            return
        parts: dict[str, list[Event]] = {}
        for event in events:
            parts.setdefault(_merged_key(event.pid), []).append(event)
        for key, members in parts.items():
            adder(self.rank(key), members)

    def _add_kernels(self, rank: FileRank, events: list[Event]) -> None:
        columns = rank.kernels
        args = _arguments(events)
        starts = _known_starts(rank, *all_to_ns([event.ts for event in events]))
        durations = _known_durations(rank, *all_to_ns([event.dur for event in events]))
        columns.names.append(self.names.all([event.name for event in events]))
        append(columns.work, _works(events))
        columns.start_ns.frombytes(starts.tobytes())
        append_narrow(columns, "duration_ns", durations)
        columns.devices.append(_devices(events, args))
        columns.streams.append(_streams(events, args))
        columns.correlations.append(_ids([arg.correlation for arg in args]))
        columns.external_ids.append(_external_ids(args))

    def _add_launches(self, rank: FileRank, events: list[Event]) -> None:
        calls = {name: self.flags_of(name) for name in {event.name for event in events}}
        events = [event for event in events if calls[event.name] != UNKNOWN]
        columns = rank.launches
        args = _arguments(events)
        starts, _ = all_to_ns([event.ts for event in events])
        columns.start_ns.frombytes(starts.tobytes())
        append_narrow(columns, "correlation", _ids([arg.correlation for arg in args]))
        append_narrow(columns, "external_id", _external_ids(args))
        append(columns.thread, self.threads.all([event.tid for event in events]))
        append(columns.flags, [calls[event.name] for event in events])

    def _add_operators(self, rank: FileRank, events: list[Event]) -> None:
        columns = rank.operators
        args = _arguments(events)
        types = [bytes(arg.input_type) for arg in args]
        rank.shapes += len(types) - types.count(b"")
        names = [event.name for event in events]
        dims = [bytes(arg.input_dims) for arg in args] if self.context else repeat(b"")
        columns.what.append(self.operators.all(list(zip(names, types, dims, strict=False))))
        columns.external_id.append(_external_ids(args))
        self._add_span(columns, events)

    def _add_frames(self, rank: FileRank, events: list[Event]) -> None:
        self.n_frames += len(events)
        if self.context:
            rank.frames.what.append(self.frames.all([event.name for event in events]))
            self._add_span(rank.frames, events)

    def _add_span(self, columns: SpanColumns, events: list[Event]) -> None:
        starts, _ = all_to_ns([event.ts for event in events])
        durations, _ = all_to_ns([event.dur for event in events])
        columns.start_ns.append(starts)
        columns.end_ns.append(starts + np.maximum(durations, 0))
        columns.thread.append(self.threads.all([event.tid for event in events]))

    def _add_steps(self, rank: FileRank, events: list[Event]) -> None:
        for event in [event for event in events if is_step(event.name)]:
            start, duration = to_ns(event.ts), to_ns(event.dur)
            if start is not None and duration is not None:
                on_gpu = kind_of(event.cat) == GPU_ANNOTATION
                stream = f"{event.pid} {event.tid}" if on_gpu else ""
                rank.steps.append(Annotation(start, _end(start, duration), event.name, stream))


def _works(events: list[Event]) -> Sequence[int]:
    cats = {event.cat for event in events}
    kinds = {cat: kind_of(cat) for cat in cats}
    if len(cats) == 1:
        return bytes(kinds.values()) * len(events)
    return [kinds[event.cat] for event in events]


def _arguments(events: list[Event]) -> list[Arguments]:
    args = [event.args for event in events]
    if None in args:
        return [_NO_ARGUMENTS if arg is None else arg for arg in args]
    return args  # type: ignore[return-value] # no None is in it


def _known_starts(rank: FileRank, starts: Vector, unusable: list[int]) -> Vector:
    first = len(rank.kernels.start_ns)
    rank.kernels.timeless.extend(first + at for at in unusable)
    rank.no_time += len(unusable)
    return starts


def _known_durations(rank: FileRank, durations: Vector, unusable: list[int]) -> Vector:
    rank.no_time += len(unusable)
    rank.negative += int(np.count_nonzero(durations < 0))
    return np.maximum(durations, 0)


def _end(start: int, duration: int) -> int:
    return min(start + max(0, duration), INT64_MAX)


def _launch_flags(call: str) -> int:
    if not launches_work(call):
        return UNKNOWN
    counted = COUNTED if "aunch" in call or "em" in call else 0
    return counted | (GRAPH if launches_graph(call) else 0)


def _merged_key(pid: int | str) -> str:
    found = _MERGED_PID.match(pid) if isinstance(pid, str) else None
    return found["rank"] if found else ""


def _external_ids(args: list[Arguments]) -> Sequence[int]:
    values = [arg.external_id for arg in args]
    if None in values:
        values = [
            arg.external_id_2021 if value is None else value
            for arg, value in zip(args, values, strict=True)
        ]
    return _ids(values)


def _ids(values: list[int | None]) -> Sequence[int]:
    try:
        return array("q", values)  # type: ignore[arg-type] # None is the TypeError below
    except (TypeError, OverflowError):
        return [UNKNOWN if value is None else _small(value, INT64_MAX) for value in values]


def _devices(events: list[Event], args: list[Arguments]) -> Sequence[int]:
    try:
        return array("i", [arg.device for arg in args])  # type: ignore[misc] # as in _ids
    except (TypeError, OverflowError):
        return [
            _small(_number(event.pid) if arg.device is None else arg.device, _INT32_MAX)
            for event, arg in zip(events, args, strict=True)
        ]


def _streams(events: list[Event], args: list[Arguments]) -> Sequence[int]:
    try:
        return array("q", [arg.stream for arg in args])  # type: ignore[misc] # as in _ids
    except (TypeError, OverflowError):
        return [
            _small(_number(event.tid) if arg.stream is None else arg.stream, INT64_MAX)
            for event, arg in zip(events, args, strict=True)
        ]


def _number(identity: int | str) -> int:
    """Give the number of `7`, `stream 7` or `[TP00] 2`."""
    if isinstance(identity, int):
        return identity
    found = _LAST_NUMBER.search(identity)
    digits = found.group(1) if found else ""
    return int(digits) if digits and len(digits) <= _MAX_DIGITS else UNKNOWN


def _small(value: int, limit: int) -> int:
    """Give a value that fits in a column of signed integers up to `limit`."""
    return value if ~limit <= value <= limit else UNKNOWN
