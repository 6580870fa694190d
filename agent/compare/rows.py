"""Rows of a comparison: one per category and, inside it, one per kernel, with both sides' sums.

Rows are joined by category and raw name, never by position, and hold integer nanoseconds, so that
their sum is the sum of the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from agent.core.kernels import Signature, SignatureStats
from agent.core.rules import CategoryId, Label, LabelledTrace, RuleId

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
    sides: dict[tuple[CategoryId, str], tuple[list[_Part], list[_Part]]] = {}
    for at, labelled in enumerate((base, new)):
        for signature, stats in labelled.stats.items():
            label = labelled.labels[signature]
            category = label.category
            if rollup:
                category = CategoryId(labelled.ruleset.rollup_of(category))
            parts = sides.setdefault((category, signature.name), ([], []))
            parts[at].append((signature, stats, label))
    return tuple(_kernel_row(*key, *sides[key]) for key in sorted(sides))


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


_Part = tuple[Signature, SignatureStats, Label]
"""What one signature brings to the row of its kernel."""


def _kernel_row(
    category: CategoryId, name: str, before: Sequence[_Part], after: Sequence[_Part]
) -> KernelRow:
    every = (*before, *after)
    return KernelRow(
        category,
        (name,) if before else (),
        (name,) if after else (),
        _side(before),
        _side(after),
        tuple(sorted({label.rule_id for _, _, label in every if label.rule_id})),
        tuple(sorted({signature.op for signature, _, _ in every if signature.op})),
        sum(stats.time_ns for signature, stats, _ in every if signature.replayed),
    )


def _side(parts: Sequence[_Part]) -> Side:
    return Side(
        sum(stats.count for _, stats, _ in parts), sum(stats.time_ns for _, stats, _ in parts)
    )


def _both_ns(row: CategoryRow | KernelRow) -> int:
    return row.base.time_ns + row.new.time_ns


def _most_time_first(row: KernelRow) -> tuple[int, tuple[str, ...]]:
    return (-_both_ns(row), tuple(sorted({*row.base_names, *row.new_names})))
