"""Spread over ranks and runs."""

from __future__ import annotations

from fractions import Fraction

import pytest

from agent.compare.noise import median_chance, sign_chance
from agent.compare.table import compare_traces
from tests.unit.compare.runs import run


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
