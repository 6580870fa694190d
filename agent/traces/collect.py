"""Events -> columns, one set per rank of a file.

Times are absolute integer nanoseconds of the file's own clock here. Names are interned at once;
nothing else of an event is kept. The loops are plain and flat because they see every event: see
`benchmarks/`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from agent.traces.events import (
    ANNOTATION,
    FRAME,
    GPU_ANNOTATION,
    IGNORED,
    KERNEL,
    MEMSET,
    OPERATOR,
    RUNTIME,
    Arguments,
    Event,
    kind_of,
    launches_graph,
    launches_work,
)
from agent.traces.numbers import INT64_MAX, all_to_ns, to_ns

UNKNOWN: Final = -1
COUNTED, GRAPH = 1, 2
"""Flags of a launch: its name says that it puts work on the GPU; it replays a graph."""

_MERGED_PID: Final = re.compile(r"^\[(?P<rank>[^\]]+)\] *(?P<pid>.*)$", re.DOTALL)
_LAST_NUMBER: Final = re.compile(r"(-?\d+)\s*$")
_STEP: Final = re.compile(r"^(?:ProfilerStep#|step\[)")
_NO_ARGUMENTS: Final = Arguments()
_INT32_MAX: Final = (1 << 31) - 1


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


@dataclass(slots=True)
class LaunchColumns:
    """One entry per runtime call that may put work on the GPU."""

    correlation: array[int] = field(default_factory=lambda: array("q"))
    external_id: array[int] = field(default_factory=lambda: array("q"))
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
    thread: array[int] = field(default_factory=lambda: array("I"))
    flags: array[int] = field(default_factory=lambda: array("B"))


@dataclass(slots=True)
class SpanColumns:
    """One entry per operator or Python frame; `what` indexes the file's operators or frames."""

    what: array[int] = field(default_factory=lambda: array("I"))
    external_id: array[int] = field(default_factory=lambda: array("q"))
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
    thread: array[int] = field(default_factory=lambda: array("I"))


@dataclass(slots=True)
class RankColumns:
    """All that is kept of one rank; `key` is the merged file's prefix (`TP00-DP00`) or ""."""

    key: str
    kernels: KernelColumns = field(default_factory=KernelColumns)
    launches: LaunchColumns = field(default_factory=LaunchColumns)
    operators: SpanColumns = field(default_factory=SpanColumns)
    frames: SpanColumns = field(default_factory=SpanColumns)
    steps: list[tuple[int, str, int, int]] = field(default_factory=list)
    negative: int = 0
    zero_time: int = 0
    no_time: int = 0
    shapes: int = 0


class Interner:
    """Distinct values in order of appearance."""

    def __init__(self) -> None:
        self.ids: dict[object, int] = {}

    def __call__(self, value: object) -> int:
        """Give the id of a value."""
        number = self.ids.get(value)
        if number is None:
            number = self.ids[value] = len(self.ids)
        return number


