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

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from agent.core.kernels import GraphReplays
from agent.traces.columns import COUNTED, GRAPH, UNKNOWN, LaunchColumns, RankColumns, SpanTimes
from agent.traces.vectors import Mask, Vector, as_vector, blocks, counts_by, look_up, total

_SPARSE = 8
"""Ids spread wider than this per entry are looked up in order instead of in a dense table."""


@dataclass(slots=True)
class Links:
    """One entry per kernel: index of its operator and launch or -1, and whether it was replayed.

    `n_unlaunched` counts the kernels without a launch in a file that has any.
    """

    operator: Vector
    launch: Vector
    replayed: Mask
    n_launches: int = 0
    n_unlaunched: int = 0
    by_enclosure: bool = False
    replays: GraphReplays = field(default_factory=GraphReplays)


NO_LINKS = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.bool_))
"""The columns of `Links` where nothing is known of launches."""


class IdIndex:
    """Positions by id; a dense table when ids are close together, else the ids in order.

    `repeated` holds all positions of ids that occur more than once; `find` gives the last of them.
    """

    def __init__(self, ids: Vector, *, lowest: int = 0) -> None:
        """Index all ids that are not below `lowest`."""
        is_known = ids >= lowest
        n_known = int(np.count_nonzero(is_known))
        self._low = (
            int(ids.min(where=is_known, initial=np.iinfo(ids.dtype).max)) if n_known else lowest
        )
        width = int(ids.max()) - self._low + 1 if n_known else 0
        self._ids = np.empty(0, ids.dtype)
        if width <= _SPARSE * len(ids) + 1024:
            self._positions = self._dense(ids, is_known, width)
            n_indexed = width - int(np.count_nonzero(self._positions[:-1] == UNKNOWN))
        else:
            positions = np.flatnonzero(is_known).astype(np.int32)
            order = positions[np.argsort(ids[positions], kind="stable")]
            self._ids, self._positions = ids[order], order
            n_indexed = 1 + int(np.count_nonzero(np.diff(self._ids)))
        self.repeated = {} if n_indexed == n_known else _repeated(ids, np.flatnonzero(is_known))

    def _dense(self, ids: Vector, is_known: Mask, width: int) -> Vector:
        """Give the position of each id from the lowest on; the last entry stands for all others."""
        positions = np.full(width + 1, UNKNOWN, np.int32)
        for block in blocks(len(ids)):
            inside = np.flatnonzero(is_known[block])
            positions[ids[block][inside] - self._low] = inside + block.start
        return positions

    def find(self, values: Vector) -> Vector:
        """Give the position of each id, or -1."""
        found = np.empty(len(values), np.int32)
        for block in blocks(len(values)):
            found[block] = self._find(values[block])
        return found

    def _find(self, values: Vector) -> Vector:
        if len(self._ids):
            at = np.searchsorted(self._ids, values, side="right") - 1
            return np.where(self._ids[at] == values, self._positions[at], UNKNOWN)
        beyond = len(self._positions) - 1
        inside = (values >= self._low) & (values < self._low + beyond)
        return self._positions[np.where(inside, values.astype(np.int64) - self._low, beyond)]


def _repeated(ids: Vector, positions: Vector) -> dict[int, list[int]]:
    """Give the positions, of those given, of each id that occurs more than once, in order."""
    order = positions[np.argsort(ids[positions], kind="stable")]
    in_order = ids[order]
    same = in_order[1:] == in_order[:-1]
    member = np.append(same, False) | np.append(False, same)
    groups: dict[int, list[int]] = {}
    for value, at in zip(in_order[member].tolist(), order[member].tolist(), strict=True):
        groups.setdefault(value, []).append(at)
    return groups


def link_launches(rank: RankColumns) -> Links:
    """Link every kernel of a rank to its launch and its operator."""
    kernels = rank.kernels
    index = IdIndex(as_vector(rank.launches.correlation))
    launch_of = _launches_of(rank, index)
    flags = as_vector(rank.launches.flags)
    is_graph = (flags & GRAPH) != 0
    replayed = look_up(np.append(is_graph, False), launch_of)
    by_enclosure = _repeats_correlation(
        as_vector(kernels.correlation), as_vector(kernels.external_id)
    )
    if by_enclosure:
        operator: Vector = np.full(len(launch_of), UNKNOWN, np.int32)
    else:
        operator = _operators_by_id(rank, launch_of, replayed)
    _fill_by_enclosure(rank, launch_of, replayed, operator)
    graphs = set(np.flatnonzero(is_graph).tolist())
    return Links(
        operator,
        launch_of,
        replayed,
        n_launches=int(np.count_nonzero(flags & COUNTED)),
        n_unlaunched=int(np.count_nonzero(launch_of == UNKNOWN)) if len(flags) else 0,
        by_enclosure=by_enclosure,
        replays=_replays(rank, launch_of, replayed, graphs - _twins(graphs, launch_of, index)),
    )


