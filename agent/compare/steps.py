"""Which annotated step a kernel belongs to, and the time of each step by category.

A kernel belongs to the step it starts in; where two steps overlap, to the one that began last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from agent.core.kernels import RankTrace, Signature, Step
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


def in_order(steps: Iterable[Step]) -> list[Step]:
    """Order steps by time."""
    return sorted(steps, key=lambda step: (step.start_ns, step.end_ns, step.name))


def step_times(labelled: LabelledTrace, *, rollup: bool = False) -> list[dict[CategoryId, int]]:
    """Give each step's kernel time by category, added over the ranks; [] where that is not known.

    It is known where every rank has events, and as many steps as every other.
    """
    ranks = labelled.trace.ranks
    counts = {len(rank.steps) for rank in ranks}
    if len(counts) != 1 or any(rank.kernels is None for rank in ranks):
        return []
    times: list[dict[CategoryId, int]] = [{} for _ in range(counts.pop())]
    for rank in ranks:
        _add_rank(times, labelled, rank, rollup=rollup)
    return times


def _add_rank(
    times: list[dict[CategoryId, int]], labelled: LabelledTrace, rank: RankTrace, *, rollup: bool
) -> None:
    table = rank.kernels
    if table is None or not times:
        return
    find = step_finder(rank.steps)
    categories = [_category(labelled, one, rollup=rollup) for one in table.signatures]
    for number, start_ns, duration_ns in zip(
        table.signature_id, table.start_ns, table.duration_ns, strict=True
    ):
        category, at = categories[number], find(start_ns)
        if category is not None and at != OUTSIDE_STEPS:
            times[at][category] = times[at].get(category, 0) + duration_ns


def _category(labelled: LabelledTrace, signature: Signature, *, rollup: bool) -> CategoryId | None:
    """Give a signature's category; None for a copy or a fill."""
    if signature.work != "kernel":
        return None
    category = labelled.labels[signature].category
    return CategoryId(labelled.ruleset.rollup_of(category)) if rollup else category
