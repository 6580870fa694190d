"""The proposer without a model: the best candidate whose evidence is complete, or no proposal.

Deterministic: the same dossier gives the same proposal. It goes through the same gate as any other
and abstains, with a reason, wherever it would have to guess.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from agent.core.proposal_form import proposal_from, proposal_json
from agent.core.proposals import Finding, Proposal
from agent.core.source import Candidate
from agent.proposing.dossier import Dossier
from agent.proposing.patterns import COPY_OP, cast_pattern, pattern_for
from agent.proposing.words import told_by

_FP8 = "c10::Float8_"
_CASTS = frozenset({"CastFromFP8", "CastToFP8"})


def propose_offline(dossier: Dossier, categories: Collection[str]) -> tuple[Proposal, ...] | str:
    """Give proposals in the order to try them, or the reason for none.

    `categories` are those of the rule file; no other is ever proposed.
    """
    if dossier.unprovable:
        return dossier.unprovable
    if dossier.origin == "inductor":
        return "compiled by Inductor: its name is made anew by every change of the model"
    if not dossier.candidates:
        return "no definition and no place that launches it was found in the checkouts"
    if dossier.origin == "aten-cast":
        return _cast(dossier, categories)
    return _defined(dossier, categories)


def category_told(dossier: Dossier) -> str:
    """Give the category that words, or the dtypes of a cast, point to; "" where they do not."""
    if dossier.origin == "aten-cast":
        return (_direction(dossier) or "") if dossier.candidates else ""
    told = _category(dossier)
    return "" if " " in told else told


def _defined(dossier: Dossier, categories: Collection[str]) -> tuple[Proposal, ...] | str:
    owners = {
        (one.evidence[0].repo, one.evidence[0].path, one.evidence[0].lines)
        for one in dossier.candidates
    }
    if len(owners) > 1:
        places = ", ".join(sorted(f"{path}:{lines[0]}" for _, path, lines in owners)[:4])
        return f"several definitions make this name: {places}"
    category = _category(dossier)
    if category not in categories:
        return category if " " in category else f"{category} is no category of the rule file"
    proposals = []
    for candidate in _ordered(dossier):
        pattern = pattern_for(candidate, dossier.family.names)
        if pattern is not None:
            reason = f"{candidate.reason}; its words say {category}"
            proposals.append(_proposal(dossier, candidate, category, pattern, reason=reason))
    made = tuple(one for one in proposals if one is not None)
    return made or "no pattern is exact enough for the names of this family"


def _category(dossier: Dossier) -> str:
    """Give the one category that all words point to, else a reason.

    A file holds many kernels: without a word in the name, what launches it has to say the same.
    """
    names = {candidate.name for candidate in dossier.candidates if candidate.name}
    files = {PurePosixPath(one.evidence[0].path).stem for one in dossier.candidates}
    by_name, told = told_by(names), told_by(names, files)
    if not told:
        return "neither its name nor its file says what it computes"
    if len(told | by_name) > 1:
        return f"its words point several ways: {', '.join(sorted(told | by_name))}"
    if not by_name and told_by(_launchers(dossier)) != told:
        return f"only its file says {next(iter(told))}"
    return next(iter(told))


def _launchers(dossier: Dossier) -> set[str]:
    entries = (entry for one in dossier.candidates for entry in one.evidence)
    return {entry.symbol for entry in entries if entry.kind == "emission"}


def _cast(dossier: Dossier, categories: Collection[str]) -> tuple[Proposal, ...] | str:
    family = dossier.family
    direction = _direction(dossier)
    if direction is None:
        return "neither the op's dtypes, the name nor the baseline tells which way it converts"
    if direction not in categories:
        return f"{direction} is no category of the rule file"
    best = _best_casts(dossier)
    if len({one.evidence[0].symbol for one in best}) > 1:
        places = ", ".join(f"{one.evidence[0].symbol}:{one.evidence[0].lines[0]}" for one in best)
        return f"several functions convert this way and no stack tells them apart: {places[:400]}"
    known = _both(family.input_dtypes)
    pattern = cast_pattern(family.names[0], known_dtypes=known)
    if pattern is None:
        return "the name does not tell this conversion from a plain copy"
    drafts = (
        _proposal(dossier, one, direction, pattern, reason=one.reason, known_dtypes=known)
        for one in best
    )
    return tuple(one for one in drafts if one is not None) or "its names are too long for a rule"


def _direction(dossier: Dossier) -> str | None:
    dtypes = dossier.family.input_dtypes
    if _both(dtypes):
        held = (dtypes[0].startswith(_FP8), dtypes[1].startswith(_FP8))
        return {(False, True): "CastFromFP8", (True, False): "CastToFP8"}.get(held)
    reasons = {" to FP8" in one.reason for one in dossier.candidates}
    if reasons == {True}:
        return "CastToFP8"
    if reasons == {False} and dossier.family.in_baseline is False:
        return "CastFromFP8"
    return None


def _best_casts(dossier: Dossier) -> Sequence[Candidate]:
    """Prefer functions on the stacks, those at their first lines; else those of the best score."""
    seen = [one for one in dossier.candidates if any(map(dossier.on_stack, one.evidence))]
    exact = [one for one in seen if dossier.begins_on_stack(one)]
    pool = exact or seen or list(dossier.candidates)
    return [one for one in pool if one.score == pool[0].score]


def _ordered(dossier: Dossier) -> list[Candidate]:
    """Candidates in a function on the stacks first, then by score."""
    return sorted(
        dossier.candidates,
        key=lambda one: (not any(map(dossier.on_stack, one.evidence)), -one.score),
    )


def _both(dtypes: Sequence[str]) -> bool:
    return len(dtypes) == 2 and all(dtypes)


def _proposal(
    dossier: Dossier,
    candidate: Candidate,
    category: str,
    pattern: str,
    *,
    reason: str,
    known_dtypes: bool = False,
) -> Proposal | None:
    """Build it in the form that anybody's proposal has; None where a name is too long for that."""
    draft = Proposal(
        id="",
        category=category,
        kernel=pattern,
        evidence=candidate.evidence,
        op=COPY_OP if known_dtypes else "",
        input_dtypes=dossier.family.input_dtypes if known_dtypes else (),
        kernels=tuple(use.raw for use in dossier.names),
        overrides=tuple(map(str, dossier.family.rules_now)),
        rationale=reason[:1_000],
    )
    made = proposal_from(proposal_json(draft))
    return None if isinstance(made, Finding) else made
