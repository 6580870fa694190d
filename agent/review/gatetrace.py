"""What the trace says of a proposal: the launching op and its dtypes, the stack, the other run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import re2

from agent.core.kernels import FrameUse, Signature, Trace
from agent.core.proposals import Evidence, Finding, Proposal
from agent.core.source import Examination, SourceIndex
from agent.core.text import shown as quoted
from agent.review.gatenames import applies
from agent.ruleset.match import Pattern

_FP8 = "Float8"
_CASTS = {"CastFromFP8": (False, True), "CastToFP8": (True, False)}
_EXPONENT_ONLY = "Float8_e8m0"
_FITS = 0.9
"""Share of a trace's functions that a commit must have at their first lines to count as its own."""


@dataclass(frozen=True)
class Confirmation:
    """What the trace shows: `OP` dtypes, `STK` function, `ABSENT` from the baseline, or nothing."""

    shown: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    same_commit: bool = True
    """False when the stacks say that the trace was made from another commit."""

    @property
    def confirmed(self) -> bool:
        """Tell whether the launching op or the stack agrees: level L4."""
        return self.same_commit and bool(self.shown & {"OP", "STK"})


@dataclass(frozen=True)
class Runs:
    """The run a proposal is for, and the one before the change."""

    trace: Trace | None
    baseline: Trace | None


@dataclass
class _Seen:
    shown: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)


def dtype_findings(proposal: Proposal) -> Iterator[Finding]:
    """Say when stated dtypes ([destination, source, ...]) contradict a cast's category."""
    wanted = _CASTS.get(proposal.category)
    stated = proposal.input_dtypes
    if wanted is None:
        return
    if proposal.op and not _found(proposal.op, "aten::copy_"):
        yield Finding(
            "E_DTYPE_MISMATCH", "a cast is launched by aten::copy_, which the op does not fit"
        )
    if not stated:
        return
    if len(stated) < 2:
        yield Finding("E_DTYPE_MISMATCH", "a cast needs both dtypes: [destination, source]")
        return
    held = (_FP8 in stated[0], _FP8 in stated[1])
    if held == wanted:
        if any(_EXPONENT_ONLY in dtype for dtype in stated):
            message = "Float8_e8m0fnu holds scales, not a KV cache"
            yield Finding("E_DTYPE_MISMATCH", message)
        return
    if held == (wanted[1], wanted[0]):
        message = f"[{', '.join(stated[:2])}] is the other direction than {proposal.category}"
        yield Finding("E_DIRECTION", message, hint="aten::copy_ lists the destination first")
    else:
        message = f"[{', '.join(stated[:2])}] is no conversion between FP8 and a wider type"
        yield Finding("E_DTYPE_MISMATCH", message)


def unseen_conditions(proposal: Proposal) -> Iterator[Finding]:
    """Say that op or dtypes of a kernel of its own are claims that only a trace can show."""
    stated = [key for key in ("op", "input_dtypes") if getattr(proposal, key)]
    if stated:
        message = f"no trace shows the {' and '.join(stated)} that it asks for"
        hint = "leave them out, or judge it with a trace of the run"
        yield Finding("E_NOT_DECIDABLE", message, hint=hint)


def _found(pattern: str, text: str) -> bool:
    try:
        return Pattern(pattern).search(text)
    except re2.error:
        return False


def confirm(
    proposal: Proposal,
    found: Examination,
    runs: Runs,
    signatures: Sequence[Signature],
    source: SourceIndex,
) -> Confirmation:
    """Ask the trace about the signatures a proposal takes."""
    seen, trace = _Seen(), runs.trace
    if trace is None or not signatures:
        return Confirmation()
    frames = trace_frames(trace)
    prints = {
        (one.repo, one.commit): source.fingerprint(one.repo, one.commit, frames)
        for one in found.functions
        if frames
    }
    fits = {place: fitting(*counts) for place, counts in prints.items()}
    seen.findings += [
        _other_commit(*place, *prints[place]) for place in sorted(fits) if not fits[place]
    ]
    _ask_ops(proposal, signatures, seen)
    _ask_stacks(found, trace, signatures, seen, fits)
    if runs.baseline is not None and not _in_baseline(proposal, runs.baseline):
        seen.shown.add("ABSENT")
    same_commit = not fits or any(fits.values())
    return Confirmation(frozenset(seen.shown), tuple(seen.findings), same_commit=same_commit)


def _other_commit(repo: str, commit: str, matching: int, asked: int) -> Finding:
    where = f"{repo}@{commit[:12]}"
    message = (
        f"the trace is not of {where}: {matching} of {asked} functions on its stacks begin where"
        " this checkout has them"
        if asked
        else f"no function on the stacks of the trace is one of {where}"
    )
    return Finding("E_OTHER_COMMIT", message, "note", hint="check out what the run executed")


def told_by_absence(proposal: Proposal, found: Examination) -> bool:
    """Tell whether only absence from the baseline can decide: no dtypes, and a name like others."""
    return "OP_OR_ABSENT" in found.needs and len(proposal.input_dtypes) < 2


