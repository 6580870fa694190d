"""Everything that is wrong or doubtful about a rule set, as findings with the rule's file and line.

Pure: rule sets and traces in, findings out. What makes a *file* unusable is found by
`agent.ruleset.codec`; the checks of rules against each other's names are in
`agent.ruleset.overlap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby, pairwise

import re2

from agent.core.kernels import Trace
from agent.core.proposals import Finding, Severity
from agent.core.rules import UNLABELLED, Rule, RuleId, RuleSet
from agent.core.text import shown
from agent.ruleset.match import Pattern
from agent.ruleset.overlap import RuleNames, overlap_findings, trace_findings
from agent.ruleset.patterns import check_pattern

_PATTERN_CODES = {
    "E_NON_ASCII": "RS020",
    "E_TOO_LONG": "RS020",
    "E_REGEX_SYNTAX": "RS020",
    "E_NESTED_QUANTIFIER": "RS020",
    "E_MATCHES_EMPTY": "RS021",
    "E_NO_LITERAL": "RS021",
    "E_OVERFIT": "RS022",
    "E_GENERIC": "RS023",
}
_JUDGEMENTS = frozenset({"E_NO_LITERAL", "E_OVERFIT", "E_GENERIC"})
"""What a rule graded `inferred`, which claims nothing, is only warned about."""

Check = Callable[[RuleSet, tuple[Rule, ...]], Iterator[tuple[Rule, Finding]]]


def lint_rules(
    ruleset: RuleSet, *, trace: Trace | None = None, source: str = ""
) -> tuple[Finding, ...]:
    """Say all that is wrong with a rule set's own rules, in the order of the lines.

    Rules of an extended file are not judged again, but count when rules overlap. `source` stands
    for the file's name in locations. With a trace, its names count as examples too, and rules that
    win nothing on it are noted.
    """
    own = tuple(rule for rule in ruleset.rules if not _is_extended(ruleset, rule))
    usable = _usable(ruleset)
    found = [pair for check in _CHECKS for pair in check(ruleset, own)]
    names = RuleNames(usable)
    found += overlap_findings(names, own, trace)
    if trace is not None:
        found += trace_findings(names, own, trace)
    placed = {
        (
            rule.line,
            replace(finding, location=f"{source or rule.source or ruleset.name}:{rule.line}"),
        )
        for rule, finding in found
    }
    return tuple(finding for _, finding in sorted(placed))


def _is_extended(ruleset: RuleSet, rule: Rule) -> bool:
    return bool(ruleset.extends) and rule.source == ruleset.extends


def _usable(ruleset: RuleSet) -> RuleSet:
    """Leave out rules whose patterns do not compile; they are findings of their own."""
    kept = tuple(rule for rule in ruleset.rules if _compiles(rule.kernel) and _compiles(rule.op))
    return ruleset if len(kept) == len(ruleset.rules) else replace(ruleset, rules=kept)


def _compiles(pattern: str) -> bool:
    try:
        Pattern(pattern)
    except re2.error:
        return False
    return True


def _ids(ruleset: RuleSet, own: tuple[Rule, ...]) -> Iterator[tuple[Rule, Finding]]:
    seen: dict[RuleId, Rule] = {}
    for rule in own:
        if (first := seen.setdefault(rule.id, rule)) is not rule:
            message = f'rule id "{rule.id}" is used twice, first in line {first.line}'
            yield rule, Finding("RS005", message)
        if rule.category not in ruleset.category_ids or rule.category == UNLABELLED:
            yield rule, Finding("RS006", f'unknown category "{shown(rule.category, limit=100)}"')


def _patterns(_: RuleSet, own: tuple[Rule, ...]) -> Iterator[tuple[Rule, Finding]]:
    for rule in own:
        for finding in check_pattern(rule.kernel):
            severity = finding.severity
            if rule.grade == "inferred" and finding.code in _JUDGEMENTS:
                severity = "warning"
            code = _PATTERN_CODES[finding.code]
            yield rule, replace(finding, code=code, severity=severity)
        for finding in check_pattern(rule.op) if rule.op else ():
            if _PATTERN_CODES[finding.code] == "RS020" or finding.code == "E_MATCHES_EMPTY":
                message = f"op: {finding.message}"
                yield rule, replace(finding, code=_PATTERN_CODES[finding.code], message=message)


def _examples(_: RuleSet, own: tuple[Rule, ...]) -> Iterator[tuple[Rule, Finding]]:
    for rule in own:
        if not _compiles(rule.kernel):
            continue
        pattern = Pattern(rule.kernel)
        for name in rule.examples:
            if not pattern.found_in(name):
                message = f'rule "{rule.id}" does not match its example "{shown(name, limit=200)}"'
                yield rule, Finding("RS008", message)
        for name in rule.counterexamples:
            if pattern.found_in(name):
                message = f'rule "{rule.id}" matches its counterexample "{shown(name, limit=200)}"'
                yield rule, Finding("RS009", message)
        yield from _missing_examples(rule)


def _missing_examples(rule: Rule) -> Iterator[tuple[Rule, Finding]]:
    if rule.grade == "inferred":
        return
    if not rule.examples:
        yield rule, Finding("RS030", f'rule "{rule.id}" has no example', "warning")
    if not rule.counterexamples:
        yield rule, Finding("RS030", f'rule "{rule.id}" has no counterexample', "note")


def _overrides(ruleset: RuleSet, own: tuple[Rule, ...]) -> Iterator[tuple[Rule, Finding]]:
    categories: frozenset[str] = frozenset(ruleset.category_ids)
    ids = [rule.id for rule in ruleset.rules]
    for rule in own:
        for target in rule.overrides:
            prefix = target.removesuffix("*") if target.endswith(".*") else None
            known = target in categories or target in ids
            if not known and not (prefix and any(rule_id.startswith(prefix) for rule_id in ids)):
                message = (
                    f'rule "{rule.id}" overrides "{shown(target, limit=100)}", which is no rule'
                )
                yield rule, Finding("RS029", message, "warning")


def _evidence(_: RuleSet, own: tuple[Rule, ...]) -> Iterator[tuple[Rule, Finding]]:
    for rule in own:
        unpinned = sum(1 for entry in rule.evidence if entry.pin is None)
        if rule.grade == "validated" and not rule.evidence:
            message = f'rule "{rule.id}" is graded validated without evidence'
            yield rule, Finding("RS028", message)
        elif unpinned:
            severity: Severity = "error" if rule.grade == "validated" else "warning"
            message = f'rule "{rule.id}" has {unpinned} of {len(rule.evidence)} evidence not pinned'
            hint = (
                "review writes evidence with its pin; propose the rule again, or grade it inferred"
            )
            yield rule, Finding("RS028", message, severity, hint=hint)


def _order(_: RuleSet, own: tuple[Rule, ...]) -> Iterator[tuple[Rule, Finding]]:
    """Ask that each block, rules of one category and grade that stand together, is sorted by id.

    Their order changes no category, and two people who add to a sorted block meet in one place.
    """
    for (category, _grade), rules in groupby(own, key=lambda rule: (rule.category, rule.grade)):
        for before, rule in pairwise(rules):
            if rule.id < before.id:
                message = f'the block of {category} is not sorted: "{rule.id}" after "{before.id}"'
                hint = "order within a block changes no label; sort it by id"
                yield rule, Finding("RS027", message, "note", hint=hint)
                break


_CHECKS: tuple[Check, ...] = (_ids, _patterns, _examples, _overrides, _evidence, _order)
