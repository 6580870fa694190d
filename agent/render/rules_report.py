"""Reports on rule files: lint, list, show, test, upgrade; as text and as documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from agent.core.proposals import Evidence, Finding, Origin, Severity
from agent.core.rules import Category, Rule, RuleSet
from agent.core.text import counted, shown, shown_block
from agent.render.documents import (
    SCHEMA,
    Json,
    evidence_document,
    finding_document,
    ruleset_document,
)
from agent.ruleset.moves import Move
from agent.ruleset.namelist import NamesReport

MAX_NAME = 120


def lint_text(ruleset: RuleSet, findings: Sequence[Finding], moves: Sequence[Move]) -> str:
    """Write one line per finding, then a summary."""
    lines = [_finding_text(finding) for finding in findings]
    lines += [_move_text(move) for move in moves]
    severities = Counter(finding.severity for finding in findings)
    found = ", ".join(counted(severities[severity], severity) for severity in get_args(Severity))
    rules = counted(len(ruleset.rules), "rule")
    lines.append(f"{shown(ruleset.name)} version {ruleset.version}: {rules}, {found}")
    return "\n".join(lines) + "\n"


def lint_document(ruleset: RuleSet, findings: Sequence[Finding], moves: Sequence[Move]) -> Json:
    """Give lint's findings as a document."""
    return {
        "schema": SCHEMA,
        "command": "rules lint",
        "ruleset": ruleset_document(ruleset),
        "findings": [
            {
                **finding_document(finding),
                "location": finding.location,
                "hint": finding.hint,
            }
            for finding in findings
        ],
        "moves": [_move_document(move) for move in moves],
    }


def rules_text(ruleset: RuleSet, rules: Sequence[Rule]) -> str:
    """Write one line per rule: id, category, grade, pattern."""
    id_width = max((len(rule.id) for rule in rules), default=0)
    category_width = max((len(rule.category) for rule in rules), default=0)
    lines = [
        f"{rule.id:<{id_width}}  {rule.category:<{category_width}}  {rule.grade:<9}  "
        f"{shown(rule.kernel)}"
        for rule in rules
    ]
    lines.append(
        f"{len(rules)} of {len(ruleset.rules)} rules of {shown(ruleset.name)} "
        f"version {ruleset.version}, digest {ruleset.digest[:12]}"
    )
    named = ", ".join(sorted(shown(one) for one in ruleset.category_ids))
    lines.append(f"{len(ruleset.category_ids)} categories: {named}")
    return "\n".join(lines) + "\n"


def rules_document(ruleset: RuleSet, rules: Sequence[Rule]) -> Json:
    """Give the rules as a document, in order."""
    return {
        "schema": SCHEMA,
        "command": "rules list",
        "ruleset": ruleset_document(ruleset),
        "rules": [_rule_json(rule) for rule in rules],
    }


def rule_text(rule: Rule, category: Category, page: str) -> str:
    """Write one rule with everything that is known of it, then its category's page."""
    lines = [
        f"{rule.id}",
        f"  category        {rule.category} ({category.title})",
        f"  grade           {rule.grade}",
        f"  kernel          {shown(rule.kernel)}",
    ]
    if rule.op:
        lines.append(f"  op              {shown(rule.op)}")
    if rule.input_dtypes:
        lines.append(f"  input dtypes    {shown(', '.join(rule.input_dtypes))}")
    if rule.dtypes_unknown:
        lines.append("  input dtypes    none known")
    if rule.overrides:
        lines.append(f"  overrides       {shown(', '.join(rule.overrides))}")
    if rule.source:
        lines.append(f"  found at        {shown(rule.source)}:{rule.line}")
    lines += _listed("examples", rule.examples)
    lines += _listed("counterexamples", rule.counterexamples)
    for evidence in rule.evidence:
        lines += _evidence_lines(evidence)
    lines += _provenance_lines(rule)
    if page:
        lines += ["", shown_block(_without_marks(page))]
    return "\n".join(lines) + "\n"


def rule_document(rule: Rule) -> Json:
    """Give one rule as a document."""
    return {"schema": SCHEMA, "command": "rules show", "rule": _rule_json(rule)}


