"""Spread over ranks, steps or repeated runs, and which differences stand outside it.

Non-parametric and exact, so nothing is drawn and nothing depends on order. The same ranks on both
sides are compared rank by rank with a sign test; otherwise the samples of both sides are compared
with the median test. `chance` is the probability, two-sided, of a split at least as lopsided if the
change did nothing. New times are first divided by the work ratio, but for steps, each of which is
one unit of work. Ranks and steps of one run share a clock, a job and its accidents: their spread is
smaller than that between runs. docs/decisions/0081 has the reasons.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Literal

from agent.compare.steps import step_times
from agent.core.kernels import RankTrace, kernels_of
from agent.core.rules import CategoryId, LabelledTrace

OUTSIDE = Fraction(1, 20)

Exact = int | Fraction
Times = Mapping[CategoryId, int] | Mapping[CategoryId, Exact]
NoiseUnit = Literal["runs", "ranks", "steps", "none"]


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest, middle and largest of a side's samples, in ns."""

    low: Fraction
    median: Fraction
    high: Fraction


@dataclass(frozen=True, slots=True)
class Spread:
    """One category's samples on both sides, the new ones at the base's work.

    Attributes:
        delta: per pair where paired, else of the medians in all three places.
        risen, fallen: samples on either side of no change; for unpaired samples, new ones above
            and not above the middle of all.
        outside: the difference stands outside the spread; None when there are too few samples for
            any split to say so.
    """

    category: CategoryId
    base: Range
    new: Range
    delta: Range
    risen: int
    fallen: int
    chance: Fraction
    outside: bool | None


@dataclass(frozen=True, slots=True)
class Noise:
    """What the spread was taken over, and it, by category."""

    unit: NoiseUnit
    paired: bool
    n_base: int
    n_new: int
    spreads: tuple[Spread, ...] = ()

    @property
    def can_tell(self) -> bool:
        """Tell whether there are enough samples for a difference to stand outside."""
        return self.unit != "none" and _least_chance(self) <= OUTSIDE


def measure_noise(
    base: Sequence[LabelledTrace],
    new: Sequence[LabelledTrace],
    *,
    scale: Fraction = Fraction(1),
    run_scales: tuple[Sequence[Fraction], Sequence[Fraction]] = ((), ()),
    rollup: bool = False,
    stepwise: bool = False,
) -> Noise:
    """Measure the spread of two sides, each one run or several.

    Several runs on both sides are compared run by run, else the ranks of the first runs, or their
    steps where ranks are too few to tell and `stepwise` says that steps are the work. `scale` is
    the work of the first new run in units of the first base run's, `run_scales` that of every run.
    """
    if len(base) > 1 and len(new) > 1:
        befores = [_run_times(run, rollup=rollup) for run in base]
        afters = [_run_times(run, rollup=rollup) for run in new]
        noise = Noise("runs", paired=False, n_base=len(base), n_new=len(new))
        return _judge(
            noise,
            list(map(_at_equal_work, befores, run_scales[0])),
            list(map(_at_equal_work, afters, run_scales[1])),
        )
    over_ranks = _over_ranks(base[0], new[0], scale, rollup=rollup)
    if over_ranks.can_tell or not stepwise:
        return over_ranks
    over_steps = _over_steps(base[0], new[0], rollup=rollup)
    return over_steps if over_steps.can_tell or over_ranks.unit == "none" else over_ranks


def _over_ranks(base: LabelledTrace, new: LabelledTrace, scale: Fraction, *, rollup: bool) -> Noise:
    before, after = _rank_times(base, rollup=rollup), _rank_times(new, rollup=rollup)
    if len(before) < 2 or len(after) < 2:
        return Noise("none", paired=False, n_base=len(before), n_new=len(after))
    paired = before.keys() == after.keys()
    noise = Noise("ranks", paired=paired, n_base=len(before), n_new=len(after))
    return _judge(
        noise,
        [before[key] for key in sorted(before)],
        [_at_equal_work(after[key], scale) for key in sorted(after)],
    )


def _over_steps(base: LabelledTrace, new: LabelledTrace, *, rollup: bool) -> Noise:
    before, after = step_times(base, rollup=rollup), step_times(new, rollup=rollup)
    if len(before) < 2 or len(after) < 2:
        return Noise("none", paired=False, n_base=len(before), n_new=len(after))
    noise = Noise("steps", paired=False, n_base=len(before), n_new=len(after))
    return _judge(noise, before, after)