class Collector:
    """Takes blocks of events and keeps columns."""

    def __init__(self, *, context: bool = False) -> None:
        """Keep Python frames and shapes only with `context`."""
        self.context = context
        self.names = Interner()
        self.operators = Interner()
        self.frames = Interner()
        self.threads = Interner()
        self.ranks: dict[str, RankColumns] = {}
        self.n_frames = 0
        self.unpaired = 0
        self._kinds: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._open: dict[tuple[int | str, int | str], list[Event]] = {}
        self._orphans: list[Event] = []
        self._adders: dict[int, Callable[[RankColumns, list[Event]], None]] = {
            KERNEL: self._add_kernels,
            OPERATOR: self._add_operators,
            RUNTIME: self._add_launches,
            FRAME: self._add_frames,
            ANNOTATION: self._add_steps,
        }

    def take(self, events: Iterable[Event]) -> None:
        """Sort one block of events by kind and add them."""
        kinds = self._kinds
        found: dict[int, list[Event]] = {kind: [] for kind in self._adders}
        for event in events:
            kind = kinds.get(event.cat)
            if kind is None:
                kind = kinds[event.cat] = kind_of(event.cat)
            if event.ph == "X":
                if kind:
                    found[_GROUP[kind]].append(event)
            elif event.ph in ("B", "E"):
                self._pair(event)
        for kind, members in found.items():
            if members:
                self._add(kind, members)

    def finish(self) -> None:
        """Pair what begins and ends were left out of order."""
        rest = self._orphans + [event for stack in self._open.values() for event in stack]
        self._orphans, self._open = [], {}
        rest.sort(key=lambda event: (to_ns(event.ts) or 0, event.ph == "B"))
        for event in rest:
            self._pair(event)
        self.unpaired = sum(
            self._kind(event) != IGNORED for stack in self._open.values() for event in stack
        )

    def rank(self, key: str) -> RankColumns:
        """Give the columns of one rank."""
        if key not in self.ranks:
            self.ranks[key] = RankColumns(key)
        return self.ranks[key]

    def _kind(self, event: Event) -> int:
        return self._kinds.setdefault(event.cat, kind_of(event.cat))

    def _pair(self, event: Event) -> None:
        """Make one complete event of a `B` and its `E`, per thread, innermost first."""
        stack = self._open.setdefault((event.pid, event.tid), [])
        if event.ph == "B":
            stack.append(event)
            return
        if not stack:
            self._orphans.append(event)
            return
        begun = stack.pop()
        start, end = to_ns(begun.ts), to_ns(event.ts)
        if self._kind(begun) == IGNORED or start is None or end is None:
            return
        begun.ph = "X"
        begun.dur = _microseconds(end - start)
        if begun.args is None:
            begun.args = event.args
        self._add(_GROUP[self._kind(begun)], [begun])

    def _add(self, kind: int, events: list[Event]) -> None:
        adder = self._adders[kind]
        if all(type(event.pid) is int for event in events):
            adder(self.rank(""), events)
            return
        parts: dict[str, list[Event]] = {}
        for event in events:
            parts.setdefault(_merged_key(event.pid), []).append(event)
        for key, members in parts.items():
            adder(self.rank(key), members)

    def _add_kernels(self, rank: RankColumns, events: list[Event]) -> None:
        columns = rank.kernels
        names, kinds = self.names, self._kinds
        args = [event.args or _NO_ARGUMENTS for event in events]
        columns.name.extend([names(event.name) for event in events])
        columns.work.extend([kinds[event.cat] for event in events])
        columns.start_ns.extend(self._starts(rank, events))
        columns.duration_ns.extend(self._durations(rank, events))
        columns.device.extend(_devices(events, args))
        columns.stream.extend(_streams(events, args))
        columns.correlation.extend(_ids([arg.correlation for arg in args]))
        columns.external_id.extend(_external_ids(args))

    def _add_launches(self, rank: RankColumns, events: list[Event]) -> None:
        calls = self._calls
        for event in events:
            if event.name not in calls:
                calls[event.name] = _launch_flags(event.name)
        events = [event for event in events if calls[event.name] != UNKNOWN]
        columns = rank.launches
        args = [event.args or _NO_ARGUMENTS for event in events]
        starts = _times(events)
        columns.start_ns.extend(starts)
        columns.end_ns.extend(_ends(starts, events))
        columns.correlation.extend(_ids([arg.correlation for arg in args]))
        columns.external_id.extend(_external_ids(args))
        columns.thread.extend([self.threads(event.tid) for event in events])
        columns.flags.extend([calls[event.name] for event in events])

    def _add_operators(self, rank: RankColumns, events: list[Event]) -> None:
        columns = rank.operators
        operators = self.operators
        args = [event.args or _NO_ARGUMENTS for event in events]
        types = [bytes(arg.input_type) for arg in args]
        rank.shapes += len(types) - types.count(b"")
        if self.context:
            dims = [bytes(arg.input_dims) for arg in args]
            names = [(e.name, t, d) for e, t, d in zip(events, types, dims, strict=True)]
            columns.what.extend([operators(name) for name in names])
        else:
            columns.what.extend(
                [operators((e.name, t, b"")) for e, t in zip(events, types, strict=True)]
            )
        columns.external_id.extend(_external_ids(args))
        self._add_span(columns, events)

    def _add_frames(self, rank: RankColumns, events: list[Event]) -> None:
        self.n_frames += len(events)
        if self.context:
            rank.frames.what.extend([self.frames(event.name) for event in events])
            self._add_span(rank.frames, events)

    def _add_span(self, columns: SpanColumns, events: list[Event]) -> None:
        starts = _times(events)
        columns.start_ns.extend(starts)
        columns.end_ns.extend(_ends(starts, events))
        columns.thread.extend([self.threads(event.tid) for event in events])

    def _add_steps(self, rank: RankColumns, events: list[Event]) -> None:
        for event in events:
            if _STEP.match(event.name):
                start, duration = to_ns(event.ts), to_ns(event.dur)
                if start is not None and duration is not None:
                    kind = self._kinds[event.cat]
                    rank.steps.append((kind, event.name, start, start + max(0, duration)))

    @staticmethod
    def _starts(rank: RankColumns, events: list[Event]) -> Sequence[int]:
        starts = all_to_ns([event.ts for event in events])
        if None in starts:
            rank.no_time += starts.count(None)
            rank.zero_time += starts.count(0)
            return [start or 0 for start in starts]
        rank.zero_time += starts.count(0)
        return starts  # type: ignore[return-value] # no None is left

    @staticmethod
    def _durations(rank: RankColumns, events: list[Event]) -> Sequence[int]:
        durations = all_to_ns([event.dur for event in events])
        known: Sequence[int] = durations  # type: ignore[assignment] # None is taken out below
        if None in durations:
            rank.no_time += durations.count(None)
            known = [duration or 0 for duration in durations]
        if min(known) < 0:
            rank.negative += sum(duration < 0 for duration in known)
            known = [max(0, duration) for duration in known]
        return known


