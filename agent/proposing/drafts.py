"""From a model's `submit_proposal` to a proposal: numbered candidates become their evidence."""

from __future__ import annotations

from agent.core.proposal_form import MAX_EVIDENCE, proposal_from, proposal_json
from agent.core.proposals import Evidence, Finding, Proposal
from agent.core.source import SourceIndex
from agent.errors import ReplyFormatError
from agent.proposing.actions import CitedEvidence, SubmitProposal
from agent.proposing.case import suggested
from agent.proposing.dossier import Dossier


def proposal_of(submitted: SubmitProposal, dossier: Dossier, source: SourceIndex) -> Proposal:
    """Build the proposal; the catch-all rules that hold the family now are always overridden.

    Raises:
        ReplyFormatError: a candidate or a checkout that does not exist, or too much evidence.
    """
    kernel = submitted.kernel or _suggested(submitted, dossier)
    if submitted.category in {member.label.category for member in dossier.family.members}:
        raise _wrong(
            f"category: the family is {submitted.category} already; name what it is beyond that,"
            " or abstain"
        )
    evidence = _evidence(submitted, dossier, source)
    if not evidence:
        where = "candidates" if dossier.candidates else "evidence that a look found, or abstain"
        raise _wrong(f"give {where}: a rule without evidence is never admitted")
    if len(evidence) > MAX_EVIDENCE:
        raise _wrong(f"{len(evidence)} pieces of evidence are more than {MAX_EVIDENCE}")
    overrides = (*submitted.overrides, *map(str, dossier.family.rules_now))
    draft = Proposal(
        id="",
        category=submitted.category,
        kernel=kernel,
        evidence=evidence,
        op=submitted.op,
        input_dtypes=tuple(submitted.input_dtypes),
        kernels=tuple(use.raw for use in dossier.names),
        overrides=tuple(dict.fromkeys(one for one in overrides if one)),
        rationale=submitted.rationale,
    )
    made = proposal_from(proposal_json(draft))
    if isinstance(made, Finding):
        raise _wrong(made.message)
    return made


def _suggested(submitted: SubmitProposal, dossier: Dossier) -> str:
    """Give the pattern that was suggested for the first candidate that is named."""
    for number in submitted.candidates[:1]:
        if number <= len(dossier.candidates):
            if pattern := suggested(dossier.candidates[number - 1], dossier):
                return pattern
            raise _wrong(f"kernel: candidate {number} has no suggested pattern; give one")
    how = 'name one: "candidates": [1]' if dossier.candidates else "none is suggested here"
    raise _wrong(f"kernel: an empty pattern takes the one suggested for a candidate; {how}")


def _evidence(
    submitted: SubmitProposal, dossier: Dossier, source: SourceIndex
) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    for number in submitted.candidates:
        if number > len(dossier.candidates):
            listed = f"1 to {len(dossier.candidates)}" if dossier.candidates else "none"
            raise _wrong(f"candidates: there is no number {number}; there are {listed}")
        found += dossier.candidates[number - 1].evidence
    commits = {repo.name: repo.commit for repo in source.repos()}
    found += (_cited(entry, commits) for entry in submitted.evidence)
    return tuple(dict.fromkeys(found))


def _cited(entry: CitedEvidence, commits: dict[str, str]) -> Evidence:
    if entry.repo not in commits:
        raise _wrong(f"evidence.repo is one of {', '.join(sorted(commits))}")
    return Evidence(
        entry.kind,
        entry.repo,
        commits[entry.repo],
        entry.path,
        (entry.first, entry.last),
        entry.symbol,
        entry.guard,
    )


def _wrong(message: str) -> ReplyFormatError:
    return ReplyFormatError("ML030", message)