def names_text(report: NamesReport) -> str:
    """Write one line per name that is labelled otherwise or not at all, then a summary."""
    lines = [
        f"{shown(wrong.name, limit=MAX_NAME)}: expected {shown(wrong.expected)}, got {wrong.got}"
        for wrong in report.wrong
    ]
    lines += [f"{shown(name, limit=MAX_NAME)}: no rule matches" for name in report.unlabelled]
    lines.append(
        f"{counted(report.total, 'name')}: {report.right} right, {len(report.wrong)} wrong, "
        f"{len(report.unlabelled)} unlabelled"
    )
    return "\n".join(lines) + "\n"


def names_document(report: NamesReport) -> Json:
    """Give the result of `rules test` as a document."""
    return {
        "schema": SCHEMA,
        "command": "rules test",
        "total": report.total,
        "right": report.right,
        "wrong": [
            {"name": wrong.name, "expected": wrong.expected, "got": wrong.got}
            for wrong in report.wrong
        ],
        "unlabelled": list(report.unlabelled),
    }


def upgrade_text(current: str, newest: str, moves: Sequence[Move]) -> str:
    """Write what newer built-in rules would relabel."""
    if current == newest:
        return f"{shown(current)} is the newest\n"
    lines = [_move_text(move) for move in moves]
    lines.append(
        f"{shown(current)} -> {newest}: {counted(len(moves), 'name')} of the run would move"
    )
    return "\n".join(lines) + "\n"


def upgrade_document(current: str, newest: str, moves: Sequence[Move]) -> Json:
    """Give what newer built-in rules would relabel as a document."""
    return {
        "schema": SCHEMA,
        "command": "rules upgrade",
        "current": current,
        "newest": newest,
        "moves": [_move_document(move) for move in moves],
    }


def _finding_text(finding: Finding) -> str:
    where = f"{shown(finding.location)}: " if finding.location else ""
    hint = f" (hint: {shown(finding.hint)})" if finding.hint else ""
    severity = "" if finding.severity == "error" else f"{finding.severity}: "
    return f"{where}{finding.code} {severity}{shown(finding.message)}{hint}"


def _move_text(move: Move) -> str:
    return (
        f"{move.before} -> {move.after}: {shown(move.name, limit=MAX_NAME)} "
        f"({counted(move.count, 'kernel')}, {move.time_ns} ns)"
    )


def _move_document(move: Move) -> Json:
    return {
        "name": move.name,
        "op": move.op,
        "before": move.before,
        "after": move.after,
        "rule_before": move.rule_before,
        "rule_after": move.rule_after,
        "count": move.count,
        "time_ns": move.time_ns,
    }


def _rule_json(rule: Rule) -> Json:
    return {
        "id": rule.id,
        "category": rule.category,
        "kernel": rule.kernel,
        "op": rule.op,
        "input_dtypes": list(rule.input_dtypes),
        "dtypes_unknown": rule.dtypes_unknown,
        "overrides": list(rule.overrides),
        "grade": rule.grade,
        "examples": list(rule.examples),
        "counterexamples": list(rule.counterexamples),
        "evidence": [evidence_document(evidence) for evidence in rule.evidence],
        "source": rule.source,
        "line": rule.line,
    }


def _listed(title: str, names: Sequence[str]) -> list[str]:
    return [
        f"  {title if not index else '':<15} {shown(name, limit=MAX_NAME)}"
        for index, name in enumerate(names)
    ]


def _evidence_lines(evidence: Evidence) -> list[str]:
    text = [f"  {evidence.kind:<15} {shown(evidence.place)}"]
    if evidence.symbol:
        text.append(f"  {'':<15} in {shown(evidence.symbol)}")
    guards: tuple[str, ...] = (evidence.guard,) if evidence.guard else ()
    if evidence.pin is not None:
        guards = evidence.pin.guards or guards
    if guards:
        text.append(f"  {'':<15} when {shown(' and '.join(guards))}")
    return text


def _provenance_lines(rule: Rule) -> list[str]:
    lines = []
    if rule.proposed_by is not None:
        lines.append(f"  proposed by     {shown(_origin(rule.proposed_by))}")
    if rule.accepted_by is not None:
        lines.append(f"  accepted by     {shown(rule.accepted_by.author)}, {rule.accepted_by.date}")
    return lines


def _without_marks(page: str) -> str:
    """Give a page without the comments that mark its generated parts."""
    return "\n".join(line for line in page.splitlines() if not line.startswith("<!--"))


def _origin(origin: Origin) -> str:
    model = origin.model if origin.model in ("", origin.provider) else f" {origin.model}"
    prompt = f", prompt {origin.prompt}" if origin.prompt else ""
    return f"{origin.provider}{model}{prompt}"
