"""The strict form of a proposal as a person or a model writes it: JSON text -> `Proposal`.

Nothing is repaired silently: duplicate keys, unknown keys, wrong types and a second JSON value are
errors, each as a `Finding` with the gate's codes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.core.proposals import Evidence, EvidenceKind, Finding, Proposal

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


class _DuplicateKeyError(ValueError):
    """An object names one key twice."""


def parse_proposal(text: str) -> Proposal | Finding:
    """Read one JSON object as a proposal; a `Finding` (code `E_SCHEMA`) says what is wrong."""
    if len(text) > MAX_TEXT:
        return _schema(f"the text has {len(text)} characters, more than {MAX_TEXT}")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except _DuplicateKeyError as err:
        return _schema(str(err))
    except (ValueError, RecursionError) as err:
        return _schema(f"not one JSON value: {err}")
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


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            message = f"duplicate key {key!r}"
            raise _DuplicateKeyError(message)
        seen[key] = value
    return seen


def _no_constant(name: str) -> NoReturn:
    message = f"{name} is not JSON"
    raise ValueError(message)


def _one_line(error: Any) -> str:  # noqa: ANN401 - pydantic's own error dict
    where = ".".join(str(part) for part in error["loc"]) or "proposal"
    return f"{where}: {error['msg']}"


def _schema(message: str) -> Finding:
    return Finding("E_SCHEMA", message)
