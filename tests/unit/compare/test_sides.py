"""One side in figures."""

from __future__ import annotations

from agent.compare.sides import summarise
from tests.unit.compare.runs import rank, run

KERNELS = {"A/a": (4, 400), "B/b": (2, 100)}


def test_busy_time_is_added_over_ranks_and_the_span_is_the_longest_ranks():
    side = summarise(
        run(
            rank(KERNELS, busy_ns=450, span_ns=900),
            rank(KERNELS, label="1", busy_ns=50, span_ns=70),
        )
    )
    assert (side.kernel_ns, side.busy_ns, side.span_ns) == (1_000, 500, 900)


def test_neither_is_known_where_a_rank_has_no_timeline():
    side = summarise(run(rank(KERNELS, busy_ns=450, span_ns=900), rank(KERNELS, label="1")))
    assert (side.busy_ns, side.span_ns) == (None, None)


def test_the_slowest_and_the_fastest_rank_are_told_by_their_sums():
    side = summarise(run({"A/a": (1, 5)}, {"A/a": (1, 9)}, {"A/a": (1, 2)}))
    assert (side.slowest.label, side.fastest.label) == ("1", "2")
    alone = summarise(run(KERNELS))
    assert (alone.slowest, alone.fastest) == (None, None)


def test_stages_of_a_rank_are_one_rank():
    side = summarise(
        run(
            rank(KERNELS, label="0-EXTEND", rank=0, stage="EXTEND"),
            rank(KERNELS, label="0-DECODE", rank=0, stage="DECODE"),
        )
    )
    assert (len(side.ranks), side.n_ranks) == (2, 1)
