"""A dossier written out for a model: what is foreign is quoted, what is long is cut."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict

from agent.core.proposals import Evidence
from agent.core.rules import Category
from agent.core.source import Candidate, SourceIndex
from agent.core.text import shown
from agent.errors import SourceError
from agent.proposing.actions import FORMS, Form
from agent.proposing.dossier import Dossier
from agent.proposing.offline import category_told
from agent.proposing.patterns import COPY_OP, cast_pattern, pattern_for
from agent.proposing.prompts import Prompt, quoted

MAX_NAME = 600
_LOOKS = {
    "ck": "a line that uses its type and the call that leads to it",
    "aten-cast": "the line that converts, with its guard",
    "aten": "the line that calls its operator",
    "inductor": "the @torch.compile function with the operators of its name",
}
"""What to look for where nothing was found, by origin; as the system prompt states it."""
_BEFORE, _AFTER = 1, 3


def system_text(
    prompt: Prompt, categories: Sequence[Category], allowed: frozenset[str] | None
) -> str:
    """Give what is said once: the task, the actions, the vocabulary, the rule language."""
    described = "\n".join(
        f"- {shown(one.id, limit=60)}: {shown(one.title, limit=160)}" for one in categories
    )
    actions = "\n".join(_action(form) for form in FORMS if allowed is None or _do(form) in allowed)
    return prompt.filled(categories=described, actions=actions)


def case_text(
    prompt: Prompt, dossier: Dossier, source: SourceIndex | None, categories: Collection[str]
) -> str:
    """Give one family's case; without a source index no text of a checkout is in it."""
    told = category_told(dossier)
    return prompt.filled(
        summary=_summary(dossier),
        names=quoted(_names(dossier), limit=MAX_NAME),
        ops=quoted(_ops(dossier)),
        frames=quoted(_frames(dossier)) if dossier.frames else "(no stacks were recorded)",
        candidates=_candidates(dossier, source),
        context=_context(dossier),
        words=f"They point to {told}." if told in categories else "",
        next=_next(dossier),
    )


def _do(form: type[Form]) -> str:
    schema = form.model_json_schema()
    name: str = schema["properties"]["do"]["const"]
    return name


def _action(form: type[Form]) -> str:
    fields = ", ".join(name for name in form.model_fields if name != "do")
    return f"- {_do(form)} ({fields}): {(form.__doc__ or '').strip()}"


def _next(dossier: Dossier) -> str:
    """Say what is nearest to be done: with evidence at hand, a proposal."""
    if not dossier.candidates:
        look = _LOOKS.get(dossier.origin, "the definition and its launch")
        return (
            f"Without evidence it cannot be proposed: look for {look}."
            " Where two looks find nothing, abstain."
        )
    fields = f'"candidates": [1], {_conditions(dossier)}'
    if not suggested(dossier.candidates[0], dossier):
        return f"Then test_pattern, and submit_proposal with {fields}."
    return (
        f'Then submit_proposal with {fields} and "kernel": "", which takes the pattern suggested'
        " for candidate 1."
    )


def _conditions(dossier: Dossier) -> str:
    """Say which conditions the rule has: for a cast those that the trace knows, else none."""
    if dossier.candidates[0].origin != "aten-cast" or not _dtypes_known(dossier):
        return '"op": "", "input_dtypes": []'
    dtypes = json.dumps([shown(one, limit=60) for one in dossier.family.input_dtypes])
    return f'"op": "{COPY_OP}", "input_dtypes": {dtypes}'


def _dtypes_known(dossier: Dossier) -> bool:
    return len([one for one in dossier.family.input_dtypes if one]) == 2


def _summary(dossier: Dossier) -> str:
    family = dossier.family
    known = {True: "also in the baseline run", False: "absent from the baseline run"}
    baseline = known.get(family.in_baseline) if family.in_baseline is not None else ""
    parts = [
        f"{len(family.names)} names, {family.count} calls",
        f"{100 * family.share:.2f} % of GPU time",
        *([baseline] if baseline else []),
        f"origin by name: {dossier.origin}",
    ]
    now = ", ".join(shown(rule, limit=80) for rule in family.rules_now)
    held = f"\nA catch-all rule holds it now, which a rule for it overrides: {now}" if now else ""
    return "; ".join(parts) + "." + held


def _names(dossier: Dossier) -> Iterator[str]:
    for use in dossier.names:
        yield f"{use.count} x {use.time_ns / 1e6:.3f} ms  {use.canonical}"
        if use.canonical != use.raw:
            yield f"    raw: {use.raw}"
    if dossier.more_names:
        yield f"and {dossier.more_names} more names"


def _ops(dossier: Dossier) -> Iterator[str]:
    for use in dossier.ops:
        if use.replayed:
            yield f"{use.count} x replayed by a graph: the op cannot be known"
        else:
            dtypes = ", ".join(one or "?" for one in use.input_dtypes) or "not recorded"
            yield f"{use.count} x {use.op or 'no op'}  [{dtypes}]"
    if dossier.shapes:
        yield f"shapes: {'; '.join(dossier.shapes)}"


def _frames(dossier: Dossier) -> Iterator[str]:
    for frame in dossier.frames:
        yield f"{frame.path}:{frame.first_line} {frame.function} ({frame.launches} launches)"


def _context(dossier: Dossier) -> str:
    known = [
        f"{key} {shown(value, limit=60)}" for key, value in asdict(dossier.context).items() if value
    ]
    return ", ".join(known) or "nothing"


def _candidates(dossier: Dossier, source: SourceIndex | None) -> str:
    if not dossier.candidates:
        return "(none was found; look with the other actions, or abstain)"
    parts = []
    for number, candidate in enumerate(dossier.candidates, 1):
        lines = list(_candidate(candidate, dossier, source))
        parts.append(f"{number}. origin {candidate.origin}\n{quoted(lines, limit=240)}")
        if pattern := suggested(candidate, dossier):
            parts.append(quoted([f"suggested pattern: {pattern}"]))
    return "\n".join(parts)


def suggested(candidate: Candidate, dossier: Dossier) -> str:
    """Give a pattern that fits the family exactly, or "" where none can be made."""
    if candidate.origin == "aten-cast":
        known = _dtypes_known(dossier)
        return cast_pattern(dossier.family.names[0], known_dtypes=known) or ""
    return pattern_for(candidate, dossier.family.names) or ""


def _candidate(candidate: Candidate, dossier: Dossier, source: SourceIndex | None) -> Iterator[str]:
    if source is not None:
        yield candidate.reason
    for entry in candidate.evidence:
        first, last = entry.lines
        where = f"{entry.kind} {entry.repo} {entry.path}:{first}-{last}"
        if source is None:
            yield where
            continue
        stack = " (on the stack of its launches)" if dossier.on_stack(entry) else ""
        inside = f" in {entry.symbol}" if entry.symbol else ""
        guard = f" when {entry.guard}" if entry.guard else ""
        yield f"{where}{inside}{guard}{stack}"
        yield from _snippet(entry, source)


def _snippet(entry: Evidence, source: SourceIndex) -> Iterator[str]:
    first, last = entry.lines
    start = max(1, first - _BEFORE)
    try:
        lines = source.read(entry.repo, entry.path, start, last + _AFTER)
    except SourceError:
        return
    for number, text in enumerate(lines, start):
        yield f"    {number}: {text}"
