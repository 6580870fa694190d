"""Events in time order are cut by step; any others are looked up one by one, to the same sums."""

from __future__ import annotations

import random

import pytest

from agent.compare.steps import OUTSIDE_STEPS, _events_of_steps, step_finder
from agent.core.kernels import Step


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
