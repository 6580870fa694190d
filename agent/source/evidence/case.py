"""One examination in progress: the question, the items read, what is proven so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.core.proposals import EndState, Evidence, Finding, RunContext
from agent.core.source import CallSite, KernelOrigin, RepoInfo
from agent.source.definitions import Definitions
from agent.source.evidence.contradictions import Contradictions
from agent.source.evidence.items import Item
from agent.source.evidence.linking import Links
from agent.source.native.manifests import BuildManifests
from agent.source.parse import TreeCache
from agent.source.python.meaning import Meanings
from agent.source.reach import Reach

CASTS = frozenset({"CastFromFP8", "CastToFP8"})


@dataclass(frozen=True)
class Workbench:
    """What an examination works with: bundles at the pinned commits, and caches over calls."""

    bundle: Callable[[str, str], Definitions | Finding]
    default: Callable[[], tuple[Definitions, ...]]
    manifests: Callable[[Definitions], BuildManifests]
    reaches: dict[tuple[object, ...], Reach]
    trees: TreeCache = field(default_factory=TreeCache)
    meanings: dict[tuple[RepoInfo, ...], Meanings] = field(default_factory=dict)

    def links(self, bundles: Sequence[Definitions]) -> Links:
        """Connect emissions to definitions over some bundles; what names mean is read once."""
        key = tuple(bundle.snapshot.info for bundle in bundles)
        if key not in self.meanings:
            self.meanings[key] = Meanings([bundle.snapshot for bundle in bundles])
        return Links(bundles, self.reaches, self.meanings[key])


@dataclass(frozen=True, slots=True)
class Question:
    """One proposal as an examination sees it; see `SourceIndex.examine`."""

    evidence: tuple[Evidence, ...]
    names: tuple[str, ...]
    category: str
    context: RunContext
    pattern: str = ""
    listed: tuple[str, ...] = ()


@dataclass
class Case:
    """One examination in progress."""

    work: Workbench
    question: Question
    family: tuple[str, ...]
    items: list[Item]
    bundles: tuple[Definitions, ...]
    links: Links
    contradictions: Contradictions
    origin: KernelOrigin = "unknown"
    proven: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    lookalikes: tuple[CallSite, ...] = ()
    end_state: EndState = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Give the kernels the proposal is for, declared or of the trace."""
        return self.question.names

    @property
    def category(self) -> str:
        """Give the proposed category."""
        return self.question.category

    @property
    def context(self) -> RunContext:
        """Give what is known of the run."""
        return self.question.context

    def defining(self) -> list[Item]:
        """Give the items that define or list the kernel."""
        return [item for item in self.items if item.definition is not None or item.instantiated]

    def emitting(self) -> list[Item]:
        """Give the items whose lines hold a call or launch."""
        return [
            item
            for item in self.items
            if item.native_sites or (item.region is not None and item.region.sites)
        ]
