"""Kernel -> launch -> operator, on columns; pure.

The rules (observed in 368 public traces):
- A kernel of a graph replay shares its launch's correlation with up to thousands of others and has
  no operator of its own, whatever its `External id` says.
- Otherwise `External id` names the innermost operator, except in files where it merely repeats the
  correlation: there, and where it is missing, the operator is the innermost one on the launch's
  thread whose interval encloses the launch.
- A kernel without a launch keeps what its `External id` says, or nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agent.core.kernels import GraphReplays
from agent.traces.collect import COUNTED, GRAPH, UNKNOWN, RankColumns, SpanColumns

_SPARSE = 8
"""Ids spread wider than this per entry are kept in a dict instead of a dense table."""


@dataclass(slots=True)
class Links:
    """One entry per kernel: index of its operator and launch or -1, and whether it was replayed."""

    operator: array[int]
    launch: array[int]
    replayed: bytearray
    n_launches: int = 0
    by_enclosure: bool = False
    replays: GraphReplays = field(default_factory=GraphReplays)


class IdIndex:
    """Positions by id; a dense table (4 bytes each) when ids are close, else a dict (100)."""

    def __init__(self, ids: Sequence[int]) -> None:
        """Index all ids that are not -1; the first position of an id wins."""
        known = [value for value in ids if value != UNKNOWN] if UNKNOWN in ids else ids
        self.repeated: dict[int, list[int]] = {}
        self._low = min(known, default=0)
        width = max(known, default=-1) - self._low + 1
        self._table: array[int] | None = None
        self._sparse: dict[int, int] = {}
        if width <= _SPARSE * len(ids) + 1024:
            self._table = array("i", b"\xff\xff\xff\xff") * width
        for position, value in enumerate(ids):
            if value != UNKNOWN:
                self._put(value, position)

    def _put(self, value: int, position: int) -> None:
        seen = self.find(value)
        if seen != UNKNOWN:
            self.repeated.setdefault(value, [seen]).append(position)
        elif self._table is not None:
            self._table[value - self._low] = position
        else:
            self._sparse[value] = position

    def find(self, value: int) -> int:
        """Give the position of an id, or -1."""
        if self._table is None:
            return self._sparse.get(value, UNKNOWN)
        at = value - self._low
        return self._table[at] if 0 <= at < len(self._table) else UNKNOWN


def link_launches(rank: RankColumns) -> Links:
    """Link every kernel of a rank to its launch and its operator."""
    kernels = rank.kernels
    launches = _index_launches(rank)
    launch_of = array("i", [launches.find(correlation) for correlation in kernels.correlation])
    flags = rank.launches.flags
    replayed = bytearray(launch != UNKNOWN and flags[launch] & GRAPH != 0 for launch in launch_of)
    by_enclosure = _repeats_correlation(kernels.correlation, kernels.external_id)
    operator = _operators_by_id(rank, launch_of, replayed, trust_ids=not by_enclosure)
    _fill_by_enclosure(rank, launch_of, replayed, operator)
    return Links(
        operator,
        launch_of,
        replayed,
        n_launches=sum(flag & COUNTED for flag in flags),
        by_enclosure=by_enclosure,
        replays=_replays(rank, launch_of),
    )


def _index_launches(rank: RankColumns) -> IdIndex:
    """Index launches by correlation; where calls share one, the call that launches counts."""
    columns = rank.launches
    index = IdIndex(columns.correlation)
    if not index.repeated:
        return index
    order = sorted(range(len(columns.flags)), key=lambda at: -columns.flags[at])
    chosen = array("q", columns.correlation)
    seen: set[int] = set()
    for at in order:
        if chosen[at] in index.repeated:
            if chosen[at] in seen:
                chosen[at] = UNKNOWN
            else:
                seen.add(chosen[at])
    return IdIndex(chosen)


def _repeats_correlation(correlations: Sequence[int], external_ids: Sequence[int]) -> bool:
    """Tell whether `External id` is the correlation again, and so names no operator."""
    known = len(external_ids) - external_ids.count(UNKNOWN)
    equal = sum(
        external == correlation != UNKNOWN
        for external, correlation in zip(external_ids, correlations, strict=True)
    )
    return 2 * equal > known


def _operators_by_id(
    rank: RankColumns, launch_of: Sequence[int], replayed: Sequence[int], *, trust_ids: bool
) -> array[int]:
    """Look operators up by `External id`, the kernel's own first, then its launch's."""
    kernels, launches, operators = rank.kernels, rank.launches, rank.operators
    found = array("i", b"\xff\xff\xff\xff") * len(launch_of)
    if not trust_ids:
        return found
    index = IdIndex(operators.external_id)
    for position, launch in enumerate(launch_of):
        if replayed[position]:
            continue
        external = kernels.external_id[position]
        operator = index.find(external) if external > 0 else UNKNOWN
        if operator == UNKNOWN and launch != UNKNOWN:
            external = launches.external_id[launch]
            operator = index.find(external) if external > 0 else UNKNOWN
        if external in index.repeated:
            start = launches.start_ns[launch] if launch != UNKNOWN else None
            operator = _innermost(operators, index.repeated[external], start)
        found[position] = operator
    return found


def _innermost(operators: SpanColumns, candidates: Iterable[int], at_ns: int | None) -> int:
    """Choose among operators with one id: those around the launch first, then the shortest."""

    def rank(position: int) -> tuple[bool, int, int]:
        start, end = operators.start_ns[position], operators.end_ns[position]
        outside = at_ns is not None and not start <= at_ns <= end
        return outside, end - start, -start

    return min(candidates, key=rank)


def _fill_by_enclosure(
    rank: RankColumns, launch_of: Sequence[int], replayed: Sequence[int], operator: array[int]
) -> None:
    """Link what is left by the innermost operator around the launch."""
    wanted = {
        launch
        for position, launch in enumerate(launch_of)
        if launch != UNKNOWN and operator[position] == UNKNOWN and not replayed[position]
    }
    if not wanted or not len(rank.operators.what):
        return
    around = enclosing(rank.operators, rank.launches.start_ns, rank.launches.thread, sorted(wanted))
    for position, launch in enumerate(launch_of):
        if operator[position] == UNKNOWN and not replayed[position]:
            operator[position] = around.get(launch, UNKNOWN)


def enclosing(
    spans: SpanColumns, at_ns: Sequence[int], threads: Sequence[int], wanted: Iterable[int]
) -> dict[int, int]:
    """Give, for each wanted point, the innermost span of its thread around it, where there is one.

    Spans of one thread are nested, so one sweep in time order with a stack of open spans does it.
    """
    points: dict[int, list[int]] = {}
    for point in wanted:
        points.setdefault(threads[point], []).append(point)
    by_thread: dict[int, list[int]] = {thread: [] for thread in points}
    for position, thread in enumerate(spans.thread):
        if thread in by_thread:
            by_thread[thread].append(position)
    starts, ends = spans.start_ns, spans.end_ns
    found: dict[int, int] = {}
    for thread, positions in by_thread.items():
        positions.sort(key=lambda position: (starts[position], -ends[position]))
        stack: list[int] = []
        upcoming = iter(positions)
        coming = next(upcoming, None)
        for point in sorted(points[thread], key=at_ns.__getitem__):
            now = at_ns[point]
            while coming is not None and starts[coming] <= now:
                stack.append(coming)
                coming = next(upcoming, None)
            while stack and ends[stack[-1]] < now:
                stack.pop()
            if stack:
                found[point] = stack[-1]
    return found


def _replays(rank: RankColumns, launch_of: Sequence[int]) -> GraphReplays:
    """Count what each graph launch brought, in time order."""
    flags, starts = rank.launches.flags, rank.launches.start_ns
    graphs = [launch for launch, flag in enumerate(flags) if flag & GRAPH]
    if not graphs:
        return GraphReplays()
    counts = dict.fromkeys(graphs, 0)
    time_ns = 0
    for launch, duration in zip(launch_of, rank.kernels.duration_ns, strict=True):
        if launch in counts:
            counts[launch] += 1
            time_ns += duration
    in_time = sorted(graphs, key=starts.__getitem__)
    per_launch = tuple(counts[launch] for launch in in_time)
    return GraphReplays(per_launch, sum(per_launch), time_ns)
