"""Find the ratio of calls that most rows share, and the two pass counts behind it.

Two captures of one workload rarely hold the same number of forward passes. Kernels that run a fixed
number of times per pass then all have the same ratio of calls, new to base. A few rows do not
follow (work per request, per step, or changed by what is being compared), so the ratio is the one
with the largest support and not a mean. docs/decisions/0080 says why these rules and not others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

WITHIN = 200
"""One part in so many of the calls may be off."""

SLACK_EVENTS, SLACK_WITHIN = 3, 100
CANDIDATES = 400
"""Rows, those with the most time, whose ratios are tried."""

MAX_PASSES = 5_000
ROWS_FOR_PASSES = 3


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one row on both sides, and its time on both sides together as its weight."""

    name: str
    base: int
    new: int
    weight_ns: int


@dataclass(frozen=True, slots=True)
class Consensus:
    """A ratio of calls and who supports it.

    `share` is the time of the agreeing rows in the time of all rows that both sides have.
    """

    ratio: Fraction
    agreeing: tuple[str, ...]
    shared: int
    share: Fraction

    @property
    def sound(self) -> bool:
        """Half the rows agree, or a third of them with half the time; two, or the only one.

        Time alone is no vote: of 13 rows that lost calls at random, two heavy ones may agree.
        """
        votes = len(self.agreeing)
        most = 2 * votes >= self.shared or (3 * votes >= self.shared and 2 * self.share >= 1)
        return self.some and most

    @property
    def some(self) -> bool:
        """Two rows agree, or the only one."""
        return self.shared > 0 and len(self.agreeing) >= min(2, self.shared)


def agrees(calls: Calls, ratio: Fraction) -> bool:
    """Tell whether a row's calls follow a ratio: within 0.5 %, or 3 events if that is under 1 %.

    Symmetric: swapping the sides and inverting the ratio gives the same answer.
    """
    new_scaled = calls.new * ratio.denominator
    base_scaled = calls.base * ratio.numerator
    gap, size = abs(new_scaled - base_scaled), max(new_scaled, base_scaled)
    if gap * WITHIN <= size:
        return True
    event = max(ratio.numerator, ratio.denominator)
    return gap <= SLACK_EVENTS * event and gap * SLACK_WITHIN <= size


def common_ratio(rows: Iterable[Calls]) -> Consensus | None:
    """Give the ratio most rows follow, by time where equally many do; None without shared rows."""
    shared = _shared(rows)
    if not shared:
        return None
    heaviest = sorted(shared, key=lambda calls: (-calls.weight_ns, calls.name))[:CANDIDATES]
    followers = {
        ratio: [calls for calls in heaviest if agrees(calls, ratio)]
        for ratio in {Fraction(calls.new, calls.base) for calls in heaviest}
    }
    most = max(_support(ratio, found) for ratio, found in followers.items())
    tied = [ratio for ratio, found in followers.items() if _support(ratio, found) == most]
    best = max(tied, key=lambda ratio: _nearness(ratio, followers[ratio]))
    agreeing = [calls for calls in shared if agrees(calls, best)]
    ratio = Fraction(sum(calls.new for calls in agreeing), sum(calls.base for calls in agreeing))
    return _consensus(shared, ratio)


def support_of(rows: Iterable[Calls], ratio: Fraction) -> Consensus:
    """Say who agrees with a ratio known otherwise."""
    return _consensus(_shared(rows), ratio)


def pass_counts(pairs: Iterable[tuple[int, int]], ratio: Fraction) -> tuple[int, int] | None:
    """Find (base, new) pass counts that the per-rank calls of the rows are multiples of.

    A row supports a pair of pass counts when both its calls are the same multiple of them, less up
    to three lost events a side. A pair needs the support of at least half of the distinct rows, and
    of three. The result is in lowest terms: what is known is the ratio.
    """
    distinct = sorted(set(pairs))
    if len(distinct) < ROWS_FOR_PASSES or min(map(min, distinct)) < 1:
        return None
    best = max(_candidate_passes(distinct, ratio), key=lambda passes: _multiples(distinct, passes))
    support, _, _ = _multiples(distinct, best)
    if support < max(ROWS_FOR_PASSES, -(-len(distinct) // 2)):
        return None
    shrink = gcd(*best)
    return best[0] // shrink, best[1] // shrink


def _shared(rows: Iterable[Calls]) -> list[Calls]:
    return sorted(
        (calls for calls in rows if calls.base and calls.new), key=lambda calls: calls.name
    )


def _consensus(shared: Sequence[Calls], ratio: Fraction) -> Consensus:
    agreeing = [calls for calls in shared if agrees(calls, ratio)]
    weight = sum(calls.weight_ns for calls in shared)
    share = Fraction(sum(calls.weight_ns for calls in agreeing), weight or 1)
    return Consensus(ratio, tuple(calls.name for calls in agreeing), len(shared), share)


def _support(ratio: Fraction, agreeing: Sequence[Calls]) -> tuple[int, int, Fraction]:
    """Rank a candidate; every part is the same when the sides are swapped."""
    by_time = sum(calls.weight_ns for calls in agreeing)
    return len(agreeing), by_time, -max(ratio, 1 / ratio)


def _nearness(ratio: Fraction, agreeing: Sequence[Calls]) -> tuple[Fraction, str]:
    """Rank candidates of equal support, the same when the sides are swapped as well."""
    off = (abs(calls.new / ratio / calls.base - 1) for calls in agreeing)
    return -sum(off, start=Fraction(0)), min(calls.name for calls in agreeing)


def _candidate_passes(pairs: Sequence[tuple[int, int]], ratio: Fraction) -> list[tuple[int, int]]:
    largest = min(MAX_PASSES, max(map(max, pairs)))
    found = {(size, round(size * ratio)) for size in range(1, largest + 1)}
    found |= {(round(size / ratio), size) for size in range(1, largest + 1)}
    return sorted(passes for passes in found if min(passes) >= 1)


def _multiples(
    pairs: Sequence[tuple[int, int]], passes: tuple[int, int]
) -> tuple[int, int, tuple[int, int]]:
    """Rank a pair of pass counts: support, then least residual, then the smaller counts."""
    base_passes, new_passes = passes
    lost = min(SLACK_EVENTS, min(passes) // 16)
    support = residual = 0
    for base, new in pairs:
        times = (2 * base + base_passes) // (2 * base_passes)
        gap = max(abs(base - times * base_passes), abs(new - times * new_passes))
        if times and gap <= lost:
            support += 1
            residual += gap
    return support, -residual, (-max(passes), -min(passes))