_GROUP: Final = {
    **dict.fromkeys(range(KERNEL, MEMSET + 1), KERNEL),
    OPERATOR: OPERATOR,
    RUNTIME: RUNTIME,
    FRAME: FRAME,
    ANNOTATION: ANNOTATION,
    GPU_ANNOTATION: ANNOTATION,
}


def _launch_flags(call: str) -> int:
    if not launches_work(call):
        return UNKNOWN
    counted = COUNTED if "aunch" in call or "em" in call else 0
    return counted | (GRAPH if launches_graph(call) else 0)


def _merged_key(pid: int | str) -> str:
    found = _MERGED_PID.match(pid) if isinstance(pid, str) else None
    return found["rank"] if found else ""


def _microseconds(ns: int) -> msgspec.Raw:
    sign = "-" if ns < 0 else ""
    return msgspec.Raw(f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}".encode())


def _times(events: list[Event]) -> list[int]:
    return [time or 0 for time in all_to_ns([event.ts for event in events])]


def _ends(starts: list[int], events: list[Event]) -> list[int]:
    durations = all_to_ns([event.dur for event in events])
    return [
        min(start + max(0, duration or 0), INT64_MAX)
        for start, duration in zip(starts, durations, strict=True)
    ]


def _external_ids(args: list[Arguments]) -> Sequence[int]:
    return _ids(
        [arg.external_id if arg.external_id is not None else arg.external_id_2021 for arg in args]
    )


def _ids(values: list[int | None]) -> Sequence[int]:
    try:
        return array("q", values)  # type: ignore[arg-type] # None is the TypeError below
    except (TypeError, OverflowError):
        return [
            UNKNOWN if value is None or not -INT64_MAX <= value <= INT64_MAX else value
            for value in values
        ]


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
    return int(found.group(1)) if found else UNKNOWN


def _small(value: int, limit: int) -> int:
    return value if -limit <= value <= limit else UNKNOWN
