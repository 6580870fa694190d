"""Every example and counterexample of the built-in file, in every spelling."""

from __future__ import annotations

import pytest

from agent.core.kernels import KernelName, Signature
from agent.core.rules import Rule
from agent.ruleset.codec import load_builtin
from agent.ruleset.match import Matcher
from tests.rules.spellings import spellings

RULESET = load_builtin()
MATCHER = Matcher(RULESET)


def _cases(field: str) -> list[object]:
    return [
        pytest.param(rule, name, id=f"{rule.id}-{number}")
        for rule in RULESET.rules
        for number, name in enumerate(getattr(rule, field))
    ]


def _signature(rule: Rule, name: str) -> Signature:
    op = rule.op.strip("^$")
    return Signature(KernelName(name), op, rule.input_dtypes)


@pytest.mark.parametrize(("rule", "name"), _cases("examples"))
def test_an_example_gets_its_rule_in_every_spelling(rule: Rule, name: str) -> None:
    won = {how: MATCHER.label(_signature(rule, way)).rule_id for how, way in spellings(name)}
    assert won == dict.fromkeys(won, rule.id)


@pytest.mark.parametrize(("rule", "name"), _cases("counterexamples"))
def test_a_counterexample_is_not_matched_in_any_spelling(rule: Rule, name: str) -> None:
    matched = {how: rule in MATCHER.matching_name(way) for how, way in spellings(name)}
    assert matched == dict.fromkeys(matched, False) or (
        (rule.op or rule.input_dtypes) and rule not in MATCHER.matching(Signature(KernelName(name)))
    )


@pytest.mark.parametrize("rule", RULESET.rules, ids=lambda rule: rule.id)
def test_a_rule_has_examples_on_both_sides(rule: Rule) -> None:
    assert rule.examples
    assert rule.counterexamples
