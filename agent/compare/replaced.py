"""Suggest which kernel took whose place: a guess by category, launching op and calls, marked so.

A pair is one kernel only the base has and one only the new side has, in one category, launched by
the same ops, and called about equally often per unit of work (or the only two). Nothing is summed
over pairs and no figure of the table depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from agent.compare.consensus import Calls, agrees
from agent.compare.impact import Against, Impact, kernel_impact
from agent.compare.rows import CategoryRow, KernelRow
from agent.core.rules import UNLABELLED

CONSIDERED = 40


@dataclass(frozen=True, slots=True)
class Replacement:
    """Two kernels that may have the same task."""

    old: KernelRow
    new: KernelRow

    def impact(self, against: Against) -> Impact:
        """Give what the succession, if it is one, means for the total."""
        return kernel_impact(self.old, self.new, against, became=self.new.name)


def suggest_replacements(
    rows: Iterable[CategoryRow], scale: Fraction = Fraction(1)
) -> tuple[Replacement, ...]:
    """Suggest pairs within each named category, those with the most time first."""
    pairs = [
        pair
        for row in rows
        if row.category != UNLABELLED
        for group in _one_sided(row).values()
        for pair in _pair_up(group, scale)
    ]
    return tuple(sorted(pairs, key=_most_time_first))


def _one_sided(row: CategoryRow) -> dict[tuple[str, ...], list[KernelRow]]:
    groups: dict[tuple[str, ...], list[KernelRow]] = {}
    for kernel in row.kernels:
        if kernel.status != "both":
            groups.setdefault(kernel.ops, []).append(kernel)
    return groups


def _pair_up(group: list[KernelRow], scale: Fraction) -> list[Replacement]:
    gone = [kernel for kernel in group if kernel.status == "gone"][:CONSIDERED]
    fresh = [kernel for kernel in group if kernel.status == "new"][:CONSIDERED]
    if len(gone) == len(fresh) == 1:
        return [Replacement(gone[0], fresh[0])]
    candidates = [
        Replacement(old, new)
        for old in gone
        for new in fresh
        if agrees(Calls("", old.base.count, new.new.count, 0), scale)
    ]
    taken: set[str] = set()
    pairs = []
    for pair in sorted(candidates, key=_closest_first):
        if pair.old.name not in taken and pair.new.name not in taken:
            taken |= {pair.old.name, pair.new.name}
            pairs.append(pair)
    return pairs


def _closest_first(pair: Replacement) -> tuple[Fraction, list[str]]:
    times = sorted((pair.old.base.time_ns + 1, pair.new.new.time_ns + 1))
    return (Fraction(times[1], times[0]), sorted((pair.old.name, pair.new.name)))


def _most_time_first(pair: Replacement) -> tuple[int, list[str]]:
    return (
        -(pair.old.base.time_ns + pair.new.new.time_ns),
        sorted((pair.old.name, pair.new.name)),
    )
