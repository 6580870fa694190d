"""Spread over ranks and runs."""

from __future__ import annotations

from array import array
from fractions import Fraction

import pytest

from agent.compare.noise import median_chance, sign_chance
from agent.compare.steps import step_times
from agent.compare.table import compare_traces
from agent.core.kernels import KernelTable, Step
from agent.errors import UsageError
from tests.builders import rank_trace, signature, stats
from tests.unit.compare.runs import rank, run


def ranks(*times: int):
    return [{"A/a": (10, time), "B/b": (10, 500)} for time in times]


def spread_of(diff, category: str = "A"):
    return next(one for one in diff.noise.spreads if one.category == category)


@pytest.mark.parametrize(
    ("risen", "fallen", "chance"),
    [
        pytest.param(8, 0, Fraction(1, 128), id="all of eight"),
        pytest.param(7, 1, Fraction(18, 256), id="seven of eight"),
        pytest.param(4, 4, 1, id="even"),
        pytest.param(0, 0, 1, id="nothing moved"),
        pytest.param(1, 0, 1, id="one alone"),
    ],
)
def test_the_sign_test_is_that_of_fair_coins(risen, fallen, chance):
    assert sign_chance(risen, fallen) == sign_chance(fallen, risen) == chance


@pytest.mark.parametrize(
    ("above_new", "above", "n_new", "total", "chance"),
    [
        pytest.param(4, 4, 4, 8, Fraction(2, 70), id="four against four, fully apart"),
        pytest.param(3, 4, 4, 8, Fraction(2 * 17, 70), id="all but one apart"),
        pytest.param(2, 4, 4, 8, 1, id="evenly mixed"),
        pytest.param(5, 5, 5, 10, Fraction(2, 252), id="five against five"),
        pytest.param(0, 0, 3, 6, 1, id="all equal"),
    ],
)
def test_the_median_test_is_exact(above_new, above, n_new, total, chance):
    assert median_chance(above_new, above, n_new, total) == chance


def test_eight_ranks_that_all_rose_stand_outside():
    diff = compare_traces(run(*ranks(*range(100, 108))), run(*ranks(*range(110, 118))))
    spread = spread_of(diff)
    assert diff.noise.paired
    assert (spread.risen, spread.fallen, spread.outside) == (8, 0, True)
    assert spread.delta.median == 10
    assert spread_of(diff, "B").outside is False


def test_ranks_that_moved_both_ways_stand_inside():
    before, after = (
        (100, 101, 102, 103, 104, 105, 106, 107),
        (101, 100, 103, 102, 105, 104, 107, 106),
    )
    assert spread_of(compare_traces(run(*ranks(*before)), run(*ranks(*after)))).outside is False


def test_three_ranks_cannot_tell():
    diff = compare_traces(run(*ranks(1, 2, 3)), run(*ranks(101, 102, 103)))
    assert not diff.noise.can_tell
    assert spread_of(diff).outside is None


def test_one_rank_has_no_spread():
    noise = compare_traces(run(*ranks(1)), run(*ranks(2))).noise
    assert (noise.unit, noise.spreads) == ("none", ())


def test_repeated_runs_are_compared_run_by_run():
    base = [run(*ranks(time)) for time in (100, 103, 101, 102)]
    new = [run(*ranks(time)) for time in (110, 113, 111, 112)]
    diff = compare_traces(base[0], new[0], repeats=(base[1:], new[1:]))
    assert (diff.noise.unit, diff.noise.paired) == ("runs", False)
    assert spread_of(diff).outside is True


def test_four_copies_of_one_run_are_not_four_runs():
    """Copies all agree with themselves, so that every difference would stand outside."""
    base, new = run(*ranks(100), name="a.json"), run(*ranks(101), name="b.json")
    copies = [run(*ranks(100), name=f"a-{number}.json") for number in range(3)], [new] * 3
    diff = compare_traces(base, new, repeats=copies)
    assert diff.noise == compare_traces(base, new).noise
    assert [one.code for one in diff.findings] == ["DF108", "DF108"]
    said = "3 of the 4 runs of side base were given before (a-0.json, a-1.json, a-2.json)"
    assert said in diff.findings[0].message


def test_a_run_given_twice_among_others_counts_once():
    base = [run(*ranks(time)) for time in (100, 103, 101, 102)]
    new = [run(*ranks(time)) for time in (110, 113, 111, 112)]
    diff = compare_traces(base[0], new[0], repeats=([*base[1:], base[2]], new[1:]))
    assert (diff.noise.n_base, diff.noise.n_new) == (4, 4)
    assert [one.code for one in diff.findings if one.code == "DF108"] == ["DF108"]


def test_equal_sums_at_another_time_are_another_run():
    """Runs of few kernels can agree to the nanosecond; their clocks do not."""
    base = [run(rank({"A/a": (1, 9)}, origin_ns=origin)) for origin in (5, 6, 7, 8)]
    diff = compare_traces(base[0], base[0], repeats=(base[1:], base[1:]))
    assert diff.noise.n_base == diff.noise.n_new == 4
    assert "DF108" not in {one.code for one in diff.findings}


