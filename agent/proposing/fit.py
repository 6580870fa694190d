"""What a pattern would do on a trace: match, miss and steal. The gate judges; this only tells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agent.core.kernels import Signature
from agent.core.rules import UNLABELLED, CategoryId, Label, LabelledTrace, Rule, RuleId
from agent.proposing.families import Family, is_open
from agent.ruleset.match import Matcher, Pattern


@dataclass(frozen=True, slots=True)
class Fit:
    """What one pattern would do on this trace; names are raw and sorted.

    `stolen` are names that rules hold which the family's rule would not override, each with that
    rule; `negatives` are examples of such rules that the pattern also matches.
    """

    matched: tuple[str, ...]
    missed: tuple[str, ...]
    stolen: tuple[tuple[str, str], ...]
    others: tuple[str, ...]
    negatives: tuple[str, ...]


def fit_of(kernel: str, family: Family, labelled: LabelledTrace) -> Fit:
    """Try a pattern that RE2 accepts on every signature of the trace and on other rules' examples.

    As any rule for the family, it overrides the catch-all rules that hold the family now.
    """
    rule = Rule(RuleId("proposed"), CategoryId("Misc"), kernel, "inferred")
    matcher = Matcher(replace(labelled.ruleset, rules=(rule,)))
    own = {member.signature for member in family.members}
    matched, stolen, others = set(), set(), set()
    for signature in labelled.stats:
        if matcher.label(signature).category == UNLABELLED:
            continue
        label = labelled.labels[signature]
        if signature in own:
            matched.add(signature)
        elif _held(signature, label, family.rules_now):
            stolen.add((str(signature.name), str(label.rule_id)))
        else:
            others.add(str(signature.name))
    missed = {str(signature.name) for signature in own - matched}
    return Fit(
        tuple(sorted({str(signature.name) for signature in matched})),
        tuple(sorted(missed)),
        tuple(sorted(stolen)),
        tuple(sorted(others)),
        _negatives(kernel, family.rules_now, labelled.ruleset.rules),
    )


def _held(signature: Signature, label: Label, overridden: tuple[RuleId, ...]) -> bool:
    if label.category == UNLABELLED:
        return False
    return label.rule_id not in overridden or not is_open(signature, label)


def _negatives(
    kernel: str, overridden: tuple[RuleId, ...], rules: Iterable[Rule]
) -> tuple[str, ...]:
    pattern = Pattern(kernel)
    found = {
        example
        for rule in rules
        if rule.id not in overridden
        for example in rule.examples
        if pattern.found_in(example)
    }
    return tuple(sorted(found))
