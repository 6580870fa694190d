"""What a rule would do on a trace: match, miss and steal. The gate judges; this only tells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import re2

from agent.core.kernels import Signature
from agent.core.rules import (
    UNLABELLED,
    CategoryId,
    Label,
    LabelledTrace,
    Rule,
    RuleId,
    RuleSet,
)
from agent.proposing.families import Family, is_open
from agent.ruleset.match import Matcher, Pattern


@dataclass(frozen=True, slots=True)
class Fit:
    """What one rule would do on this trace; names are raw and sorted.

    `stolen` are names labelled by rules the proposal does not override, each with that rule;
    `negatives` are examples of rules of other categories that the pattern also matches.
    """

    matched: tuple[str, ...]
    missed: tuple[str, ...]
    stolen: tuple[tuple[str, str], ...]
    others: tuple[str, ...]
    negatives: tuple[str, ...]
    problem: str = ""

    @property
    def clean(self) -> bool:
        """Tell whether it matches the whole family and touches nothing labelled."""
        return not (self.problem or self.missed or self.stolen or self.negatives)


@dataclass(frozen=True, slots=True)
class Want:
    """A rule as far as a pattern test needs it."""

    kernel: str
    op: str = ""
    input_dtypes: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    category: str = ""


def fit_of(want: Want, family: Family, labelled: LabelledTrace) -> Fit:
    """Try a rule on every signature of the trace and on the examples of other rules."""
    try:
        matcher = Matcher(_alone(want, labelled.ruleset))
        pattern = Pattern(want.kernel)
    except re2.error as err:
        return Fit((), family.names, (), (), (), f"RE2 does not accept it: {_reason(err)}")
    own = {member.signature for member in family.members}
    matched, stolen, others = set(), set(), set()
    for signature in labelled.stats:
        if matcher.label(signature).category == UNLABELLED:
            continue
        label = labelled.labels[signature]
        if signature in own:
            matched.add(signature)
        elif _protected(signature, label, want):
            stolen.add((str(signature.name), str(label.rule_id)))
        else:
            others.add(str(signature.name))
    missed = {str(signature.name) for signature in own - matched}
    return Fit(
        tuple(sorted({str(signature.name) for signature in matched})),
        tuple(sorted(missed)),
        tuple(sorted(stolen)),
        tuple(sorted(others)),
        _negatives(pattern, want, labelled.ruleset.rules),
    )


def _protected(signature: Signature, label: Label, want: Want) -> bool:
    if label.category in {UNLABELLED, want.category}:
        return False
    return str(label.rule_id) not in want.overrides or not is_open(signature, label)


def _negatives(pattern: Pattern, want: Want, rules: Iterable[Rule]) -> tuple[str, ...]:
    if want.op or want.input_dtypes:
        return ()
    found = {
        example
        for rule in rules
        if rule.category != want.category and str(rule.id) not in want.overrides
        for example in rule.examples
        if pattern.found_in(example)
    }
    return tuple(sorted(found))


def _alone(want: Want, ruleset: RuleSet) -> RuleSet:
    rule = Rule(
        RuleId("proposed"),
        CategoryId(want.category or "Misc"),
        want.kernel,
        "inferred",
        op=want.op,
        input_dtypes=want.input_dtypes,
    )
    return replace(ruleset, rules=(rule,))


def _reason(err: BaseException) -> str:
    text = err.args[0] if err.args else err
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