def _judge(noise: Noise, befores: Sequence[Times], afters: Sequence[Times]) -> Noise:
    categories = sorted({category for times in (*befores, *afters) for category in times})
    spreads = [
        _spread(
            noise,
            category,
            [times.get(category, 0) for times in befores],
            [times.get(category, 0) for times in afters],
        )
        for category in categories
    ]
    return Noise(noise.unit, noise.paired, noise.n_base, noise.n_new, tuple(spreads))


def _at_equal_work(times: Times, work: Fraction) -> Times:
    """Divide by the work; whole numbers stay whole where they can: fractions are slow to order."""
    return times if work == 1 else {category: time / work for category, time in times.items()}


def _spread(
    noise: Noise, category: CategoryId, before: Sequence[Exact], after: Sequence[Exact]
) -> Spread:
    base, new = _range(before), _range(after)
    if noise.paired:
        deltas = [later - earlier for earlier, later in zip(before, after, strict=True)]
        delta = _range(deltas)
        risen, fallen = sum(d > 0 for d in deltas), sum(d < 0 for d in deltas)
        chance = sign_chance(risen, fallen)
    else:
        middle = new.median - base.median
        delta = Range(middle, middle, middle)
        centre = _median([*before, *after])
        risen = _n_above(after, centre)
        fallen = len(after) - risen
        above = risen + _n_above(before, centre)
        chance = median_chance(risen, above, len(after), len(before) + len(after))
    outside = chance <= OUTSIDE if noise.can_tell else None
    return Spread(category, base, new, delta, risen, fallen, chance, outside)


def sign_chance(risen: int, fallen: int) -> Fraction:
    """Give the chance that `risen + fallen` fair coins fall at least as one-sidedly."""
    total, most = risen + fallen, max(risen, fallen)
    tail = sum(comb(total, count) for count in range(most, total + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**total))


@lru_cache(maxsize=256)
def median_chance(above_new: int, above: int, n_new: int, total: int) -> Fraction:
    """Give the chance of as lopsided a share of the `above` largest samples for the new side."""
    of_new, of_base = _choices(n_new), _choices(total - n_new)

    def ways(count: int) -> int:
        rest = above - count
        return of_new[count] * of_base[rest] if 0 <= rest < len(of_base) else 0

    all_ways = comb(total, above)
    if 2 * above_new <= n_new:  # the shorter tail is added up; with its edge both make the whole
        tail = sum(map(ways, range(above_new + 1)))
    else:
        tail = sum(map(ways, range(above_new, n_new + 1)))
    tail = min(tail, all_ways - tail + ways(above_new))
    return min(Fraction(1), Fraction(2 * tail, all_ways))


@lru_cache(maxsize=4)
def _choices(n: int) -> tuple[int, ...]:
    """Give the ways to choose 0, 1, ... n of n things; every category asks for the same two."""
    return tuple(comb(n, count) for count in range(n + 1))


def _least_chance(noise: Noise) -> Fraction:
    if noise.paired:
        return sign_chance(noise.n_base, 0)
    total = noise.n_base + noise.n_new
    return median_chance(min(noise.n_new, total // 2), total // 2, noise.n_new, total)


def _range(values: Sequence[Exact]) -> Range:
    return Range(Fraction(min(values)), _median(values), Fraction(max(values)))


def _n_above(values: Sequence[Exact], limit: Fraction) -> int:
    """Count the values above a limit; few of many are compared, since fractions are slow to."""
    return len(values) - bisect_right(sorted(values), limit)


def _median(values: Sequence[Exact]) -> Fraction:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return Fraction(ordered[middle])
    return Fraction(ordered[middle - 1] + ordered[middle]) / 2


def _run_times(labelled: LabelledTrace, *, rollup: bool) -> Times:
    times: dict[CategoryId, int] = {}
    for rank in labelled.trace.ranks:
        _add_times(times, labelled, rank, rollup=rollup)
    return times


def _rank_times(labelled: LabelledTrace, *, rollup: bool) -> dict[str, Times]:
    """Give times per rank; the stages of one rank are added up."""
    ranks: dict[str, dict[CategoryId, int]] = {}
    for rank in labelled.trace.ranks:
        key = rank.label if rank.rank is None else f"{rank.rank:09d}"
        _add_times(ranks.setdefault(key, {}), labelled, rank, rollup=rollup)
    return dict(ranks)


def _add_times(
    times: dict[CategoryId, int], labelled: LabelledTrace, rank: RankTrace, *, rollup: bool
) -> None:
    for signature, stats in kernels_of(rank.stats).items():
        category = labelled.labels[signature].category
        if rollup:
            category = CategoryId(labelled.ruleset.rollup_of(category))
        times[category] = times.get(category, 0) + stats.time_ns
