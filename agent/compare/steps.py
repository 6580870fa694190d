"""Which annotated step a kernel belongs to, and the time of each step by category.

A kernel belongs to the step it starts in; where two steps overlap, to the one that began last.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import le

from agent.core.kernels import RankTrace, Signature, Step, StepTimes, in_order
from agent.core.rules import CategoryId, LabelledTrace

OUTSIDE_STEPS = -1


def step_finder(steps: Iterable[Step]) -> Callable[[int], int]:
    """Give what finds the step of a start time: its place in time order, or `OUTSIDE_STEPS`."""
    ordered = in_order(steps)
    starts = [step.start_ns for step in ordered]

    def find(start_ns: int) -> int:
        at = bisect_right(starts, start_ns) - 1
        return at if at >= 0 and start_ns < ordered[at].end_ns else OUTSIDE_STEPS

    return find


def step_times(labelled: LabelledTrace, *, rollup: bool = False) -> list[dict[CategoryId, int]]:
    """Give each step's kernel time by category, added over the ranks; [] where that is not known.

    It is known where every rank has events, or sums of them by step, and all have as many steps.
    """
    ranks = labelled.trace.ranks
    counts = {len(rank.steps) for rank in ranks}
    if len(counts) != 1 or any(rank.kernels is None and not rank.step_times for rank in ranks):
        return []
    times: list[dict[CategoryId, int]] = [{} for _ in range(counts.pop())]
    for rank in ranks:
        _add_rank(times, labelled, rank, rollup=rollup)
    return times


def _add_rank(
    times: list[dict[CategoryId, int]], labelled: LabelledTrace, rank: RankTrace, *, rollup: bool
) -> None:
    table = rank.kernels
    if rank.step_times is not None:
        _add_sums(times, labelled, rank.step_times, rollup=rollup)
        return
    if table is None or not times:
        return
    known = [_category(labelled, one, rollup=rollup) for one in table.signatures]
    categories = list(dict.fromkeys(known))
    number_of = [categories.index(category) for category in known]
    for at, events in _events_of_steps(rank.steps, table.start_ns):
        sums = [0] * len(categories)
        numbers = map(number_of.__getitem__, table.signature_id[events])
        for number, duration_ns in zip(numbers, table.duration_ns[events], strict=True):
            sums[number] += duration_ns
        for category, time_ns in zip(categories, sums, strict=True):
            if category is not None and time_ns:
                times[at][category] = times[at].get(category, 0) + time_ns


def _add_sums(
    times: list[dict[CategoryId, int]], labelled: LabelledTrace, known: StepTimes, *, rollup: bool
) -> None:
    columns: dict[CategoryId | None, int] = {}
    for signature, column in zip(known.stats, known.columns(), strict=True):
        category = _category(labelled, signature, rollup=rollup)
        columns[category] = columns.get(category, 0) + column
    columns.pop(None, None)
    for category, column in columns.items():
        for of_step, time_ns in zip(times, known.unpacked(column), strict=True):
            if category is not None and time_ns:
                of_step[category] = of_step.get(category, 0) + time_ns


def _events_of_steps(steps: Iterable[Step], starts: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """Give slices of events, each of one step; in time order, as most are, there is one a step."""
    if all(map(le, starts, islice(starts, 1, None))):
        ordered = in_order(steps)
        for at, step in enumerate(ordered):
            last = at + 1 == len(ordered)
            end_ns = step.end_ns if last else min(step.end_ns, ordered[at + 1].start_ns)
            yield at, slice(bisect_left(starts, step.start_ns), bisect_left(starts, end_ns))
        return
    find = step_finder(steps)
    for position, start_ns in enumerate(starts):
        if (at := find(start_ns)) != OUTSIDE_STEPS:
            yield at, slice(position, position + 1)


def _category(labelled: LabelledTrace, signature: Signature, *, rollup: bool) -> CategoryId | None:
    """Give a signature's category; None for a copy or a fill."""
    if signature.work != "kernel":
        return None
    category = labelled.labels[signature].category
    return CategoryId(labelled.ruleset.rollup_of(category)) if rollup else category
