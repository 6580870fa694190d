"""Rows of a comparison: one per category and, inside it, one per kernel, with both sides' sums.

Rows are joined by category and raw name, never by position, and hold integer nanoseconds, so that
their sum is the sum of the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from agent.core.rules import CategoryId, LabelledTrace, RuleId

Status = Literal["both", "new", "gone"]


@dataclass(frozen=True, slots=True)
class Side:
    """Events of one row on one side."""

    count: int = 0
    time_ns: int = 0

    def __add__(self, other: Side) -> Side:
        return Side(self.count + other.count, self.time_ns + other.time_ns)

    @property
    def per_call_ns(self) -> Fraction | None:
        """Mean duration, exact; None without events."""
        return Fraction(self.time_ns, self.count) if self.count else None


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel of one category.

    `base_names` and `new_names` hold the raw names on each side: one, or several where spellings
    were matched (`agent.compare.aliases`); empty on a side that does not have the kernel.
    `replayed_ns` is the part of both sides' time that came from graph replays.
    """

    category: CategoryId
    base_names: tuple[str, ...]
    new_names: tuple[str, ...]
    base: Side
    new: Side
    rules: tuple[RuleId, ...] = ()
    ops: tuple[str, ...] = ()
    replayed_ns: int = 0

    @property
    def name(self) -> str:
        """The name to show: the base side's where it has one."""
        return (self.base_names or self.new_names)[0]

    @property
    def status(self) -> Status:
        """On which sides the kernel ran."""
        return status_of(self.base, self.new)

    @property
    def delta_ns(self) -> int:
        """New minus base."""
        return self.new.time_ns - self.base.time_ns

    def merged(self, other: KernelRow) -> KernelRow:
        """Add a row of the same kernel in another spelling."""
        return KernelRow(
            self.category,
            tuple(sorted({*self.base_names, *other.base_names})),
            tuple(sorted({*self.new_names, *other.new_names})),
            self.base + other.base,
            self.new + other.new,
            tuple(sorted({*self.rules, *other.rules})),
            tuple(sorted({*self.ops, *other.ops})),
            self.replayed_ns + other.replayed_ns,
        )


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """One category and its kernels; its sums are those of its kernels."""

    category: CategoryId
    base: Side
    new: Side
    kernels: tuple[KernelRow, ...]

    @property
    def status(self) -> Status:
        """On which sides the category occurs."""
        return status_of(self.base, self.new)

    @property
    def delta_ns(self) -> int:
        """New minus base."""
        return self.new.time_ns - self.base.time_ns


def status_of(base: Side, new: Side) -> Status:
    """Tell on which sides there are events; a row with none on either counts as `both`."""
    if base.count and not new.count:
        return "gone"
    return "new" if new.count and not base.count else "both"


def kernel_rows(
    base: LabelledTrace, new: LabelledTrace, *, rollup: bool = False
) -> tuple[KernelRow, ...]:
    """Join the kernels of two traces by category and raw name, sorted by both."""
    rows: dict[tuple[str, str], KernelRow] = {}
    for row in (*_side_rows(base, rollup=rollup), *map(_mirrored, _side_rows(new, rollup=rollup))):
        key = (row.category, row.name)
        rows[key] = rows[key].merged(row) if key in rows else row
    return tuple(rows[key] for key in sorted(rows))


def category_rows(kernels: Iterable[KernelRow]) -> tuple[CategoryRow, ...]:
    """Group kernels by category; most time over both sides first, then by name."""
    groups: dict[CategoryId, list[KernelRow]] = {}
    for row in kernels:
        groups.setdefault(row.category, []).append(row)
    rows = [
        CategoryRow(
            category,
            sum((row.base for row in group), Side()),
            sum((row.new for row in group), Side()),
            tuple(sorted(group, key=_most_time_first)),
        )
        for category, group in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-_both_ns(row), row.category)))


def total_of(rows: Iterable[CategoryRow | KernelRow]) -> tuple[Side, Side]:
    """Add up both sides of rows."""
    base, new = Side(), Side()
    for row in rows:
        base, new = base + row.base, new + row.new
    return base, new


def by_category(rows: Iterable[CategoryRow]) -> Mapping[CategoryId, CategoryRow]:
    """Index rows by their category."""
    return {row.category: row for row in rows}


def _side_rows(labelled: LabelledTrace, *, rollup: bool) -> list[KernelRow]:
    rows = []
    for signature, stats in labelled.stats.items():
        label = labelled.labels[signature]
        category = label.category
        if rollup:
            category = CategoryId(labelled.ruleset.rollup_of(category))
        rows.append(
            KernelRow(
                category,
                (signature.name,),
                (),
                Side(stats.count, stats.time_ns),
                Side(),
                (label.rule_id,) if label.rule_id else (),
                (signature.op,) if signature.op else (),
                stats.time_ns if signature.replayed else 0,
            )
        )
    return rows


def _mirrored(row: KernelRow) -> KernelRow:
    return replace(
        row, base_names=row.new_names, new_names=row.base_names, base=row.new, new=row.base
    )


def _both_ns(row: CategoryRow | KernelRow) -> int:
    return row.base.time_ns + row.new.time_ns


def _most_time_first(row: KernelRow) -> tuple[int, tuple[str, ...]]:
    return (-_both_ns(row), tuple(sorted({*row.base_names, *row.new_names})))