def test_repeats_of_unequal_work_are_compared_pass_by_pass():
    """Windows of 90 to 110 passes; a pass takes 10 ns of A before, 11 ns after, B always 5 ns."""

    def window(passes: int, per_pass: int):
        return run({"A/a": (passes, per_pass * passes), "B/b": (passes, 5 * passes)})

    base = [window(passes, 10) for passes in (100, 90, 110, 95)]
    new = [window(passes, 11) for passes in (105, 92, 99, 108)]
    diff = compare_traces(base[0], new[0], repeats=(base[1:], new[1:]))
    a, b = spread_of(diff), spread_of(diff, "B")
    assert (a.base.low, a.base.high, a.new.low, a.new.high) == (1000, 1000, 1100, 1100)
    assert (a.outside, b.outside, b.delta.median) == (True, False, 0)


@pytest.mark.parametrize("repeats", [(1, 0), (0, 2)])
def test_repeats_of_one_side_alone_are_an_error(repeats):
    one = run(*ranks(1))
    with pytest.raises(UsageError, match="DF005"):
        compare_traces(one, one, repeats=tuple([one] * number for number in repeats))


def test_the_order_of_ranks_and_runs_changes_nothing():
    before, after = ranks(100, 140, 120, 160), ranks(90, 150, 110, 155)
    forward = compare_traces(run(*before), run(*after)).noise
    named = [run(*before), run(*after)]
    for side in named:
        trace = side.trace
        object.__setattr__(trace, "ranks", tuple(reversed(trace.ranks)))
    assert compare_traces(*named).noise == forward


def test_new_times_are_scaled_to_the_bases_work_before_they_are_compared():
    """Half of the passes at half of the time is no change."""
    base = [{"A/a": (20, 200), "B/b": (10, 100)} for _ in range(8)]
    new = [{"A/a": (10, 100), "B/b": (5, 50)} for _ in range(8)]
    diff = compare_traces(run(*base), run(*new))
    assert diff.work.ratio == Fraction(1, 2)
    assert spread_of(diff).delta.median == 0


def test_different_ranks_are_compared_as_two_samples():
    base, new = run(*ranks(1, 2, 3, 4)), run(*ranks(5, 6, 7, 8, 9))
    diff = compare_traces(base, new)
    assert not diff.noise.paired
    assert (diff.noise.n_base, diff.noise.n_new) == (4, 5)


def stepped(*times: int, label: str = "0", rank: int | None = None, loose: int = 0):
    """A rank of steps 1 us apart, each with A as long as given and B of 50 ns, and loose Bs."""
    one, other = signature("A/a"), signature("B/b")
    n = len(times)
    starts = [start for at in range(n) for start in (1_000 * at, 1_000 * at + 500)]
    durations = [duration for time in times for duration in (time, 50)]
    size = 2 * n + loose
    table = KernelTable(
        (one, other),
        array("I", [0, 1] * n + [1] * loose),
        array("q", [*starts, *range(1_000 * n, 1_000 * n + loose)]),
        array("q", [*durations, *[50] * loose]),
        array("i", [0] * size),
        array("q", [7] * size),
        array("q", [-1] * size),
    )
    kernels = {one: stats(n, sum(times)), other: stats(n + loose, 50 * (n + loose))}
    steps = tuple(Step("step[DECODE bs=1]", 1_000 * at, 1_000 * at + 900) for at in range(n))
    return rank_trace(kernels, kernels=table, steps=steps, label=label, rank=rank)


def test_one_rank_with_steps_is_compared_by_its_steps():
    """One pass fewer is no difference of a pass; A takes longer in each, B is as long."""
    base, new = run(stepped(*range(100, 108))), run(stepped(*range(120, 127)))
    noise = compare_traces(base, new).noise
    assert (noise.unit, noise.paired, noise.n_base, noise.n_new) == ("steps", False, 8, 7)
    a, b = noise.spreads
    assert (a.outside, a.delta.median, b.outside, b.delta.median) == (True, 19.5, False, 0)


def test_kernels_outside_of_steps_are_in_no_step():
    assert step_times(run(stepped(100, 110, loose=3))) == [{"A": 100, "B": 50}, {"A": 110, "B": 50}]


def test_steps_are_added_up_over_ranks():
    two = run(stepped(100, 110, rank=0), stepped(200, 220, label="1", rank=1))
    assert step_times(two) == [{"A": 300, "B": 100}, {"A": 330, "B": 100}]


def test_ranks_that_can_tell_are_preferred_to_steps():
    side = run(*[stepped(100, 110, label=str(rank), rank=rank) for rank in range(6)])
    assert compare_traces(side, side).noise.unit == "ranks"


def test_two_steps_cannot_tell():
    noise = compare_traces(run(stepped(100, 101)), run(stepped(120, 121))).noise
    assert (noise.unit, noise.can_tell) == ("steps", False)


def test_steps_that_the_calls_contradict_are_no_spread():
    base = run(stepped(*range(100, 108)))
    few = stepped(*range(120, 124))
    doubled = {one: stats(2 * found.count, found.time_ns) for one, found in few.stats.items()}
    object.__setattr__(few, "stats", doubled)
    assert compare_traces(base, run(few)).noise.unit == "none"
