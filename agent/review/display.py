"""What a reviewer sees of one proposal, as lines; every foreign character is made visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.compare.figures import Millis, fraction_of, percent
from agent.core.proposals import Evidence, Finding, Verdict
from agent.core.text import shown
from agent.errors import SourceError
from agent.review.draft import Draft, Moves

Style = Literal["plain", "heading", "dim", "added", "removed", "marked", "warning"]
ReadSource = Callable[[Evidence, int, int], Sequence[str]]
"""(evidence, first line, last line) -> lines of its file at its commit; raises `SourceError`."""

CONTEXT_LINES = 3
MAX_NAME, MAX_KERNELS, MAX_SOURCE_WIDTH, MAX_RATIONALE = 160, 8, 200, 1_000
_TAB = "    "
_MILLIS = Millis(3)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text without control characters."""

    text: str = ""
    style: Style = "plain"


def presented(
    verdict: Verdict, draft: Draft, read: ReadSource, *, position: str
) -> tuple[Line, ...]:
    """Give everything a person needs to decide on one admitted proposal."""
    return (
        Line(),
        Line(f"{position}  {shown(draft.rule.id)}  {_admission(verdict)}", "heading"),
        *_rationale(verdict),
        *_moves(draft.moves),
        *found(verdict.findings),
        *_sources(verdict.evidence, read),
        Line(),
        *map(_diff_line, draft.diff),
    )


def summary(verdict: Verdict, draft: Draft, *, position: str) -> Line:
    """Give in one line what is decided on."""
    moves = draft.moves
    moved = (
        f"moves {counted(moves.names, 'name')}, {milliseconds(moves.time_ns)}"
        f"{share(moves.time_ns, moves.total_ns)}"
        if moves.total_ns
        else "moves: not known without a trace"
    )
    category = shown(verdict.proposal.category)
    return Line(f"{position}  {shown(draft.rule.id)}  {category}  {moved}", "heading")


def found(findings: Sequence[Finding]) -> Iterator[Line]:
    """Give the gate's findings."""
    for finding in findings:
        where = f" {shown(finding.location)}" if finding.location else ""
        text = f"{finding.severity}: {finding.code}{where} {shown(finding.message, limit=600)}"
        yield Line(text, "dim" if finding.severity == "note" else "warning")
        if finding.hint:
            yield Line(f"  hint: {shown(finding.hint, limit=600)}", "dim")


def milliseconds(time_ns: int) -> str:
    """Give nanoseconds as milliseconds, rounded to the microsecond as in every report."""
    return f"{_MILLIS(time_ns)} ms"


def share(time_ns: int, total_ns: int) -> str:
    """Give a part of a whole in percent, or nothing where there is no whole."""
    if not total_ns:
        return ""
    return f" ({percent(fraction_of(time_ns, total_ns), signed=False)} of kernel time)"


def counted(number: int, what: str) -> str:
    """Give `1 name`, `2 names`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _admission(verdict: Verdict) -> str:
    state = f", {verdict.end_state}" if verdict.end_state else ""
    return f"{shown(verdict.proposal.category)}, admitted at {verdict.level}{state}"


def _rationale(verdict: Verdict) -> Iterator[Line]:
    origin = verdict.proposal.origin
    if origin.provider:
        model = origin.model_returned or origin.model
        who = f"{origin.provider}:{model}" if model else origin.provider
        yield Line(f"proposed by {shown(who, limit=MAX_NAME)}", "dim")
    if verdict.proposal.rationale:
        yield Line(f'its reason: "{shown(verdict.proposal.rationale, limit=MAX_RATIONALE)}"', "dim")


def _moves(moves: Moves) -> Iterator[Line]:
    if not moves.total_ns:
        yield Line("moves: not known without a trace")
        return
    how_much = f"{milliseconds(moves.time_ns)}{share(moves.time_ns, moves.total_ns)}"
    yield Line(
        f"moves: {counted(moves.names, 'name')}, {counted(moves.count, 'event')}, {how_much}"
    )
    for move in moves.moves:
        by = f" (rule {', '.join(map(shown, move.rules))})" if move.rules else ""
        yield Line(
            f"  {shown(move.category_from)} -> {shown(move.category_to)}{by}: "
            f"{counted(move.names, 'name')}, {counted(move.count, 'event')}, "
            f"{milliseconds(move.time_ns)}"
        )
    for name, count, time_ns in moves.kernels[:MAX_KERNELS]:
        text = f"  {milliseconds(time_ns):>14}  {count:>8,}  {shown(name, limit=MAX_NAME)}"
        yield Line(text, "dim")
    if len(moves.kernels) > MAX_KERNELS:
        yield Line(f"  and {counted(len(moves.kernels) - MAX_KERNELS, 'more name')}", "dim")


def _sources(evidence: Sequence[Evidence], read: ReadSource) -> Iterator[Line]:
    for entry in evidence:
        yield Line()
        yield Line(f"{entry.kind}: {shown(entry.place)}", "heading")
        qualname = entry.pin.qualname if entry.pin else entry.symbol
        if qualname:
            yield Line(f"  in {shown(qualname, limit=MAX_NAME)}", "dim")
        for guard in entry.pin.guards if entry.pin else ():
            yield Line(f"  when {shown(guard, limit=MAX_SOURCE_WIDTH)}", "dim")
        if entry.kind != "binary":
            yield from _source_lines(entry, read)


def _source_lines(entry: Evidence, read: ReadSource) -> Iterator[Line]:
    first, last = entry.lines
    start = max(1, first - CONTEXT_LINES)
    try:
        lines = read(entry, start, last + CONTEXT_LINES)
    except SourceError as err:
        yield Line(f"  cannot be shown: {shown(str(err))}", "warning")
        return
    for number, text in enumerate(lines, start):
        pinned = first <= number <= last
        visible = shown(text.replace("\t", _TAB), limit=MAX_SOURCE_WIDTH)
        mark = ">" if pinned else " "
        yield Line(f"{mark} {number:>6}  {visible}", "marked" if pinned else "plain")


def _diff_line(text: str) -> Line:
    style: Style = "plain"
    if text.startswith(("---", "+++", "@@")):
        style = "heading"
    elif text.startswith("+"):
        style = "added"
    elif text.startswith("-"):
        style = "removed"
    return Line(shown(text.replace("\t", _TAB)), style)
