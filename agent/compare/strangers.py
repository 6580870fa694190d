"""Whether the files of a run look like ranks of one run: GPUs of one vendor, kernels of one name.

Files of one stage are compared with each other. Two are strangers where the names they share are
under a quarter of all their names and hold under a quarter of their time, taken as the mean over
both. Ranks of one run share nearly all; runs of different models share a few library kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from agent.compare.figures import percent
from agent.core.kernels import RankTrace, Trace, kernels_of
from agent.core.proposals import Finding
from agent.core.text import shown

STRANGE_BELOW = Fraction(1, 4)
_HINT = "name the files of one run; compare two runs with diff"


def stranger_findings(trace: Trace, side: str = "") -> tuple[Finding, ...]:
    """Say where files are of other GPUs, or run other kernels than the files of their stage.

    `side` is as for `capture_findings`.
    """
    where = f"side {side}: " if side else ""
    return (*_vendors(trace.ranks, where), *_findings(trace.ranks, where))


@dataclass(frozen=True, slots=True)
class _Group:
    """Files that run the same kernels: the first one's name, and the time of each kernel name."""

    first: str
    times: dict[str, int]

    def merged(self, other: _Group) -> _Group:
        times = dict(self.times)
        for name, time_ns in other.times.items():
            times[name] = times.get(name, 0) + time_ns
        return _Group(min(self.first, other.first), times)


def _vendors(ranks: Iterable[RankTrace], where: str) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for rank in ranks:
        if rank.info.vendor != "unknown":
            first.setdefault(rank.info.vendor, rank.info.source or rank.label)
    if len(first) > 1:
        told = ", ".join(f"{shown(first[one], limit=80)} is of {one}" for one in sorted(first))
        message = f"{where}these files do not look like ranks of one run: {told}"
        yield Finding("DF107", message, "warning", hint=_HINT)


def _findings(ranks: Iterable[RankTrace], where: str) -> Iterator[Finding]:
    stages: dict[str, list[_Group]] = {}
    for rank in ranks:
        if rank.count:
            stages.setdefault(rank.stage, []).append(_group(rank))
    for _, members in sorted(stages.items()):
        groups = _gathered(members)
        if len(groups) > 1:
            yield _finding(groups, where)


def _group(rank: RankTrace) -> _Group:
    times: dict[str, int] = {}
    for signature, stats in kernels_of(rank.stats).items():
        times[signature.name] = times.get(signature.name, 0) + stats.time_ns
    return _Group(rank.info.source or rank.label, times)


def _gathered(members: Iterable[_Group]) -> list[_Group]:
    """Join what is alike, whatever the order the files came in."""
    groups: list[_Group] = []
    for member in sorted(members, key=lambda group: (group.first, sorted(group.times.items()))):
        joined, others = member, []
        for group in groups:
            if _strange(member, group):
                others.append(group)
            else:
                joined = joined.merged(group)
        groups = [*others, joined]
    return sorted(groups, key=lambda group: (group.first, sorted(group.times.items())))


def _strange(one: _Group, other: _Group) -> bool:
    shared = one.times.keys() & other.times.keys()
    every = one.times.keys() | other.times.keys()
    return len(shared) < STRANGE_BELOW * len(every) and _time_shared(one, other) < STRANGE_BELOW


def _time_shared(one: _Group, other: _Group) -> Fraction:
    shared = one.times.keys() & other.times.keys()
    parts = [
        Fraction(sum(group.times[name] for name in shared), sum(group.times.values()) or 1)
        for group in (one, other)
    ]
    return sum(parts, Fraction(0)) / 2


def _finding(groups: list[_Group], where: str) -> Finding:
    one, other = groups[:2]
    shared = len(one.times.keys() & other.times.keys())
    every = len(one.times.keys() | other.times.keys())
    names = f"{shown(one.first, limit=80)} and {shown(other.first, limit=80)}"
    more = f"; {len(groups)} groups of files in all" if len(groups) > 2 else ""
    return Finding(
        "DF107",
        f"{where}these files do not look like ranks of one run: {names} share {shared} of {every}"
        f" kernel names, which hold {percent(_time_shared(one, other), 1, signed=False)} of their"
        f" time{more}",
        severity="warning",
        hint=_HINT,
    )
