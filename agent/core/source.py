"""What a source checkout can be asked, as values and one protocol.

`agent.source` implements `SourceIndex` over git objects and tree-sitter; the gate, the offline
proposer and the model's tools only know this protocol, so tests give them an in-memory one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from agent.core.proposals import EndState, Evidence, Finding, ParseQuality, RunContext

KernelOrigin = Literal[
    "triton",
    "triton-repr",
    "gluon",
    "flydsl",
    "hip-global",
    "aiter-asm",
    "ck",
    "aten-cast",
    "aten",
    "inductor",
    "external",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class RepoInfo:
    """One checkout: `commit` is 40 hex digits, or `sha256:…` where there is no git."""

    name: str
    commit: str
    versioned: bool = True


@dataclass(frozen=True, slots=True, order=True)
class SourceHit:
    """One line that holds a searched text; `text` is the line without its end."""

    repo: str
    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, order=True)
class Definition:
    """Code that makes a kernel name: a jit-decorated `def`, a `__global__` function, a table row.

    `lines` are those of the `def` or head, 1-based and inclusive (decorators not included).
    `name` is what the profiler would print, without template arguments.
    """

    repo: str
    path: str
    lines: tuple[int, int]
    name: str
    origin: KernelOrigin
    qualname: str = ""
    parse: ParseQuality = "clean"
    runtime: bool = True


@dataclass(frozen=True, slots=True, order=True)
class CallSite:
    """A place that calls, launches or instantiates a symbol.

    `guards` is the chain of conditions around it, outermost first, `+cond` or `-cond`.
    `runtime` is False for tests, benchmarks, examples and docs.
    """

    repo: str
    path: str
    lines: tuple[int, int]
    text: str
    qualname: str = ""
    guards: tuple[str, ...] = ()
    node: str = ""
    runtime: bool = True


@dataclass(frozen=True, slots=True, order=True)
class EnclosingFunction:
    """The function around an emission; `first_lines` are those of its decorators and `def`."""

    repo: str
    commit: str
    path: str
    qualname: str
    first_lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A set of evidence that together may prove where a kernel comes from, best first.

    `score` orders candidates (larger is better); `reason` says in words why it is listed.
    `name` is the emitted kernel's base name (for a pattern), "" for ATen. `functions` are those
    around the emissions, to compare with a trace's stacks.
    """

    origin: KernelOrigin
    name: str
    evidence: tuple[Evidence, ...]
    score: int
    reason: str
    functions: tuple[EnclosingFunction, ...] = ()


@dataclass(frozen=True, slots=True)
class Examination:
    """What the checkout says of one proposal's evidence, for the gate.

    `evidence` are the proposal's items with pins where they could be taken; `proven` holds which
    of `DEF TAB BIN SKEL INST EMIT GUARD BUILD OP STK` were shown; `findings` say what was not.
    """

    origin: KernelOrigin
    evidence: tuple[Evidence, ...]
    proven: frozenset[str]
    findings: tuple[Finding, ...]
    complete: bool = False
    """The minimum for the origin holds, what only a trace can show apart (`needs`)."""
    needs: frozenset[str] = frozenset()
    """What a trace must still show: `OP` dtypes or absence from the baseline, or `OP` or `STK`."""
    defined: tuple[Definition, ...] = ()
    """What the definition, table and template items define."""
    functions: tuple[EnclosingFunction, ...] = ()
    """The function around each emission, to compare with stacks."""
    lookalikes: tuple[CallSite, ...] = ()
    """Every other place that could be taken for a cast's emission."""
    other_sites: tuple[CallSite, ...] = ()
    """Every other place that launches the kernel as directly as the cited one, by path and line."""
    end_state: EndState = ""


class SourceIndex(Protocol):
    """Read-only questions to one or several checkouts, each read at a pinned commit.

    `repo` restricts a question to one checkout; "" asks all. Results are sorted and bounded.
    """

    def repos(self) -> tuple[RepoInfo, ...]:
        """List the checkouts in the order they were given."""
        ...

    def search(self, text: str, *, repo: str = "", limit: int = 20) -> tuple[SourceHit, ...]:
        """Find lines that hold `text` literally."""
        ...

    def find_definition(
        self, name: str, *, repo: str = "", limit: int = 20
    ) -> tuple[Definition, ...]:
        """Find what defines the kernel `name` (raw or canonical); several mean ambiguous."""
        ...

    def find_call_sites(
        self, symbol: str, *, repo: str = "", limit: int = 20
    ) -> tuple[CallSite, ...]:
        """Find calls, launches and instantiations of `symbol`."""
        ...

    def read(self, repo: str, path: str, first: int, last: int) -> tuple[str, ...]:
        """Give lines `first`..`last` (1-based, inclusive, cut at the file's end).

        Raises:
            SourceError: no such repo, or the path is unsafe or not in the tree.
        """
        ...

    def shortlist(
        self,
        name: str,
        *,
        op: str = "",
        input_dtypes: tuple[str, ...] = (),
        context: RunContext | None = None,
        limit: int = 8,
    ) -> tuple[Candidate, ...]:
        """List candidate evidence for one kernel, best first; empty when nothing fits."""
        ...

    def examine(
        self,
        evidence: tuple[Evidence, ...],
        *,
        names: tuple[str, ...],
        category: str,
        context: RunContext,
        pattern: str = "",
        listed: tuple[str, ...] = (),
    ) -> Examination:
        """Check a proposal's evidence against the pinned commits and take the pins.

        `names` are the kernels it is meant for. Where there are none, a definition must make a name
        that `pattern` matches: its own, or one of `listed`.
        """
        ...

    def fingerprint(
        self, repo: str, commit: str, frames: frozenset[tuple[str, int, str]]
    ) -> tuple[int, int]:
        """Count the (path, first line, function) frames of a checkout that a commit has: (n, of m).

        Frames of other packages are not counted; (0, 0) means that none could be compared.
        """
        ...

    def named_like(self, literal: str, *, limit: int = 60) -> tuple[Definition, ...]:
        """List runtime definitions and table rows whose name holds a literal."""
        ...
