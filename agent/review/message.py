"""The commit message of an accepted rule: what, from where, proposed and accepted by whom."""

from __future__ import annotations

from collections.abc import Iterator

from agent.core.proposals import Evidence, Origin
from agent.core.rules import Rule
from agent.core.text import shown
from agent.review.display import counted, milliseconds
from agent.review.draft import Draft

SUBJECT, LINE = 72, 300


def commit_message(draft: Draft) -> str:
    """Give the message: subject of at most 72 characters, then one fact a line; plain text only."""
    rule = draft.rule
    body = (
        f"Category: {rule.category}",
        *_pattern(rule),
        f"Rules: version {draft.ruleset.version}",
        *_moves(draft),
        *(_evidence(entry) for entry in rule.evidence),
        *(_origin(rule.proposed_by) if rule.proposed_by else ()),
    )
    subject = shown(f"Add rule {rule.id}")[:SUBJECT]
    return "\n".join((subject, "", *map(_cut, body))) + "\n"


def _pattern(rule: Rule) -> Iterator[str]:
    yield f"Kernel: {rule.kernel}"
    if rule.op:
        yield f"Op: {rule.op}"
    if rule.input_dtypes:
        yield f"Input dtypes: {', '.join(rule.input_dtypes)}"
    if rule.dtypes_unknown:
        yield "Input dtypes: none known"
    if rule.overrides:
        yield f"Overrides: {', '.join(rule.overrides)}"


def _moves(draft: Draft) -> Iterator[str]:
    for move in draft.moves.moves:
        yield (
            f"Moves: {counted(move.names, 'name')}, {counted(move.count, 'event')}, "
            f"{milliseconds(move.time_ns)} from {move.category_from}"
        )


def _evidence(entry: Evidence) -> str:
    qualname = entry.pin.qualname if entry.pin else entry.symbol
    inside = f" in {qualname}" if qualname else ""
    return f"Evidence: {entry.kind} {shown(entry.place)}{inside}"


def _origin(origin: Origin) -> Iterator[str]:
    model = origin.model_returned or origin.model
    host = f" at {origin.host}" if origin.host else ""
    yield f"Proposed by: {origin.provider}{':' if model else ''}{model}{host}"
    if origin.prompt:
        digest = f" ({origin.prompt_digest[:12]})" if origin.prompt_digest else ""
        yield f"Prompt: {origin.prompt}{digest}"


def _cut(line: str) -> str:
    return shown(line, limit=LINE)
