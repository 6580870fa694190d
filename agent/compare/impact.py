"""What a change of one row means for the total, as two effects that add up to its difference.

Calls that became shorter or longer: change per call times share, at the base's number of calls. And
more or fewer calls, at the new duration. A kernel that became 34 % faster at 0.02 % of the time
changes the total by 0.007 %. New times and calls are divided by the work ratio first, so that the
effects of all categories add up to the difference at equal work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from agent.compare.consensus import Calls, agrees
from agent.compare.figures import fraction_of
from agent.compare.ledger import nets_at_equal_work
from agent.compare.rows import CategoryRow, KernelRow, Side, Status, status_of
from agent.core.rules import CategoryId


@dataclass(frozen=True, slots=True)
class Against:
    """What impacts are measured against: both sides' total times, and the work ratio."""

    base_ns: int
    new_ns: int
    scale: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Impact:
    """Effect of one row on the total at equal work; fractions of 1, exact.

    Attributes:
        name: the kernel's name, or "" for the whole category.
        became: the suggested successor's name where two kernels were paired, else "".
        net_ns: the difference at equal work, rounded; a category's is that of the ledger.
    """

    category: CategoryId
    name: str
    became: str
    base: Side
    new: Side
    against: Against
    net_ns: int

    @property
    def status(self) -> Status:
        """On which sides the row has calls."""
        return status_of(self.base, self.new)

    @property
    def share(self) -> Fraction:
        """Share of the base's total time; of the new side's for a row only it has."""
        if not self.base.count:
            return fraction_of(self.new.time_ns, self.against.new_ns)
        return fraction_of(self.base.time_ns, self.against.base_ns)

    @property
    def per_call(self) -> Fraction | None:
        """Relative change of the mean duration; None on a row of one side or without time."""
        before, after = self.base.per_call_ns, self.new.per_call_ns
        return after / before - 1 if before and after is not None else None

    @property
    def per_call_effect(self) -> Fraction:
        """Effect of the changed duration: `per_call * share`; 0 on a row of one side."""
        return self._of_total(self._per_call)

    @property
    def calls_effect(self) -> Fraction:
        """Effect of more or fewer calls; the whole time of a row of one side, with sign."""
        return self._of_total(self._net - self._per_call)

    @property
    def effect(self) -> Fraction:
        """Effect on the total: the sum of both."""
        return self._of_total(self._net)

    @property
    def calls_ns(self) -> int:
        """The part of `net_ns` from more or fewer calls, rounded."""
        return round(self._net - self._per_call)

    @property
    def per_call_ns(self) -> int:
        """The part of `net_ns` from the changed duration: what `calls_ns` leaves."""
        return self.net_ns - self.calls_ns

    @property
    def calls_changed(self) -> bool:
        """Tell whether both sides have calls and their ratio is not that of the work."""
        if self.status != "both":
            return False
        return not agrees(Calls("", self.base.count, self.new.count, 0), self.against.scale)

    @property
    def _net(self) -> Fraction:
        return self.new.time_ns / self.against.scale - self.base.time_ns

    @property
    def _per_call(self) -> Fraction:
        after = self.new.per_call_ns
        if after is None or not self.base.count:
            return Fraction(0)
        return self.base.count * after - self.base.time_ns

    def _of_total(self, part: Fraction) -> Fraction:
        return part / self.against.base_ns if self.against.base_ns else Fraction(0)


def category_impacts(rows: Iterable[CategoryRow], against: Against) -> tuple[Impact, ...]:
    """Give every category's impact, the largest effect first."""
    rows = list(rows)
    nets = nets_at_equal_work(rows, against.scale)
    return by_effect(
        Impact(row.category, "", "", row.base, row.new, against, net_ns)
        for row, net_ns in zip(rows, nets, strict=True)
    )


def kernel_impacts(rows: Iterable[KernelRow], against: Against) -> tuple[Impact, ...]:
    """Give the impact of every kernel that both sides ran, the largest effect first."""
    return by_effect(
        kernel_impact(row, row, against, became="") for row in rows if row.status == "both"
    )


def kernel_impact(old: KernelRow, new: KernelRow, against: Against, *, became: str) -> Impact:
    """Give the impact of a kernel, or of one whose place another may have taken."""
    net_ns = round(new.new.time_ns / against.scale - old.base.time_ns)
    return Impact(old.category, old.name, became, old.base, new.new, against, net_ns)


def by_effect(impacts: Iterable[Impact]) -> tuple[Impact, ...]:
    """Order impacts, the largest effect first."""
    return tuple(sorted(impacts, key=_largest_first))


def _largest_first(impact: Impact) -> tuple[Fraction, Fraction, str, str]:
    return (-abs(impact.effect), -impact.share, impact.category, impact.name)
