"""Where to look: each introduced or grown cost, its upper bound, the source lines of its rules.

An introduced cost is a category that only the new side has. Inside the other categories it is a
kernel that only the new side has, or one that takes longer than the work explains. Bounds are in
the new side's time, at the new side's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from agent.compare.cited import evidence_of
from agent.compare.replaced import Replacement
from agent.compare.rows import CategoryRow, KernelRow
from agent.core.proposals import Evidence
from agent.core.rules import CategoryId, Grade, LabelledTrace, RuleId, RuleSet

LEAST_SHARE = Fraction(1, 1_000)
"""Of the new side's time: a kernel that costs less more than before is no target."""

Cites = tuple[RuleId, tuple[Evidence, ...]]
_RuleTimes = Mapping[tuple[str, str], Mapping[RuleId, int]]


@dataclass(frozen=True, slots=True)
class TargetRule:
    """A rule that put time into a cost, with its evidence of the kernels of that cost.

    `relative` tells that it cites none of them, but other kernels: then `evidence` is of those.
    """

    rule_id: RuleId
    grade: Grade
    source: str
    line: int
    time_ns: int
    evidence: tuple[Evidence, ...]
    relative: bool = False

    @property
    def cites(self) -> Cites:
        """What a report says of it once: the rule with its evidence."""
        return self.rule_id, self.evidence


@dataclass(frozen=True, slots=True)
class Target:
    """One introduced cost; removing it altogether saves at most `bound_ns` of kernel time."""

    category: CategoryId
    bound_ns: int
    count: int
    rules: tuple[TargetRule, ...]

    @property
    def pinned(self) -> bool:
        """Tell whether some rule cites source lines."""
        return any(rule.evidence for rule in self.rules)


@dataclass(frozen=True, slots=True)
class KernelTarget:
    """One kernel that costs more, inside a category both sides have.

    Attributes:
        bound_ns: what undoing it saves at most: all time of an introduced kernel, else the growth.
        cost_ns: what it adds, and its place in the list: an introduced kernel's time over that of
            the one whose place it may have taken, or over that of the kernels gone beside it.
        replaces: the name of the kernel whose place it may have taken, a guess; "" without one.
    """

    row: KernelRow
    bound_ns: int
    cost_ns: int
    replaces: str
    rules: tuple[TargetRule, ...]

    @property
    def kind(self) -> Literal["introduced", "grown"]:
        """Tell a kernel that only the new side has from one that grew."""
        return "introduced" if self.row.status == "new" else "grown"

    @property
    def pinned(self) -> bool:
        """Tell whether some rule cites source lines."""
        return any(rule.evidence for rule in self.rules)


def find_targets(
    rows: Iterable[CategoryRow], new: LabelledTrace, *, rollup: bool = False
) -> tuple[Target, ...]:
    """List the categories that only the new side has, the largest first."""
    introduced = [row for row in rows if row.status == "new"]
    times = _rule_times(new, rollup=rollup) if introduced else {}
    targets = [
        Target(
            row.category,
            row.new.time_ns,
            row.new.count,
            _cited(times, row.kernels, new.ruleset),
        )
        for row in introduced
    ]
    return tuple(sorted(targets, key=lambda target: (-target.bound_ns, target.category)))


def find_kernel_targets(
    rows: Iterable[CategoryRow],
    new: LabelledTrace,
    replacements: Iterable[Replacement],
    *,
    scale: Fraction = Fraction(1),
    rollup: bool = False,
) -> tuple[KernelTarget, ...]:
    """List the kernels that cost more inside the other categories, what adds most first."""
    places: dict[tuple[str, str], KernelRow] = {
        (pair.new.category, pair.new.name): pair.old for pair in replacements
    }
    least_ns = LEAST_SHARE * new.trace.kernel_ns
    costs = [
        cost
        for row in rows
        if row.status != "new"
        for cost in _costs(row, places, scale)
        if cost.cost_ns >= least_ns and cost.cost_ns
    ]
    times = _rule_times(new, rollup=rollup) if costs else {}
    targets = [
        KernelTarget(
            cost.row,
            cost.row.new.time_ns if cost.row.status == "new" else cost.cost_ns,
            cost.cost_ns,
            cost.replaces,
            _cited(times, (cost.row,), new.ruleset),
        )
        for cost in costs
    ]
    return tuple(sorted(targets, key=_costliest_first))


@dataclass(frozen=True, slots=True)
class _Cost:
    row: KernelRow
    cost_ns: int
    replaces: str = ""


def _costs(
    row: CategoryRow, places: Mapping[tuple[str, str], KernelRow], scale: Fraction
) -> list[_Cost]:
    """Give what each kernel of a category adds; unpaired ones no more than all of them together."""
    costs, unpaired = [], []
    gone_ns = sum(kernel.base.time_ns for kernel in row.kernels if kernel.status == "gone")
    for kernel in row.kernels:
        place = places.get((kernel.category, kernel.name)) if kernel.status == "new" else None
        if place is not None:
            gone_ns -= place.base.time_ns
            costs.append(_Cost(kernel, _growth(kernel, place, scale), place.name))
        elif kernel.status == "new":
            unpaired.append(kernel)
        elif kernel.status == "both":
            costs.append(_Cost(kernel, _growth(kernel, kernel, scale)))
    together = sum(kernel.new.time_ns for kernel in unpaired) - round(gone_ns * scale)
    costs += [_Cost(kernel, min(kernel.new.time_ns, max(0, together))) for kernel in unpaired]
    return costs


def _growth(after: KernelRow, before: KernelRow, scale: Fraction) -> int:
    return after.new.time_ns - round(before.base.time_ns * scale)


def _costliest_first(target: KernelTarget) -> tuple[int, str, str]:
    return (-target.cost_ns, target.row.category, target.row.name)


def _rule_times(labelled: LabelledTrace, *, rollup: bool) -> _RuleTimes:
    times: dict[tuple[str, str], dict[RuleId, int]] = {}
    for signature, stats in labelled.stats.items():
        label = labelled.labels[signature]
        if label.rule_id is None:
            continue
        row = labelled.ruleset.rollup_of(label.category) if rollup else label.category
        of_kernel = times.setdefault((row, signature.name), {})
        of_kernel[label.rule_id] = of_kernel.get(label.rule_id, 0) + stats.time_ns
    return times


def _cited(
    times: _RuleTimes, kernels: Iterable[KernelRow], ruleset: RuleSet
) -> tuple[TargetRule, ...]:
    sums: dict[RuleId, int] = {}
    named: dict[RuleId, list[str]] = {}
    for kernel in kernels:
        for name in kernel.new_names:
            for rule_id, time_ns in times.get((kernel.category, name), {}).items():
                sums[rule_id] = sums.get(rule_id, 0) + time_ns
                named.setdefault(rule_id, []).append(name)
    cited = []
    for rule_id, time_ns in sums.items():
        rule = ruleset.by_id[rule_id]
        evidence, relative = evidence_of(rule.evidence, named[rule_id])
        cited.append(
            TargetRule(
                rule_id, rule.grade, rule.source, rule.line, time_ns, evidence, relative=relative
            )
        )
    return tuple(sorted(cited, key=lambda rule: (-rule.time_ns, rule.rule_id)))
