"""What a change of one row means for the total: per-call change times share.

A kernel that became 34 % faster at 0.02 % of the time changes the total by 0.007 %. A row's
difference splits exactly into a part from the number of calls and a part from their duration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from agent.compare.rows import CategoryRow, KernelRow, Side
from agent.core.rules import CategoryId


@dataclass(frozen=True, slots=True)
class Impact:
    """Effect of one row on the total; fractions of 1, exact.

    Attributes:
        name: the kernel's name, or "" for the whole category.
        became: the suggested successor's name where two kernels were paired, else "".
        share: of the base's total time; of the new side's for a row only it has.
        per_call: relative change of the mean duration; None on a row of one side.
        effect: `per_call * share`: what the total changes by at the base's number of calls. For a
            row of one side, its whole time as a share of the base's total, with sign.
        calls_ns: part of the difference that comes from more or fewer calls, rounded.
    """

    category: CategoryId
    name: str
    became: str
    share: Fraction
    per_call: Fraction | None
    effect: Fraction
    calls_ns: int


def impact_of(
    category: CategoryId,
    base: Side,
    new: Side,
    *,
    totals: tuple[int, int],
    name: str = "",
    became: str = "",
) -> Impact:
    """Work out one row's impact; `totals` are the base's and the new side's total times in ns."""
    base_total, new_total = totals
    if not base.count:
        share = Fraction(new.time_ns, new_total or 1)
        effect = Fraction(new.time_ns, base_total or 1)
        return Impact(category, name, became, share, None, effect, new.time_ns)
    share = Fraction(base.time_ns, base_total or 1)
    if not new.count:
        return Impact(category, name, became, share, None, -share, -base.time_ns)
    before, after = Fraction(base.time_ns, base.count), Fraction(new.time_ns, new.count)
    per_call = after / before - 1 if before else Fraction(0)
    calls_ns = round((new.count - base.count) * before)
    return Impact(category, name, became, share, per_call, per_call * share, calls_ns)


def category_impacts(rows: Iterable[CategoryRow], totals: tuple[int, int]) -> tuple[Impact, ...]:
    """Give every category's impact, the largest effect first."""
    return by_effect(impact_of(row.category, row.base, row.new, totals=totals) for row in rows)


def kernel_impacts(rows: Iterable[KernelRow], totals: tuple[int, int]) -> tuple[Impact, ...]:
    """Give the impact of every kernel that both sides ran, the largest effect first."""
    impacts = (
        impact_of(row.category, row.base, row.new, totals=totals, name=row.name)
        for row in rows
        if row.status == "both"
    )
    return by_effect(impacts)


def by_effect(impacts: Iterable[Impact]) -> tuple[Impact, ...]:
    """Order impacts, the largest effect first."""
    return tuple(sorted(impacts, key=_largest_first))


def _largest_first(impact: Impact) -> tuple[Fraction, Fraction, str, str]:
    return (-abs(impact.effect), -impact.share, impact.category, impact.name)
