"""What the gate says of proposals, as text and as a document."""

from __future__ import annotations

from collections.abc import Sequence

from agent.core.proposal_form import proposal_json
from agent.core.proposals import Finding, Verdict
from agent.core.text import shown
from agent.render.documents import SCHEMA, Json, finding_document

Judged = tuple[int, Verdict | None, tuple[Finding, ...]]
"""Line number, verdict (None where the line is no proposal), findings."""


def verdict_lines(judged: Sequence[Judged]) -> list[str]:
    """Write a line per proposal, its findings below it, and a summary."""
    lines = []
    for number, verdict, findings in judged:
        head = _head(verdict)
        lines.append(f"line {number}: {head}")
        lines += [line for finding in findings for line in _finding_lines(finding)]
    admitted = sum(verdict is not None and verdict.admitted for _, verdict, _ in judged)
    total = f"{len(judged)} proposal{'' if len(judged) == 1 else 's'}"
    lines.append(f"{total}: {admitted} admitted, {len(judged) - admitted} rejected")
    return lines


def verdicts_document(judged: Sequence[Judged]) -> Json:
    """Give the verdicts as a document, in the order of the lines."""
    return {
        "schema": SCHEMA,
        "command": "judge",
        "proposals": [_verdict(number, verdict, found) for number, verdict, found in judged],
    }


def _finding_lines(finding: Finding) -> list[str]:
    where = f" {shown(finding.location)}" if finding.location else ""
    lines = [f"  {finding.severity}: {finding.code}{where} {shown(finding.message)}"]
    return [*lines, f"    hint: {shown(finding.hint)}"] if finding.hint else lines


def _head(verdict: Verdict | None) -> str:
    if verdict is None:
        return "rejected: not a proposal"
    said = f"{'admitted' if verdict.admitted else 'rejected'} {verdict.level}"
    state = f" {verdict.end_state}" if verdict.end_state else ""
    proposal = verdict.proposal
    return f"{said}{state} {shown(proposal.category)} {shown(proposal.kernel, limit=80)}"


def _verdict(number: int, verdict: Verdict | None, findings: tuple[Finding, ...]) -> Json:
    return {
        "line": number,
        "id": verdict.proposal.id if verdict else "",
        "verdict": "admitted" if verdict and verdict.admitted else "rejected",
        "level": verdict.level if verdict else "L0",
        "end_state": verdict.end_state if verdict else "",
        "findings": list(map(finding_document, findings)),
        "rule": proposal_json(verdict.proposal) if verdict else None,
    }
