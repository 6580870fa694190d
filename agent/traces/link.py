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
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import eq

from agent.core.kernels import GraphReplays
from agent.traces.collect import COUNTED, GRAPH, UNKNOWN, RankColumns, SpanColumns
from agent.traces.numbers import packed

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
    """Positions by id; a dense table when ids are close together (4 bytes each, a dict takes 100).

    `repeated` holds all positions of ids that occur more than once; `find` gives the last of them.
    """

    def __init__(self, ids: Sequence[int], *, lowest: int = 0) -> None:
        """Index all ids that are not below `lowest`."""
        self.repeated: dict[int, list[int]] = {}
        least = min(ids, default=lowest)
        all_known = least >= lowest
        self._low = least if all_known else min(filter(lowest.__le__, ids), default=lowest)
        width = max(ids, default=lowest) - self._low + 1
        self._table: array[int] | None = None
        self._sparse: dict[int, int] = {}
        if 0 < width <= _SPARSE * len(ids) + 1024:
            n_indexed = self._fill_table(ids, width)
        else:
            self._sparse = {value: at for at, value in enumerate(ids) if value >= lowest}
            n_indexed = len(self._sparse)
        n_known = len(ids) if all_known else sum(value >= lowest for value in ids)
        if n_indexed != n_known:
            self._note_repeated(ids, lowest)

    def _fill_table(self, ids: Sequence[int], width: int) -> int:
        self._table = table = array("i", b"\xff\xff\xff\xff") * width
        low = self._low
        for at, value in enumerate(ids):
            if value >= low:
                table[value - low] = at
        return width - table.count(UNKNOWN)

    def _note_repeated(self, ids: Sequence[int], lowest: int) -> None:
        groups: dict[int, list[int]] = {}
        for at, value in enumerate(ids):
            if value >= lowest and self.find(value) != at:
                groups.setdefault(value, []).append(at)
        self.repeated = {value: [*group, self.find(value)] for value, group in groups.items()}

    def find(self, value: int) -> int:
        """Give the position of an id, or -1."""
        if self._table is None:
            return self._sparse.get(value, UNKNOWN)
        at = value - self._low
        return self._table[at] if 0 <= at < len(self._table) else UNKNOWN

    def find_all(self, values: Sequence[int]) -> array[int]:
        """Give the position of each id, or -1."""
        if self._table is None:
            sparse = self._sparse
            return packed((sparse.get(value, UNKNOWN) for value in values), "i")
        table, low, high = self._table, self._low, self._low + len(self._table)
        return packed(
            (table[value - low] if low <= value < high else UNKNOWN for value in values), "i"
        )


def link_launches(rank: RankColumns) -> Links:
    """Link every kernel of a rank to its launch and its operator."""
    kernels = rank.kernels
    index = IdIndex(rank.launches.correlation)
    launch_of = _launches_of(rank, index)
    flags = rank.launches.flags
    graphs = {launch for launch, flag in enumerate(flags) if flag & GRAPH}
    replayed = bytearray(map(graphs.__contains__, launch_of))
    by_enclosure = _repeats_correlation(kernels.correlation, kernels.external_id)
    if by_enclosure:
        operator = array("i", b"\xff\xff\xff\xff") * len(launch_of)
    else:
        operator = _operators_by_id(rank, launch_of, replayed)
    _fill_by_enclosure(rank, launch_of, replayed, operator)
    return Links(
        operator,
        launch_of,
        replayed,
        n_launches=sum(flag & COUNTED for flag in flags),
        by_enclosure=by_enclosure,
        replays=_replays(rank, launch_of, replayed, graphs - _twins(graphs, launch_of, index)),
    )


def _launches_of(rank: RankColumns, index: IdIndex) -> array[int]:
    """Give the launch of each kernel by correlation.

    Where calls share one (a driver call inside a runtime call, captures joined in one file), it is
    the last that began before the kernel, and a call that is known to launch before any other.
    """
    kernels, launches = rank.kernels, rank.launches
    found = index.find_all(kernels.correlation)
    if not index.repeated:
        return found
    in_time: dict[int, list[tuple[int, int, int]]] = {}
    for correlation, positions in index.repeated.items():
        launching = [at for at in positions if launches.flags[at]] or positions
        in_time[correlation] = sorted(
            (launches.start_ns[at], launches.flags[at], -at) for at in launching
        )
    for at, correlation in enumerate(kernels.correlation):
        if candidates := in_time.get(correlation):
            after = bisect_left(candidates, (kernels.start_ns[at] + 1,))
            found[at] = -candidates[max(0, after - 1)][2]
    return found


