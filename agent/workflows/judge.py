"""`judge`: anybody's proposals, one JSON object a line, through the agent's own gate."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from agent.core.proposal_form import MAX_TEXT, loosely, parse_proposal, proposal_from
from agent.core.proposals import Finding, Proposal, RunContext, Verdict
from agent.core.rules import RuleSet
from agent.core.strict_json import read_json
from agent.errors import UsageError
from agent.review.journal import is_record
from agent.workflows.context import KEYS
from agent.workflows.inputs import OpenInputs, Reading, RunInputs, open_inputs
from agent.workflows.rulefile import rules_in_force

MAX_FILE = 64 << 20


@dataclass(frozen=True, slots=True)
class Judged:
    """What the gate says of one line; no verdict where the line is no proposal."""

    line: int
    verdict: Verdict | None
    findings: tuple[Finding, ...]

    @property
    def admitted(self) -> bool:
        """Tell whether the proposal is admitted."""
        return self.verdict is not None and self.verdict.admitted


def judge_file(
    path: str, inputs: RunInputs, *, rules: Path | None = None, reading: Reading = nullcontext
) -> tuple[Judged, ...]:
    """Judge every line of a file, each by itself under the rules in force; "-" is stdin.

    A line is a proposal, or an object with `proposal` (an object) or `raw` (its text) and perhaps
    `context`; other keys of such an object are left alone.

    Raises:
        UsageError: the file cannot be read, holds no line, or is a journal.
        LabelAgentError: rules, traces or checkouts cannot be used.
    """
    lines = list(_lines(path))
    _refuse_journal(path, lines[0][1])
    ruleset = rules_in_force(rules)
    opened = open_inputs(inputs, reading=reading)
    return tuple(judge_line(number, text, opened, ruleset) for number, text in lines)


def judge_line(number: int, text: str, opened: OpenInputs, ruleset: RuleSet) -> Judged:
    """Judge one line of a file under some rules."""
    proposal, context = read_line(text, opened.context)
    if isinstance(proposal, Finding):
        return Judged(number, None, _refused(text, proposal, context, opened, ruleset))
    verdict = replace(opened, context=context).judge(proposal, ruleset)
    return Judged(number, verdict, verdict.findings)


def _refused(
    text: str, schema: Finding, context: RunContext, opened: OpenInputs, ruleset: RuleSet
) -> tuple[Finding, ...]:
    """Say all that is wrong with a proposal that broke the form; it stays refused."""
    proposal, said = loosely(_stated(text))
    if proposal is None:
        return (*said, schema)
    verdict = replace(opened, context=context).judge(proposal, ruleset)
    return (*said, *verdict.errors, schema)


def _stated(text: str) -> object:
    """Give the decoded proposal of a line; None where it is not one JSON object."""
    try:
        value = read_json(text)
        if isinstance(value, dict) and isinstance(value.get("raw"), str):
            value = {"proposal": read_json(value["raw"])}
    except ValueError:
        return None
    return value.get("proposal", value) if isinstance(value, dict) else None


def read_line(text: str, context: RunContext) -> tuple[Proposal | Finding, RunContext]:
    """Read one line: the proposal or what is wrong with it, and the context it is for."""
    if len(text) > 4 * MAX_TEXT:
        return Finding("E_SCHEMA", f"the line has {len(text)} characters"), context
    try:
        value = read_json(text)
    except ValueError as err:
        return Finding("E_SCHEMA", str(err)), context
    if not isinstance(value, dict) or not value.keys() & {"proposal", "raw"}:
        return parse_proposal(text), context
    said = _context(value.get("context", {}), context)
    if isinstance(said, Finding):
        return said, context
    raw = value.get("raw")
    return parse_proposal(raw) if isinstance(raw, str) else proposal_from(
        value.get("proposal")
    ), said


def _context(value: object, known: RunContext) -> RunContext | Finding:
    """Read `{"backend": "rocm/aiter", "arch": "gfx942"}`; after a slash stands the attention."""
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        return Finding("E_SCHEMA", "context: an object of strings")
    unknown = sorted(value.keys() - set(KEYS))
    if unknown:
        return Finding("E_SCHEMA", f'context: "{unknown[0]}" is none of {", ".join(KEYS)}')
    backend, slash, attention = value.get("backend", "").partition("/")
    said = {**value, **({"backend": backend} if backend else {})}
    if slash:
        said.setdefault("attention", attention)
    return replace(known, **said)


def _lines(path: str) -> Iterator[tuple[int, str]]:
    text = _text(path)
    found = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            found = True
            yield number, line
    if not found:
        hint = "one proposal a line, as JSON"
        raise UsageError("RV021", "the file holds no proposal", location=path, hint=hint)


def _refuse_journal(path: str, line: str) -> None:
    if len(line) <= 4 * MAX_TEXT and is_record(line):
        message = "this is the journal that propose keeps, not a list of proposals"
        hint = "label-agent review goes on with what it holds"
        raise UsageError("RV021", message, location=path, hint=hint)


def _text(path: str) -> str:
    try:
        if path == "-":
            content = sys.stdin.buffer.read(MAX_FILE + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            message, hint = f"larger than {MAX_FILE >> 20} MiB", "split it into several files"
            raise UsageError("RV021", message, location=path, hint=hint)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        message, hint = "the proposals are not UTF-8", "one proposal a line, as JSON in UTF-8"
        raise UsageError("RV021", message, location=path, hint=hint) from err
    except OSError as err:
        what = f"cannot read the proposals: {err.strerror}"
        raise UsageError("RV021", what, location=path, hint="check the path") from err
