"""The ledger of a comparison: costs introduced, other costs, savings, and their exact net.

An introduced cost is a category that only the new side has. A category that is gone is a saving.
Two ledgers exist where the sides did unequal work: of the raw sums, and of the new side scaled to
the base's work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from agent.compare.figures import rounded_to_sum
from agent.compare.rows import CategoryRow, Status
from agent.core.rules import CategoryId


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One category's difference; positive is a cost."""

    category: CategoryId
    delta_ns: int
    status: Status


@dataclass(frozen=True, slots=True)
class Ledger:
    """Entries by kind, the largest first.

    `unclaimed` holds every entry, and the other three none, where the capture does not allow a
    claim. All entries add up to `net_ns`.
    """

    introduced: tuple[LedgerEntry, ...]
    costs: tuple[LedgerEntry, ...]
    savings: tuple[LedgerEntry, ...]
    unclaimed: tuple[LedgerEntry, ...]

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """All entries: introduced, costs, savings, unclaimed."""
        return (*self.introduced, *self.costs, *self.savings, *self.unclaimed)

    @property
    def introduced_ns(self) -> int:
        """Sum of what only the new side has."""
        return sum(entry.delta_ns for entry in self.introduced)

    @property
    def existing_ns(self) -> int:
        """Sum over the other categories: costs less savings."""
        return sum(entry.delta_ns for entry in (*self.costs, *self.savings))

    @property
    def net_ns(self) -> int:
        """The difference of the totals."""
        return sum(entry.delta_ns for entry in self.entries)


def build_ledger(
    rows: Iterable[CategoryRow], *, ratio: Fraction = Fraction(1), claimed: bool = True
) -> Ledger:
    """Sort differences into a ledger.

    Args:
        rows: the category rows.
        ratio: work of the new side in units of the base's, see `nets_at_equal_work`.
        claimed: False puts everything under `unclaimed`.
    """
    rows = list(rows)
    nets = nets_at_equal_work(rows, ratio)
    entries = [
        LedgerEntry(row.category, net_ns, row.status)
        for row, net_ns in zip(rows, nets, strict=True)
    ]
    moved = sorted(
        (entry for entry in entries if entry.delta_ns),
        key=lambda entry: (-abs(entry.delta_ns), entry.category),
    )
    if not claimed:
        return Ledger((), (), (), tuple(moved))
    introduced = tuple(entry for entry in moved if entry.status == "new")
    existing = [entry for entry in moved if entry.status != "new"]
    costs = tuple(entry for entry in existing if entry.delta_ns > 0)
    return Ledger(introduced, costs, tuple(entry for entry in existing if entry.delta_ns < 0), ())


def nets_at_equal_work(rows: Iterable[CategoryRow], ratio: Fraction) -> list[int]:
    """Give each row's new time divided by the ratio, less the base's, in whole nanoseconds.

    They add up to the difference of the totals at equal work, rounded once.
    """
    return rounded_to_sum([row.new.time_ns / ratio - row.base.time_ns for row in rows])
