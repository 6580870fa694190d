"""Proposals and what became of them -> JSON and text, the same for `propose` and `review`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, get_args

from agent.compare.figures import percent
from agent.core.proposal_form import proposal_json
from agent.core.proposals import Finding
from agent.core.source import KernelOrigin
from agent.core.text import shown
from agent.errors import UsageError
from agent.proposing.providers.base import Usage
from agent.proposing.results import Asked
from agent.render.documents import SCHEMA, Json, finding_document
from agent.review.display import counted, milliseconds
from agent.review.session import Outcome, count_states
from agent.source.names import kernel_ref, origin_of
from agent.workflows.propose import ProposeResult
from agent.workflows.review import ReviewResult

MAX_PATTERN, MAX_LISTED = 60, 4
_SOURCED = frozenset(get_args(KernelOrigin)) - {"external", "aten", "aten-cast", "inductor"}
"""Kernels that a checkout of the library they come from could explain."""


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


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in the user's own unit."""

    prompt: Decimal
    completion: Decimal

    def of(self, usage: Usage) -> Decimal:
        """Give what tokens cost, to a ten-thousandth."""
        spent = self.prompt * usage.prompt_tokens + self.completion * usage.completion_tokens
        return (spent / 1_000_000).quantize(Decimal("0.0001"))


def read_price(text: str) -> Price | None:
    """Read `PROMPT/COMPLETION` per million tokens; None for nothing.

    Raises:
        UsageError: not two numbers.
    """
    if not text:
        return None
    try:
        prompt, completion = (Decimal(part) for part in text.split("/"))
        fits = all(0 <= part < 1_000_000 for part in (prompt, completion))
    except (ValueError, ArithmeticError):
        fits = False
    if not fits:
        hint = "give what a million tokens cost, in and out: --price 0.4/1.6"
        raise UsageError("RV022", f'--price "{text}" is not two numbers', hint=hint)
    return Price(prompt, completion)


def proposals_json(result: ProposeResult, price: Price | None = None) -> dict[str, Any]:
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
    usage = _usage(result)
    spent = {
        "calls": sum(one.turns for one in result.asked),
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        **({"price": str(price.of(usage))} if price else {}),
    }
    origin = {key: value for key, value in asdict(result.origin).items() if value}
    told = {"families": families, "usage": spent, "origin": origin}
    return {**outcomes_json(result.review, "propose"), **told}


def proposals_text(result: ProposeResult, price: Price | None = None) -> list[str]:
    """Give a table of the families, then the lines of the review."""
    lines = list(_families(result.asked))
    if not result.asked:
        lines.append(f"nothing to ask about: {_why_nothing(result)}")
    hints = (f"hint: {one.hint}" for one in result.asked if one.hint)
    ends = (*_cost(result, price), *_missing_checkouts(result), *hints)
    return [*lines, *outcomes_text(result.review), *ends]


def _families(asked: Sequence[Asked]) -> Iterator[str]:
    """Give a row a family under a head; what asking cost only where a model was asked.

    Why a proposal was rejected stands in the lines of the review.
    """
    spent = any(one.turns for one in asked)
    if asked:
        cost = f"{'turns':>5}  {'tokens':>9}  " if spent else ""
        yield f"{'answer':<9}  {'share':>7}  {cost}family"
    for one in asked:
        cost = f"{one.turns:>5}  {one.usage.total:>9,}  " if spent else ""
        why = f": {shown(one.reason, limit=200)}" if one.reason and not one.verdict else ""
        yield f"{one.answer:<9}  {100 * one.family.share:5.2f} %  {cost}{_title(one)}{why}"


def _title(asked: Asked) -> str:
    why = f" ({asked.family.why_open})" if asked.family.why_open else ""
    return f"{shown(asked.family.stem, limit=MAX_PATTERN)}{why}"


def _why_nothing(result: ProposeResult) -> str:
    if not result.unlabelled:
        return "nothing is unlabelled"
    open_part = percent(result.unlabelled, signed=False)
    return (
        f"{open_part} of kernel time is unlabelled, in families below"
        f" --min-share {result.min_share:g}"
    )


def _missing_checkouts(result: ProposeResult) -> list[str]:
    """Hint at checkouts that were not given: kernels for which those given hold nothing."""
    lost = [
        one.family
        for one in result.asked
        if not (one.sourced or one.family.vendor) and origin_of(one.family.names[0]) in _SOURCED
    ]
    if not lost:
        return []
    whose = dict.fromkeys(_library(family.names[0]) or family.stem for family in lost)
    listed = ", ".join(shown(name, limit=MAX_PATTERN) for name in list(whose)[:MAX_LISTED])
    more = f" and {len(whose) - MAX_LISTED} more" if len(whose) > MAX_LISTED else ""
    lacking = f"hint: the checkouts given hold no source of {listed}{more}"
    return [f"{lacking}; if the trace ran another one, add it: --repo DIR"]


def _library(name: str) -> str:
    """Give the outermost namespace of a kernel, or ""."""
    return next((space for space in kernel_ref(name).spaces if space), "")


def _cost(result: ProposeResult, price: Price | None) -> list[str]:
    """Give what asking a model cost; nothing where none was asked."""
    calls, usage = sum(one.turns for one in result.asked), _usage(result)
    if not calls:
        return []
    money = f", {price.of(usage)} by the price given" if price else ""
    return [f"asked: {counted(calls, 'call')}, {usage.total:,} tokens{money}"]


def _usage(result: ProposeResult) -> Usage:
    return sum((one.usage for one in result.asked), Usage())


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


def findings_json(findings: Sequence[Finding]) -> list[Json]:
    """Give findings as `{code, message, severity}`, with location and hint where there are any."""
    return [
        {
            **finding_document(finding),
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