def _launches_of(rank: RankColumns, index: IdIndex) -> Vector:
    """Give the launch of each kernel by correlation.

    Where calls share one (a driver call inside a runtime call, captures joined in one file), it is
    the last that began before the kernel, and a call that is known to launch before any other.
    """
    kernels, launches = rank.kernels, rank.launches
    correlations = kernels.correlation
    found = index.find(as_vector(correlations))
    if not index.repeated:
        return found
    in_time: dict[int, list[tuple[int, int, int]]] = {}
    for correlation, positions in index.repeated.items():
        launching = [at for at in positions if launches.flags[at]] or positions
        in_time[correlation] = sorted(
            (launches.start_ns[at], launches.flags[at], -at) for at in launching
        )
    for at in np.flatnonzero(np.isin(as_vector(correlations), list(in_time))).tolist():
        candidates = in_time[correlations[at]]
        after = bisect_left(candidates, (kernels.start_ns[at] + 1,))
        found[at] = -candidates[max(0, after - 1)][2]
    return found


def _twins(graphs: set[int], launch_of: Vector, index: IdIndex) -> set[int]:
    """Give graph launches that brought nothing because the same launch is there under two names."""
    groups = [graphs.intersection(positions) for positions in index.repeated.values()]
    bringing = set(np.unique(launch_of).tolist()) if any(groups) else set()
    return {at for group in groups if group & bringing for at in group - bringing}


def _repeats_correlation(correlations: Vector, external_ids: Vector) -> bool:
    """Tell whether `External id` is the correlation again, and so names no operator."""
    known = external_ids != UNKNOWN
    equal = np.count_nonzero((external_ids == correlations) & known)
    return bool(2 * equal > np.count_nonzero(known))


def _operators_by_id(rank: RankColumns, launch_of: Vector, replayed: Mask) -> Vector:
    """Look operators up by `External id`, the kernel's own first, then its launch's."""
    kernels, launches = rank.kernels, rank.launches
    index = IdIndex(as_vector(rank.operators.external_id.unpacked()), lowest=1)
    found = index.find(as_vector(kernels.external_id))
    found[replayed] = UNKNOWN
    left = _unlinked(found, launch_of, replayed)
    found[left] = index.find(as_vector(launches.external_id)[launch_of[left]])
    if sharing := _sharing(index, found):
        times = rank.operators.times()
        for external_id, at in sharing.items():
            launch_ns = [_start_of(launches, launch) for launch in launch_of[at].tolist()]
            found[at] = _innermost(times, index.repeated[external_id], launch_ns)
    return found


def _sharing(index: IdIndex, found: Vector) -> dict[int, list[int]]:
    """Give the kernels of each id that several operators share."""
    id_of = {at: shared for shared, group in index.repeated.items() for at in group}
    sharing: dict[int, list[int]] = {}
    for kernel in np.flatnonzero(np.isin(found, list(id_of))).tolist() if id_of else ():
        sharing.setdefault(id_of[int(found[kernel])], []).append(kernel)
    return sharing


def _start_of(launches: LaunchColumns, launch: int) -> int | None:
    return None if launch == UNKNOWN else launches.start_ns[launch]


def _unlinked(operator: Vector, launch_of: Vector, replayed: Mask) -> Vector:
    """Give the kernels that have a launch of their own but no operator yet."""
    return np.flatnonzero((operator == UNKNOWN) & (launch_of != UNKNOWN) & ~replayed)


def _innermost(
    operators: SpanTimes, candidates: Iterable[int], launch_ns: Sequence[int | None]
) -> list[int]:
    """Choose for each launch among operators with one id: one around it first, then the shortest.

    One sweep in time order, with the operators that have begun in a heap, the shortest on top.
    """
    starts, ends = operators.start_ns, operators.end_ns
    by_length = sorted((ends[at] - starts[at], -starts[at], at) for at in candidates)
    upcoming = sorted(by_length, key=lambda entry: entry[1])
    begun: list[tuple[int, int, int]] = []
    around: dict[int | None, int] = {}
    for now in sorted({at_ns for at_ns in launch_ns if at_ns is not None}):
        while upcoming and -upcoming[-1][1] <= now:
            heappush(begun, upcoming.pop())
        while begun and ends[begun[0][2]] < now:
            heappop(begun)
        around[now] = (begun or by_length)[0][2]
    return [around.get(at_ns, by_length[0][2]) for at_ns in launch_ns]


def _fill_by_enclosure(
    rank: RankColumns, launch_of: Vector, replayed: Mask, operator: Vector
) -> None:
    """Link what is left by the innermost operator around the launch."""
    left = _unlinked(operator, launch_of, replayed)
    if not len(left) or not len(rank.operators.what):
        return
    of_launch = launch_of[left].tolist()
    wanted = sorted(set(of_launch))
    around = enclosing(rank.operators.times(), rank.launches.start_ns, rank.launches.thread, wanted)
    operator[left] = [around.get(launch, UNKNOWN) for launch in of_launch]


def enclosing(
    spans: SpanTimes, at_ns: Sequence[int], threads: Sequence[int], wanted: Iterable[int]
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
    rank: RankColumns, launch_of: Vector, replayed: Mask, graphs: set[int]
) -> GraphReplays:
    """Count what each graph launch brought, in time order."""
    if not graphs:
        return GraphReplays()
    counts = counts_by(launch_of, len(rank.launches.flags), replayed)
    in_time = sorted(graphs, key=rank.launches.start_ns.__getitem__)
    per_launch = tuple(counts[launch] for launch in in_time)
    time_ns = total(as_vector(rank.kernels.duration_ns), replayed)
    return GraphReplays(per_launch, sum(per_launch), time_ns)
