"""Events in time order are cut by step; any others are looked up one by one, to the same sums."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace

import pytest

from agent.compare.phases import split
from agent.compare.steps import OUTSIDE_STEPS, _events_of_steps, step_finder, step_times
from agent.core.kernels import KernelTable, Step, in_order
from agent.traces.kernel_table import sum_by_signature, with_step_times
from tests.builders import rank_trace, signature
from tests.unit.compare.runs import run


@pytest.mark.parametrize("order", [sorted, list], ids=["in time order", "in no order"])
@pytest.mark.parametrize("seed", range(40))
def test_each_event_is_of_the_step_that_is_found_for_it(seed, order):
    rng = random.Random(seed)
    starts = order([rng.randrange(60) for _ in range(rng.randrange(40))])
    begins = [rng.randrange(50) for _ in range(rng.randrange(6))]
    steps = [
        Step(f"s{at}", begin, begin + rng.randrange(-2, 20)) for at, begin in enumerate(begins)
    ]
    found = [OUTSIDE_STEPS] * len(starts)
    for at, events in _events_of_steps(steps, starts):
        found[events] = [at] * len(starts[events])
    assert found == list(map(step_finder(steps), starts))


def a_timeline(seed):
    """A rank of some steps, with gaps and overlaps, and of events in no order."""
    rng = random.Random(seed)
    n_events = rng.randrange(1, 60)
    signatures = (
        signature("A/one"),
        signature("A/two"),
        signature("B/three"),
        signature("Memcpy", work="memcpy"),
    )
    table = KernelTable(
        signatures,
        array("I", [*range(4), *(rng.randrange(4) for _ in range(n_events))]),
        array("q", [rng.randrange(60) for _ in range(n_events + 4)]),
        array("q", [rng.choice((0, 1, 7, 1 << 40)) for _ in range(n_events + 4)]),
        array("i", [0] * (n_events + 4)),
        array("q", [rng.randrange(2) for _ in range(n_events + 4)]),
        array("q", [-1] * (n_events + 4)),
    )
    begins = sorted(rng.randrange(50) for _ in range(rng.randrange(1, 6)))
    steps = in_order(
        Step(f"step[DECODE bs={at}]", begin, begin + rng.randrange(0, 20))
        for at, begin in enumerate(begins)
    )
    return rank_trace(sum_by_signature(table), kernels=table, steps=tuple(steps))


@pytest.mark.parametrize("seed", range(60))
def test_sums_of_a_step_are_those_of_its_events(seed):
    rank = a_timeline(seed)
    summed = with_step_times(rank)
    assert summed.step_times is not None
    known = step_times(run(rank))
    assert step_times(run(summed)) == known
    assert step_times(run(replace(summed, kernels=None))) == known
    twice = replace(summed, label="again")
    assert step_times(run(summed, twice)) == step_times(run(rank, replace(rank, label="again")))


def test_sums_are_never_those_of_other_steps_or_other_events():
    rank = with_step_times(a_timeline(1))
    assert replace(rank, label="x").step_times is not None
    assert replace(rank, steps=rank.steps[1:]).step_times is None
    assert replace(rank, stats=dict(list(rank.stats.items())[1:])).step_times is None
    parts = split(run(rank), "stream").values()
    assert [part.trace.ranks[0].step_times for part in parts] == [None, None]
    assert all(step_times(part) == [] for part in parts)


def test_steps_in_no_order_are_left_to_the_events():
    rank = a_timeline(3)
    assert len(rank.steps) > 1
    assert with_step_times(replace(rank, steps=rank.steps[::-1])).step_times is None


def test_times_without_events_and_sums_are_not_known():
    assert step_times(run(replace(a_timeline(1), kernels=None))) == []


def test_sums_beyond_what_a_column_holds_are_left_to_the_events():
    rank = a_timeline(2)
    huge = replace(rank.kernels, duration_ns=array("q", [(1 << 62) - 1] * len(rank.kernels)))
    rank = replace(rank, kernels=huge, stats=sum_by_signature(huge))
    assert with_step_times(rank).step_times is None
