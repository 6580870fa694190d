"""A comparison of whole runs is the same without the events it says it does not need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.compare.events import needs_events
from agent.compare.table import compare_traces
from agent.core.kernels import Step
from agent.traces.kernel_table import sum_by_signature, with_step_times
from tests.unit.compare.runs import graph_rank, run

EVEN = ("A/a", "B/b"), ("A/a", "B/b")
STEPS = (Step("ProfilerStep#1", 0, 2_000), Step("ProfilerStep#2", 2_000, 9_000))


def stepped(*launches):
    rank = graph_rank(*launches)
    return with_step_times(replace(rank, steps=STEPS, stats=sum_by_signature(rank.kernels)))


PAIRS = {
    "no steps": (graph_rank(*EVEN), graph_rank(*EVEN, *EVEN)),
    "steps that are summed up": (stepped(*EVEN), stepped(*EVEN, *EVEN)),
    "steps that are not": (
        replace(stepped(*EVEN), summed=None),
        replace(stepped(*EVEN, *EVEN), summed=None),
    ),
    "one graph that lost kernels": (graph_rank(*EVEN), graph_rank(*EVEN, ("A/a",))),
    "graphs of many sizes": (
        graph_rank(*EVEN),
        graph_rank(("A/a",), ("B/b", "C/c"), ("D/d", "D/d", "D/d")),
    ),
    "no timeline": (graph_rank(*EVEN, table=False), graph_rank(*EVEN, ("A/a",), table=False)),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_events_that_are_not_needed_change_nothing(pair):
    whole = PAIRS[pair]
    lean = [rank if needs_events(rank) else replace(rank, kernels=None) for rank in whole]
    assert compare_traces(*map(run, lean)) == compare_traces(*map(run, whole))


def test_events_are_needed_for_what_was_not_summed_up():
    needed = {name: tuple(map(needs_events, pair)) for name, pair in PAIRS.items()}
    assert needed == {
        "no steps": (False, False),
        "steps that are summed up": (False, False),
        "steps that are not": (True, True),
        "one graph that lost kernels": (False, True),
        "graphs of many sizes": (False, True),
        "no timeline": (False, True),
    }
