"""The strict form of a proposal as a person or a model writes it: JSON text -> `Proposal`.

Nothing is repaired silently: duplicate keys, unknown keys, wrong types and a second JSON value are
errors, each as a `Finding` with the gate's codes.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.core.proposals import EVIDENCE_KINDS, Evidence, EvidenceKind, Finding, Proposal
from agent.core.strict_json import read_json

_VERDICT_KEYS = frozenset(
    {
        "level", "grade", "validated", "verdict", "admitted", "accepted", "approved", "status",
        "confidence", "score", "accepted_by", "proposed_by", "pin", "findings", "end_state", "id",
    }
)  # fmt: skip
_CLAIM_KEYS = frozenset(
    {"claim", "claims", "history", "removed_in", "fixed_in", "introduced_in", "changelog", "since"}
)
_HISTORY = re.compile(
    r"\b(?:PR|MR|pull request|issue)\s*#?\d+|(?<![\w&])#\d{3,}\b"
    r"|\b(?:removed|fixed|added|introduced|deprecated|reverted|landed|dropped|renamed)\s+"
    r"(?:in|by|upstream|since|with|at)\b|\b(?:since|until|before|as of)\s+v?\d+\.\d+",
    re.IGNORECASE,
)
MAX_EVIDENCE = 5
MAX_TEXT = 262_144
Line = Annotated[int, Field(strict=True)]
Sha = Annotated[str, Field(pattern=r"\A(?:[0-9a-f]{40}|sha256:[0-9a-f]{64})\z")]
Short = Annotated[str, Field(max_length=1_000)]
KernelNameText = Annotated[str, Field(min_length=1, max_length=20_000)]


class EvidenceForm(BaseModel):
    """One piece of evidence as written; the gate alone adds a pin."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: EvidenceKind
    repo: Annotated[str, Field(min_length=1, max_length=100)]
    commit: Sha
    path: Annotated[str, Field(min_length=1, max_length=1_000)]
    lines: Annotated[list[Line], Field(min_length=2, max_length=2)]
    symbol: Short = ""
    guard: Short = ""
    snippet: Annotated[str, Field(max_length=10_000)] = ""


class ProposalForm(BaseModel):
    """A proposal as written; no level, grade or verdict can be part of it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    category: Annotated[str, Field(min_length=1, max_length=100)]
    kernel: Annotated[str, Field(max_length=10_000)]
    op: Short = ""
    input_dtypes: Annotated[list[Short], Field(max_length=8)] = []
    kernels: Annotated[list[KernelNameText], Field(max_length=200)] = []
    overrides: Annotated[list[Short], Field(max_length=50)] = []
    rationale: Annotated[str, Field(max_length=4_000)] = ""
    evidence: Annotated[list[EvidenceForm], Field(min_length=1, max_length=MAX_EVIDENCE)]


def parse_proposal(text: str) -> Proposal | Finding:
    """Read one JSON object as a proposal; a `Finding` (code `E_SCHEMA`) says what is wrong."""
    if len(text) > MAX_TEXT:
        return _schema(f"the text has {len(text)} characters, more than {MAX_TEXT}")
    try:
        value = read_json(text)
    except ValueError as err:
        return _schema(str(err))
    return proposal_from(value)


def proposal_from(value: object) -> Proposal | Finding:
    """Check a decoded JSON value against the form and give the proposal."""
    try:
        form = ProposalForm.model_validate(value)
    except ValidationError as err:
        return _schema("; ".join(_one_line(error) for error in err.errors()[:5]))
    evidence = tuple(
        Evidence(
            entry.kind,
            entry.repo,
            entry.commit,
            entry.path,
            (entry.lines[0], entry.lines[1]),
            entry.symbol,
            entry.guard,
            entry.snippet,
        )
        for entry in form.evidence
    )
    return Proposal(
        id=_digest(form),
        category=form.category,
        kernel=form.kernel,
        evidence=evidence,
        op=form.op,
        input_dtypes=tuple(form.input_dtypes),
        kernels=tuple(form.kernels),
        overrides=tuple(form.overrides),
        rationale=form.rationale,
    )


def loosely(value: object) -> tuple[Proposal | None, tuple[Finding, ...]]:
    """Read a value that broke the form by unknown keys or kinds alone, to say more about it.

    Gives the proposal without them, or None where more is wrong or a key claims a verdict, and
    what the unknown keys are worth saying (`E_UNVERIFIABLE_CLAIM`). Never a way to be admitted.
    """
    if not isinstance(value, dict) or value.keys() & _VERDICT_KEYS:
        return None, ()
    kept = {key: part for key, part in value.items() if key in ProposalForm.model_fields}
    entries = kept.get("evidence")
    if not isinstance(entries, list):
        return None, ()
    if any(isinstance(entry, dict) and entry.keys() & _VERDICT_KEYS for entry in entries):
        return None, ()
    kept["evidence"] = [_known(entry) for entry in entries]
    proposal = proposal_from(kept)
    said = tuple(
        Finding("E_UNVERIFIABLE_CLAIM", f"{key!r} claims what the checkout cannot show")
        for key in sorted(map(str, value.keys() - ProposalForm.model_fields.keys()))
        if key in _CLAIM_KEYS or claimed_history(str(value.get(key)))
    )
    return (None, said) if isinstance(proposal, Finding) else (proposal, said)


def claimed_history(text: str) -> str:
    """Give the part of a text that claims history (`removed in PR #12`), or ""."""
    found = _HISTORY.search(text)
    return found.group() if found else ""


def _known(entry: object) -> object:
    if not isinstance(entry, dict):
        return entry
    kept = {key: part for key, part in entry.items() if key in EvidenceForm.model_fields}
    if kept.get("kind") not in EVIDENCE_KINDS:
        kept["kind"] = "emission"
    return kept


def proposal_json(proposal: Proposal) -> dict[str, object]:
    """Give the JSON form of a proposal, keys in the contract's order, empty options left out."""
    written: dict[str, object] = {"category": proposal.category, "kernel": proposal.kernel}
    if proposal.op:
        written["op"] = proposal.op
    for key in ("input_dtypes", "kernels", "overrides"):
        if values := getattr(proposal, key):
            written[key] = list(values)
    if proposal.rationale:
        written["rationale"] = proposal.rationale
    written["evidence"] = [_evidence_json(entry) for entry in proposal.evidence]
    return written


def _evidence_json(entry: Evidence) -> dict[str, object]:
    written: dict[str, object] = {
        "kind": entry.kind,
        "repo": entry.repo,
        "commit": entry.commit,
        "path": entry.path,
        "lines": list(entry.lines),
    }
    for key in ("symbol", "guard", "snippet"):
        if text := getattr(entry, key):
            written[key] = text
    return written


def _digest(form: ProposalForm) -> str:
    canonical = json.dumps(form.model_dump(exclude={"rationale"}), sort_keys=True)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _one_line(error: Any) -> str:  # noqa: ANN401 - pydantic's own error dict
    where = ".".join(str(part) for part in error["loc"]) or "proposal"
    return f"{where}: {error['msg']}"


def _schema(message: str) -> Finding:
    return Finding("E_SCHEMA", message)
