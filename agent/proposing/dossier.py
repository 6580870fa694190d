"""Everything that is known of one family before anybody is asked, as values.

Pure: the stacks come from the trace, the candidates from the source index. How a dossier is
written for a model is `agent.proposing.prompts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.core.kernels import FrameUse, LaunchContext, Signature, Trace
from agent.core.names import canonical_name
from agent.core.proposals import Evidence, RunContext
from agent.core.source import Candidate, KernelOrigin
from agent.proposing.families import Family
from agent.source.names import origin_of

MAX_NAMES, MAX_OPS, MAX_FRAMES, MAX_SHAPES, MAX_CANDIDATES = 12, 8, 12, 6, 8
_SHORTLISTED_NAMES = 3

Shortlist = Callable[[str, str, tuple[str, ...], RunContext], Sequence[Candidate]]
"""(raw name, op, input dtypes, context) -> candidate evidence, best first."""


@dataclass(frozen=True, slots=True)
class NameUse:
    """One raw name of a family; `canonical` is what a rule sees beside it; time in ns."""

    raw: str
    canonical: str
    count: int
    time_ns: int


@dataclass(frozen=True, slots=True)
class OpUse:
    """One launching op with the first dtypes of its inputs; "" and nothing where unknown."""

    op: str
    input_dtypes: tuple[str, ...]
    replayed: bool
    count: int


@dataclass(frozen=True)
class Dossier:
    """One family and what was found around it; bounded in every list.

    Attributes:
        names: most time first; `more_names` were left out.
        frames: Python functions on the stacks of its launches, innermost first.
        candidates: best first; a model refers to them by number, from 1.
    """

    family: Family
    names: tuple[NameUse, ...]
    more_names: int
    origin: KernelOrigin
    ops: tuple[OpUse, ...]
    frames: tuple[FrameUse, ...]
    shapes: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    context: RunContext

    @property
    def unprovable(self) -> str:
        """Say why no rule for the family can ever have evidence, or nothing."""
        if self.family.vendor or self.origin == "external":
            return "a vendor library: its source is in no checkout, built-in rules name it"
        return ""

    def on_stack(self, entry: Evidence) -> bool:
        """Tell whether a piece of evidence lies in a function that launched the family."""
        function = entry.symbol.rpartition(".")[2]
        return bool(function) and any(
            frame.function == function and frame.is_in(entry.path) for frame in self.frames
        )

    def begins_on_stack(self, candidate: Candidate) -> bool:
        """Tell whether a function of a candidate is on a stack with its first line as it stands.

        That tells methods of one name in one file apart, where the trace is of that commit.
        """
        return any(
            frame.function == one.qualname.rpartition(".")[2]
            and frame.first_line in one.first_lines
            and frame.is_in(one.path)
            for one in candidate.functions
            for frame in self.frames
        )


def dossier_of(family: Family, trace: Trace, shortlist: Shortlist, context: RunContext) -> Dossier:
    """Gather what is known of a family."""
    names = _names(family)
    around = list(_contexts(family, trace))
    return Dossier(
        family=family,
        names=names[:MAX_NAMES],
        more_names=max(0, len(names) - MAX_NAMES),
        origin=origin_of(names[0].raw),
        ops=_ops(family),
        frames=_frames(around),
        shapes=tuple(dict.fromkeys(one for seen in around for one in seen.shapes))[:MAX_SHAPES],
        candidates=_candidates(family, shortlist, context),
        context=context,
    )


def _names(family: Family) -> tuple[NameUse, ...]:
    sums: dict[str, tuple[int, int]] = {}
    for member in family.members:
        count, time_ns = sums.get(member.signature.name, (0, 0))
        added = (count + member.stats.count, time_ns + member.stats.time_ns)
        sums[member.signature.name] = added
    uses = [NameUse(name, canonical_name(name), *sums[name]) for name in sums]
    return tuple(sorted(uses, key=lambda use: (-use.time_ns, use.raw)))


def _ops(family: Family) -> tuple[OpUse, ...]:
    sums: dict[tuple[str, tuple[str, ...], bool], int] = {}
    for member in family.members:
        one = member.signature
        key = (one.op, one.input_dtypes[:3], one.replayed)
        sums[key] = sums.get(key, 0) + member.stats.count
    uses = [OpUse(*key, count) for key, count in sums.items()]
    return tuple(sorted(uses, key=lambda use: (-use.count, use.op, use.input_dtypes)))[:MAX_OPS]


def _contexts(family: Family, trace: Trace) -> Iterable[LaunchContext]:
    for rank in trace.ranks:
        known: Mapping[Signature, LaunchContext] = rank.context
        for member in family.members:
            if member.signature in known:
                yield known[member.signature]


def _frames(contexts: Iterable[LaunchContext]) -> tuple[FrameUse, ...]:
    launches: dict[tuple[int, str, int, str], int] = {}
    for context in contexts:
        for frame in context.frames:
            key = (frame.depth, frame.path, frame.first_line, frame.function)
            launches[key] = launches.get(key, 0) + frame.launches
    frames = [
        FrameUse(path, line, function, depth, launches[depth, path, line, function])
        for depth, path, line, function in launches
    ]
    return tuple(sorted(frames, key=_frame_order))[:MAX_FRAMES]


def _frame_order(frame: FrameUse) -> tuple[int, int, str, int]:
    return (frame.depth, -frame.launches, frame.path, frame.first_line)


def _candidates(family: Family, shortlist: Shortlist, context: RunContext) -> tuple[Candidate, ...]:
    """Ask for the names with most time; equal evidence is listed once."""
    found: dict[tuple[Evidence, ...], Candidate] = {}
    for name in family.names[:_SHORTLISTED_NAMES]:
        for candidate in shortlist(name, family.op, family.input_dtypes, context):
            found.setdefault(candidate.evidence, candidate)
    return tuple(sorted(found.values(), key=lambda one: -one.score))[:MAX_CANDIDATES]
