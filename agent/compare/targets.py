"""Where to look: for each introduced cost its upper bound and the source lines of its rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.compare.rows import CategoryRow
from agent.core.proposals import Evidence
from agent.core.rules import CategoryId, Grade, LabelledTrace, RuleId, RuleSet


@dataclass(frozen=True, slots=True)
class TargetRule:
    """A rule that put time into an introduced category, with the evidence it cites."""

    rule_id: RuleId
    grade: Grade
    source: str
    line: int
    time_ns: int
    evidence: tuple[Evidence, ...]


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


def find_targets(
    rows: Iterable[CategoryRow], new: LabelledTrace, *, rollup: bool = False
) -> tuple[Target, ...]:
    """List the categories that only the new side has, the largest first."""
    introduced = {row.category: row for row in rows if row.status == "new"}
    times = _rule_times(new, rollup=rollup) if introduced else {}
    targets = [
        Target(
            category,
            row.new.time_ns,
            row.new.count,
            _cited(times.get(category, {}), new.ruleset),
        )
        for category, row in introduced.items()
    ]
    return tuple(sorted(targets, key=lambda target: (-target.bound_ns, target.category)))


def _rule_times(labelled: LabelledTrace, *, rollup: bool) -> dict[str, dict[RuleId, int]]:
    times: dict[str, dict[RuleId, int]] = {}
    for signature, stats in labelled.stats.items():
        label = labelled.labels[signature]
        if label.rule_id is None:
            continue
        row = labelled.ruleset.rollup_of(label.category) if rollup else label.category
        of_row = times.setdefault(row, {})
        of_row[label.rule_id] = of_row.get(label.rule_id, 0) + stats.time_ns
    return times


def _cited(times: dict[RuleId, int], ruleset: RuleSet) -> tuple[TargetRule, ...]:
    cited = []
    for rule_id, time_ns in times.items():
        rule = ruleset.by_id[rule_id]
        cited.append(
            TargetRule(rule_id, rule.grade, rule.source, rule.line, time_ns, rule.evidence)
        )
    return tuple(sorted(cited, key=lambda rule: (-rule.time_ns, rule.rule_id)))
