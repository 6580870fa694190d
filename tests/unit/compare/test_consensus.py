"""The common ratio of calls and the pass counts behind it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from agent.compare.consensus import Calls, agrees, common_ratio, pass_counts


def calls(**rows: tuple[int, int]) -> list[Calls]:
    return [Calls(name, base, new, base + new) for name, (base, new) in rows.items()]


@pytest.mark.parametrize(
    ("base", "new", "ratio", "follows"),
    [
        pytest.param(1_000, 900, Fraction(9, 10), True, id="the ratio itself"),
        pytest.param(1_000, 896, Fraction(9, 10), True, id="four of a thousand off is 0.4 %"),
        pytest.param(1_000, 890, Fraction(9, 10), False, id="1.1 % off"),
        pytest.param(400, 357, Fraction(9, 10), True, id="three lost events of 360 are under 1 %"),
        pytest.param(100, 87, Fraction(9, 10), False, id="three events are too much of 100"),
        pytest.param(10, 9, Fraction(1), False, id="one event of ten is no slack"),
        pytest.param(1, 1, Fraction(1), True, id="one call on both sides"),
    ],
)
def test_a_row_follows_a_ratio_within_half_a_per_cent(base, new, ratio, follows):
    assert agrees(Calls("k", base, new, 1), ratio) is follows
    assert agrees(Calls("k", new, base, 1), 1 / ratio) is follows


def test_the_ratio_most_rows_follow_wins_over_the_heaviest_row():
    rows = [Calls("heavy", 100, 50, 10**9), *calls(a=(60, 54), b=(20, 18), c=(10, 9))]
    found = common_ratio(rows)
    assert found is not None
    assert (found.ratio, found.agreeing, found.shared) == (Fraction(9, 10), ("a", "b", "c"), 4)
    assert found.sound


def test_rows_that_all_differ_have_no_sound_ratio():
    found = common_ratio(calls(a=(10, 9), b=(10, 7), c=(10, 4)))
    assert found is not None
    assert not found.sound


def test_a_third_of_the_rows_is_sound_only_with_half_of_the_time():
    others = {f"k{index}": (100, 10 * index) for index in range(1, 5)}
    light = common_ratio(calls(a=(10, 9), b=(20, 18), **others))
    heavy = [Calls("a", 10, 9, 10**6), Calls("b", 20, 18, 10**6)]
    third = common_ratio([*heavy, *calls(**others)])
    more = {f"m{index}": (100, 5 + 10 * index) for index in range(1, 5)}
    fifth = common_ratio([*heavy, *calls(**others, **more)])
    assert light is not None
    assert third is not None
    assert fifth is not None
    assert (light.sound, third.sound, fifth.sound) == (False, True, False)


def test_half_of_the_rows_are_sound_with_little_of_the_time():
    rows = [
        Calls("a", 10, 9, 1),
        Calls("b", 20, 18, 1),
        Calls("c", 10, 7, 99),
        Calls("d", 10, 4, 99),
    ]
    found = common_ratio(rows)
    assert (found.agreeing, found.sound) == (("a", "b"), True)
    found = common_ratio([*rows, Calls("e", 10, 2, 99)])
    assert (found.agreeing, found.sound) == (("a", "b"), False)


def test_one_shared_row_is_its_own_consensus():
    found = common_ratio(calls(only=(10, 10), fresh=(0, 3)))
    assert found is not None
    assert (found.ratio, found.sound) == (1, True)


def test_nothing_shared_has_no_ratio():
    assert common_ratio(calls(a=(0, 3), b=(2, 0))) is None


def test_swapping_the_sides_inverts_the_ratio():
    rows = calls(a=(107, 106), b=(214, 211), c=(500, 1_500), d=(33, 33))
    forward, backward = (
        common_ratio(rows),
        common_ratio([Calls(c.name, c.new, c.base, c.weight_ns) for c in rows]),
    )
    assert forward is not None
    assert backward is not None
    assert forward.ratio * backward.ratio == 1
    assert forward.agreeing == backward.agreeing


def test_pass_counts_are_found_although_a_few_events_were_lost():
    """The article's BF16 side holds whole multiples of 107; its FP8 side of 106 less 1 to 3."""
    per_pass = (60, 61, 120, 124, 245)
    pairs = [(107 * k, 106 * k - lost) for k, lost in zip(per_pass, (1, 1, 2, 3, 3), strict=True)]
    assert pass_counts(pairs, Fraction(106, 107)) == (107, 106)


def test_pass_counts_come_in_lowest_terms():
    assert pass_counts([(100 * k, 90 * k) for k in (1, 3, 7)], Fraction(9, 10)) == (10, 9)


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([], id="no rows"),
        pytest.param([(10, 9), (20, 18)], id="two rows could be chance"),
        pytest.param([(1_009, 1_000), (2_003, 1_985), (3_001, 2_974)], id="no common multiple"),
    ],
)
def test_pass_counts_are_not_guessed(pairs):
    assert pass_counts(pairs, Fraction(1_000, 1_009)) is None
