"""What became of the evidence of rules, as text and as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.core.proposals import Evidence
from agent.core.rules import Rule, RuleSet
from agent.core.source import RepoInfo
from agent.core.text import shown
from agent.render.documents import SCHEMA, Json, evidence_document, ruleset_document

if TYPE_CHECKING:
    from agent.source.verify import EvidenceStatus

NOT_CHECKED = "NOT_CHECKED"
Checked = tuple[Rule, "tuple[EvidenceStatus, ...]"]


def evidence_status_text(repos: Sequence[RepoInfo], checked: Sequence[Checked]) -> str:
    """Write one line per piece of evidence that could be checked, and a summary."""
    cited = {status.evidence.repo for _, statuses in checked for status in statuses}
    lines = [
        f"against {shown(repo.name)}@{repo.commit[:12]}"
        f"{'' if repo.name in cited else ', which no rule cites'}"
        for repo in repos
    ]
    counts: Counter[str] = Counter()
    for rule, statuses in checked:
        for status in statuses:
            counts[status.status] += 1
            if status.status != NOT_CHECKED:
                lines += _status_lines(rule, status)
    skipped = counts.pop(NOT_CHECKED, 0)
    said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    lines.append(f"{sum(counts.values())} pieces of evidence checked: {said or 'none'}")
    given = {repo.name for repo in repos}
    unpackaged = sum(
        status.status == NOT_CHECKED and status.evidence.repo in given
        for _, statuses in checked
        for status in statuses
    )
    if unpackaged:
        lines.append(f"{unpackaged} not checked: an installed package does not hold their files")
    if skipped > unpackaged:
        lines.append(
            f"{skipped - unpackaged} not checked: they are of checkouts that were not given"
        )
    return "\n".join(lines) + "\n"


def evidence_status_document(
    ruleset: RuleSet, repos: Sequence[RepoInfo], checked: Sequence[Checked]
) -> Json:
    """Give the result of `verify` as a document, rules in the order of the rule file."""
    return {
        "schema": SCHEMA,
        "command": "verify",
        "ruleset": ruleset_document(ruleset),
        "repos": [{"name": repo.name, "commit": repo.commit} for repo in repos],
        "rules": [
            {"id": rule.id, "evidence": [_status_document(status) for status in statuses]}
            for rule, statuses in checked
        ],
    }


def _status_lines(rule: Rule, status: EvidenceStatus) -> list[str]:
    now = status.found or status.evidence
    moved = "" if _place(now) == _place(status.evidence) else f" -> {_place(now)}"
    lines = [
        f"{status.status:<9} {rule.id}  {status.evidence.kind} {_place(status.evidence)}{moved}"
    ]
    if status.message:
        lines.append(f"          {shown(status.message)}")
    lines += [f"          {shown(place)}" for place in status.places]
    return lines


def _status_document(status: EvidenceStatus) -> Json:
    return {
        "status": status.status,
        "message": status.message,
        "places": list(status.places),
        "pinned": evidence_document(status.evidence),
        "found": evidence_document(status.found) if status.found else None,
    }


def _place(evidence: Evidence) -> str:
    return shown(f"{evidence.repo}:{evidence.path}:{evidence.span}")