def _twins(graphs: set[int], launch_of: Sequence[int], index: IdIndex) -> set[int]:
    """Give graph launches that brought nothing because the same launch is there under two names."""
    groups = [graphs.intersection(positions) for positions in index.repeated.values()]
    bringing = set(launch_of) if any(groups) else set()
    return {at for group in groups if group & bringing for at in group - bringing}


def _repeats_correlation(correlations: Sequence[int], external_ids: Sequence[int]) -> bool:
    """Tell whether `External id` is the correlation again, and so names no operator."""
    known = len(external_ids) - external_ids.count(UNKNOWN)
    equal: int = sum(map(eq, external_ids, correlations))
    if UNKNOWN in correlations:
        equal -= sum(
            external == correlation == UNKNOWN
            for external, correlation in zip(external_ids, correlations, strict=True)
        )
    return 2 * equal > known


def _operators_by_id(
    rank: RankColumns, launch_of: Sequence[int], replayed: bytearray
) -> array[int]:
    """Look operators up by `External id`, the kernel's own first, then its launch's."""
    kernels, launches, operators = rank.kernels, rank.launches, rank.operators
    index = IdIndex(operators.external_id, lowest=1)
    found = index.find_all(kernels.external_id)
    if 1 in replayed:
        in_place = zip(found, replayed, strict=True)
        found = packed((UNKNOWN if replay else operator for operator, replay in in_place), "i")
    for at in _unlinked(found, launch_of, replayed):
        found[at] = index.find(launches.external_id[launch_of[at]])
    if index.repeated:
        shared = {position for group in index.repeated.values() for position in group}
        for at in [at for at, operator in enumerate(found) if operator in shared]:
            candidates = index.repeated[operators.external_id[found[at]]]
            launch = launch_of[at]
            start = launches.start_ns[launch] if launch != UNKNOWN else None
            found[at] = _innermost(operators, candidates, start)
    return found


def _unlinked(operator: array[int], launch_of: Sequence[int], replayed: bytearray) -> list[int]:
    """Give the kernels that have a launch of their own but no operator yet."""
    if operator.count(UNKNOWN) == replayed.count(1):
        return []
    return [
        at
        for at, (found, launch, replay) in enumerate(
            zip(operator, launch_of, replayed, strict=True)
        )
        if found == UNKNOWN and launch != UNKNOWN and not replay
    ]


def _innermost(operators: SpanColumns, candidates: Iterable[int], at_ns: int | None) -> int:
    """Choose among operators with one id: those around the launch first, then the shortest."""

    def rank(position: int) -> tuple[bool, int, int]:
        start, end = operators.start_ns[position], operators.end_ns[position]
        outside = at_ns is not None and not start <= at_ns <= end
        return outside, end - start, -start

    return min(candidates, key=rank)


def _fill_by_enclosure(
    rank: RankColumns, launch_of: Sequence[int], replayed: bytearray, operator: array[int]
) -> None:
    """Link what is left by the innermost operator around the launch."""
    left = _unlinked(operator, launch_of, replayed)
    if not left or not len(rank.operators.what):
        return
    wanted = sorted({launch_of[at] for at in left})
    around = enclosing(rank.operators, rank.launches.start_ns, rank.launches.thread, wanted)
    for at in left:
        operator[at] = around.get(launch_of[at], UNKNOWN)


def enclosing(
    spans: SpanColumns, at_ns: Sequence[int], threads: Sequence[int], wanted: Iterable[int]
) -> dict[int, int]:
    """Give, for each wanted point, the innermost span of its thread around it, where there is one.

    A span that ends at the very point does not enclose it.

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
            while stack and ends[stack[-1]] <= now:
                stack.pop()
            if stack:
                found[point] = stack[-1]
    return found


def _replays(
    rank: RankColumns, launch_of: Sequence[int], replayed: Sequence[int], graphs: set[int]
) -> GraphReplays:
    """Count what each graph launch brought, in time order."""
    if not graphs:
        return GraphReplays()
    counts = Counter(compress(launch_of, replayed))
    in_time = sorted(graphs, key=rank.launches.start_ns.__getitem__)
    per_launch = tuple(counts[launch] for launch in in_time)
    time_ns = sum(compress(rank.kernels.duration_ns, replayed))
    return GraphReplays(per_launch, sum(per_launch), time_ns)
