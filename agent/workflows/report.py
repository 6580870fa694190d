"""Proposals and what became of them -> JSON and text, the same for `propose` and `review`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.core.proposal_form import proposal_json
from agent.core.proposals import Finding
from agent.core.text import shown
from agent.review.display import counted, milliseconds
from agent.review.session import Outcome, count_states
from agent.workflows.propose import ProposeResult
from agent.workflows.review import ReviewResult

SCHEMA = 1
MAX_PATTERN = 60


def outcomes_json(result: ReviewResult, command: str) -> dict[str, Any]:
    """Give the JSON form of a result: `proposals` in the order they were decided."""
    return {
        "schema": SCHEMA,
        "command": command,
        "rule_file": result.rule_file,
        "proposals": [_outcome_json(outcome) for outcome in result.outcomes],
        "kept": result.kept,
        "warnings": findings_json(result.findings),
    }


def proposals_json(result: ProposeResult) -> dict[str, Any]:
    """Give the JSON form of `propose`: as `outcomes_json`, with what each family came to."""
    families = [
        {
            "family": one.family.stem,
            "names": list(one.family.names),
            "count": one.family.count,
            "time_ns": one.family.time_ns,
            "share": round(one.family.share, 6),
            "answer": one.answer,
            "proposal": one.verdict.proposal.id if one.verdict else "",
            "reason": one.reason,
            "turns": one.turns,
            "tokens": {
                "prompt": one.usage.prompt_tokens,
                "completion": one.usage.completion_tokens,
            },
        }
        for one in result.asked
    ]
    return {**outcomes_json(result.review, "propose"), "families": families}


def proposals_text(result: ProposeResult) -> list[str]:
    """Give one line per family that came to nothing, then the lines of the review."""
    lines = [
        f"{one.answer:<9} {100 * one.family.share:5.2f} %  "
        f"{shown(one.family.stem, limit=MAX_PATTERN)}: {shown(one.reason, limit=200)}"
        for one in result.asked
        if one.answer in {"abstained", "failed", "unasked"}
    ]
    if not result.asked:
        lines.append("nothing to ask about: no family of unlabelled kernels is large enough")
    return [*lines, *outcomes_text(result.review), *_cost(result)]


def _cost(result: ProposeResult) -> list[str]:
    """Give what asking a model cost; nothing where none was asked."""
    turns = sum(one.turns for one in result.asked)
    tokens = sum(one.usage.total for one in result.asked)
    return [f"{counted(turns, 'call')}, {tokens:,} tokens"] if turns else []


def requests_json(bodies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Give the JSON form of a dry run: request bodies exactly as they would be sent."""
    return {"schema": SCHEMA, "command": "propose", "requests": list(bodies)}


def exit_code(result: ProposeResult) -> int:
    """Give 2 when nobody could be asked, 1 when something was refused or failed, else 0."""
    answers = {one.answer for one in result.asked}
    if answers == {"unasked"}:
        return 2
    refused = any(outcome.state == "refused" for outcome in result.review.outcomes)
    return int(refused or bool(answers & {"failed", "unasked"}))


def findings_json(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """Give findings as `{code, message, severity}`, with location and hint where there are any."""
    return [
        {
            "code": finding.code,
            "message": finding.message,
            "severity": finding.severity,
            **({"location": finding.location} if finding.location else {}),
            **({"hint": finding.hint} if finding.hint else {}),
        }
        for finding in findings
    ]


def outcomes_text(result: ReviewResult) -> list[str]:
    """Give one line per proposal, then what happened and how to go on."""
    lines = [_outcome_text(outcome) for outcome in result.outcomes]
    lines += (f"{one.severity}: {one.code} {shown(one.message)}" for one in result.findings)
    counts = [f"{number} {state}" for state, number in count_states(result.outcomes)]
    lines.append(f"{counted(len(result.outcomes), 'proposal')}: {', '.join(counts) or 'none'}")
    if any(outcome.state == "accepted" for outcome in result.outcomes):
        lines.append(f"rule file: {shown(result.rule_file)}")
    if result.kept:
        kept = counted(result.kept, "proposal")
        lines.append(f"{kept} kept; go on with: label-agent review")
    return lines


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    verdict = outcome.verdict
    done = outcome.committed
    return {
        "id": verdict.proposal.id,
        "verdict": "admitted" if verdict.admitted else "rejected",
        "level": verdict.level,
        "end_state": verdict.end_state,
        "decision": outcome.state,
        "reason": outcome.reason,
        "findings": findings_json(verdict.findings),
        "rule": _rule_json(outcome),
        "proposal": proposal_json(verdict.proposal),
        "commit": done.commit if done else "",
    }


def _rule_json(outcome: Outcome) -> dict[str, Any]:
    proposal, rule = outcome.verdict.proposal, outcome.rule
    return {
        "id": rule.id if rule else "",
        "category": proposal.category,
        "kernel": proposal.kernel,
        "op": proposal.op,
        "input_dtypes": list(proposal.input_dtypes),
        "overrides": list(proposal.overrides),
        "grade": rule.grade if rule else "",
    }


def _outcome_text(outcome: Outcome) -> str:
    proposal, verdict = outcome.verdict.proposal, outcome.verdict
    name = outcome.rule.id if outcome.rule else shown(proposal.kernel, limit=MAX_PATTERN)
    moved = f"  {milliseconds(outcome.moves.time_ns)}" if outcome.moves else ""
    why = "; ".join(
        f"{finding.code} {shown(finding.message, limit=200)}" for finding in verdict.errors
    )
    reason = f": {why or shown(outcome.reason, limit=200)}" if why or outcome.reason else ""
    what = f"{shown(proposal.category)}  {shown(name)}"
    return f"{outcome.state:<9} {verdict.level}  {what}{moved}{reason}"
