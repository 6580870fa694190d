"""Evidence, proposals, findings, verdicts and decisions as values.

Parsing them from what a person or a model wrote is `agent.core.proposal_form`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

EvidenceKind = Literal["definition", "table", "binary", "template", "instantiation", "emission"]
EVIDENCE_KINDS: tuple[EvidenceKind, ...] = (
    "definition",
    "table",
    "binary",
    "template",
    "instantiation",
    "emission",
)
Severity = Literal["error", "warning", "note"]
Level = Literal["L0", "L1", "L2", "L3", "L4"]
EndState = Literal["", "AMBIGUOUS", "EXTERNAL", "GENERATED", "STALE"]
ParseQuality = Literal["clean", "recovered", "lexical"]
_BY_CONTENT = "sha256:"
"""How the commit of a checkout without git begins."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something wrong or noteworthy, as data; `code` has an entry in docs/findings.md.

    `location` is `PATH:LINE`, a rule id, or empty.
    """

    code: str
    message: str
    severity: Severity = "error"
    location: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Pin:
    """What the gate measured about one piece of evidence, so that `verify` can check it again.

    Attributes:
        commit: 40 hex digits, or `sha256:…` of the content for a checkout without git.
        mode: the git mode of the file, `100644` or `100755`.
        blob: the git blob sha.
        node: the tree-sitter node type, or the lexical kind.
        qualname: enclosing qualified name (`AiterAttnBackend.forward_extend`), or "".
        guards: the guard chain, outermost first, each `+condition` or `-condition` by polarity.
        snippet_sha256: of the token-normalised snippet (comments dropped, whitespace folded).
        grammar: grammar name and version (`python 0.25.0`).
        parse: quality of the parse that found it.
        trace_match: `exact`, `fingerprint n/m`, `mismatch`, or "" without a trace.
    """

    commit: str
    mode: str
    blob: str
    node: str
    qualname: str
    guards: tuple[str, ...]
    snippet_sha256: str
    grammar: str
    parse: ParseQuality = "clean"
    trace_match: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place in one repository at one commit; `pin` is set by the gate, never by the proposer.

    `lines` are 1-based and inclusive. `symbol` is an enclosing qualified name or a `.co` symbol.
    """

    kind: EvidenceKind
    repo: str
    commit: str
    path: str
    lines: tuple[int, int]
    symbol: str = ""
    guard: str = ""
    snippet: str = ""
    pin: Pin | None = None

    @property
    def span(self) -> str:
        """Give the lines as readers write them: `12` or `12-14`."""
        first, last = self.lines
        return f"{first}" if first == last else f"{first}-{last}"

    @property
    def place(self) -> str:
        """Give `repo@commit path:first-last`, the commit cut short."""
        short = 12 + len(_BY_CONTENT) * self.commit.startswith(_BY_CONTENT)
        return f"{self.repo}@{self.commit[:short]} {self.path}:{self.span}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who proposed a rule: model asked and returned, provider, host, prompt and its digest.

    `run` is a digest of the run's inputs, not a clock; a person's own rule has an empty origin.
    `date` is an ISO date given by the caller, or "".
    """

    provider: str = ""
    model: str = ""
    model_returned: str = ""
    host: str = ""
    fingerprint: str = ""
    prompt: str = ""
    prompt_digest: str = ""
    run: str = ""
    tool: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One rule with its evidence; immutable, `id` is a digest of its content.

    `kernels` are the raw names it is meant for; `op` and `input_dtypes` as in `Rule`.
    """

    id: str
    category: str
    kernel: str
    evidence: tuple[Evidence, ...]
    op: str = ""
    input_dtypes: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    rationale: str = ""
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True, slots=True)
class RunContext:
    """What is known of the run a proposal is for, beside the trace itself; "" where unknown.

    `backend` is `cuda` or `rocm`, `arch` e.g. `gfx942`, `attention` e.g. `aiter`, `model` e.g.
    `MLA`.
    """

    backend: str = ""
    arch: str = ""
    attention: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says of one proposal.

    `level` is the highest level whose conditions hold; admitted needs L3 and no error finding.
    `evidence` are the proposal's, with pins where they could be taken. `dtypes_unknown` tells that
    it holds only for launches whose input dtypes the trace does not know, as in `Rule`.
    """

    proposal: Proposal
    admitted: bool
    level: Level
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    end_state: EndState = ""
    matched: tuple[str, ...] = ()
    dtypes_unknown: bool = False

    def __post_init__(self) -> None:
        """Hold the invariant: an error-level finding means not admitted."""
        if self.admitted and any(finding.severity == "error" for finding in self.findings):
            message = "a verdict with an error finding cannot be admitted"
            raise ValueError(message)

    @property
    def errors(self) -> Sequence[Finding]:
        """Findings that reject the proposal."""
        return tuple(finding for finding in self.findings if finding.severity == "error")


Action = Literal["accept", "reject", "edit", "skip"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person said of one verdict; `reason` is kept for a rejection."""

    proposal_id: str
    action: Action
    by: str
    reason: str = ""