def needs_findings(
    proposal: Proposal,
    found: Examination,
    confirmation: Confirmation,
    signatures: Sequence[Signature],
) -> Iterator[Finding]:
    """Say what only a trace can show and this one does not."""
    shown = confirmation.shown
    if told_by_absence(proposal, found):
        yield _absence(confirmation, signatures)
    elif "OP" in found.needs and not shown & {"OP", "STK"}:
        message = "neither the source nor the name tells the direction of the conversion"
        yield Finding("E_NOT_DECIDABLE", message, hint="a trace with the op's dtypes tells")
    if "OP_OR_STK" in found.needs and not shown & {"OP", "STK"}:
        message = "a shared ATen kernel needs the launching op or the stack of a trace"
        yield Finding("E_NOT_DECIDABLE", message, hint="else only the Elementwise family fits")


def _absence(confirmation: Confirmation, signatures: Sequence[Signature]) -> Finding:
    """Say whether absence from the baseline decides: not where the trace knows the dtypes."""
    known = next((one for one in signatures if any(one.input_dtypes)), None)
    if known is not None:
        dtypes = ", ".join(map(quoted, known.input_dtypes[:2]))
        message = f"the trace knows what it converts: {known.op or 'the op'} has [{dtypes}]"
        hint = "state op and input_dtypes: the name alone takes every copy of that name"
        return Finding("E_NOT_DECIDABLE", message, hint=hint)
    if "ABSENT" not in confirmation.shown:
        message = "the name does not tell that the source was FP8"
        hint = "state op and input_dtypes, or give a baseline run without the kernel"
        return Finding("E_NOT_DECIDABLE", message, hint=hint)
    message = "told by its absence from the baseline: it takes only launches of unknown dtypes"
    return Finding("E_ONLY_UNKNOWN_DTYPES", message, "note")


def matched_traces(
    evidence: Sequence[Evidence], source: SourceIndex, trace: Trace | None
) -> tuple[Evidence, ...]:
    """Write into each pin whether its commit is the one the trace was made from."""
    frames = trace_frames(trace)
    if not frames:
        return tuple(evidence)
    known: dict[tuple[str, str], str] = {}
    out = []
    for entry in evidence:
        if entry.pin is None:
            out.append(entry)
            continue
        key = (entry.repo, entry.pin.commit)
        if key not in known:
            known[key] = described(*source.fingerprint(entry.repo, entry.pin.commit, frames))
        out.append(replace(entry, pin=replace(entry.pin, trace_match=known[key])))
    return tuple(out)


def described(matching: int, asked: int) -> str:
    """Write a fingerprint: `exact`, `fingerprint n/m`, `mismatch`, or "" when nothing was asked."""
    if not asked:
        return ""
    if matching == asked:
        return "exact"
    return f"fingerprint {matching}/{asked}" if fitting(matching, asked) else "mismatch"


def fitting(matching: int, asked: int) -> bool:
    """Tell whether a trace was made from a commit, by its functions' first lines."""
    return bool(asked) and matching >= _FITS * asked


def trace_frames(trace: Trace | None) -> frozenset[tuple[str, int, str]]:
    """Give the (path, first line, function) of all Python frames of a run."""
    if trace is None:
        return frozenset()
    return frozenset().union(*(rank.fingerprint for rank in trace.ranks))


def _ask_ops(proposal: Proposal, signatures: Sequence[Signature], seen: _Seen) -> None:
    wanted = _CASTS.get(proposal.category)
    for signature in signatures:
        if wanted is not None:
            dtypes = signature.input_dtypes
            if len(dtypes) < 2 or (_FP8 in dtypes[0], _FP8 in dtypes[1]) != wanted:
                return
        elif not (proposal.op and signature.op):
            return
    seen.shown.add("OP")


def _ask_stacks(
    found: Examination,
    trace: Trace,
    signatures: Sequence[Signature],
    seen: _Seen,
    fits: Mapping[tuple[str, str], bool],
) -> None:
    """Compare the functions on the stacks of the launches with those around the emissions.

    Where the trace was made from the pinned commit a frame must also begin on the function's first
    line. Launches of which none runs inside the function refute the emission.
    """
    wanted = set(signatures)
    launches = inside = 0
    for rank in trace.ranks:
        for signature, context in rank.context.items():
            if signature in wanted and context.frames:
                count = rank.stats[signature].count
                launches += count
                inside += min(_launches_in(context.frames, found, fits), count)
    if not launches or not found.functions:
        return
    same = any(fits.get((one.repo, one.commit), False) for one in found.functions)
    names = ", ".join(sorted({one.qualname for one in found.functions}))
    if inside:
        if same:
            seen.shown.add("STK")
        message = f"{inside} of {launches} launches with a stack run inside {names}"
        seen.findings.append(Finding("E_STACK", message, "note"))
    else:
        message = f"none of {launches} launches with a stack runs inside {names}"
        seen.findings.append(Finding("E_STACK", message))


def _launches_in(
    frames: Sequence[FrameUse], found: Examination, fits: Mapping[tuple[str, str], bool]
) -> int:
    return max(
        (
            frame.launches
            for frame in frames
            for one in found.functions
            if frame.function == one.qualname.rpartition(".")[2]
            and frame.is_in(one.path)
            and (frame.first_line in one.first_lines or not fits.get((one.repo, one.commit), False))
        ),
        default=0,
    )


def _in_baseline(proposal: Proposal, baseline: Trace) -> bool:
    return any(applies(proposal, signature) for signature in baseline.stats)
