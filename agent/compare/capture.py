"""What is missing or wrong in a capture, so that no saving is claimed from lost events.

ROCm 7.2 can lose kernels of a graph replay (26-65 % recorded). A launch that brought no kernels is
always a gap. Launches that brought different numbers are a gap unless the run replays several
graphs, which is taken as shown when some launch holds a kernel that the largest launch has not, or
when both sides have the same numbers of kernels per launch. Two sides compared are a gap also where
the launches of one hold fewer calls of most kernels, more of none, and no ratio explains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from agent.compare.consensus import Calls, agrees, common_ratio
from agent.core.kernels import KernelTable, RankTrace, Trace
from agent.core.proposals import Finding
from agent.core.text import shown

UNRELIABLE_PER_CENT = 1
SHOWN_LAUNCHES = 8
TELLING_CALLS, TELLING_KERNELS = 8, 6
"""Losses are told by kernels with so many calls, and by so many of them."""
JUDGED_HERE = frozenset({"TR032", "TR033", "TR050"})
"""Overruns and uneven launches as the reader counts them; both are judged here."""


@dataclass(frozen=True, slots=True)
class Capture:
    """How whole one side's capture is.

    Attributes:
        launches: graph launches over all ranks.
        empty: launches that brought no kernel.
        uneven_ranks: labels of ranks with an unexplained difference between launches.
        thinned: (kernels with fewer calls per launch than the other side has, kernels of both),
            where only lost events explain it; else (0, 0).
        clipped_events, excess_ns: events that run past the next of their stream, and by how much.
        complete: False after salvage, or when a file could not be read; `lost` names those.
    """

    launches: int
    empty: int
    uneven_ranks: tuple[str, ...]
    counts: tuple[int, ...]
    clipped_events: int
    excess_ns: int
    kernel_ns: int
    complete: bool
    lost: tuple[str, ...] = ()
    thinned: tuple[int, int] = (0, 0)

    @property
    def gaps(self) -> bool:
        """Tell whether kernels are missing, so that a lower sum may mean nothing."""
        return bool(self.empty or self.uneven_ranks or self.thinned[0]) or not self.complete

    @property
    def clipped_ns(self) -> int:
        """The sum with overrunning events cut at the next event of their stream."""
        return self.kernel_ns - self.excess_ns

    @property
    def corrupt(self) -> bool:
        """Tell whether overruns are more than 1 % of the sum."""
        return 100 * self.excess_ns > UNRELIABLE_PER_CENT * self.kernel_ns


def examine_captures(base: Trace, new: Trace) -> tuple[Capture, Capture]:
    """Judge both sides together: equal patterns of launches explain each other."""
    alike = _launch_counts(base) == _launch_counts(new)
    before, after = _examine(base, alike=alike), _examine(new, alike=alike)
    if before.gaps or after.gaps:
        return before, after
    return replace(before, thinned=_thinned(base, new)), replace(after, thinned=_thinned(new, base))


def examine_capture(trace: Trace) -> Capture:
    """Judge one run by itself."""
    return _examine(trace, alike=False)


def capture_findings(capture: Capture, side: str = "") -> tuple[Finding, ...]:
    """Put gaps and corrupt durations into words; `side` is `base`, `new`, or "" for a lone run."""
    return tuple(_findings(capture, side))


def read_findings(trace: Trace, side: str = "") -> tuple[Finding, ...]:
    """Give what reading a run found, each once, but for what `capture_findings` judges itself."""
    found = [*trace.findings, *(one for rank in trace.ranks for one in rank.findings)]
    said: dict[tuple[str, str], list[Finding]] = {}
    for one in found:
        if one.code not in JUDGED_HERE:
            said.setdefault((one.code, one.message), []).append(one)
    return tuple(
        replace(group[0], message=f"{_where(side)}{message}{_times(group)}", location="")
        for (_, message), group in sorted(said.items())
    )


def _where(side: str) -> str:
    return f"side {side}: " if side else ""


def _times(group: list[Finding]) -> str:
    places = [one.location for one in group if one.location]
    if not places:
        return ""
    return f" ({places[0]})" if len(places) == 1 else f" ({len(places)} files, {places[0]}, ...)"


def _findings(capture: Capture, side: str) -> Iterator[Finding]:
    on = f"side {side}" if side else "this run"
    if capture.empty or capture.uneven_ranks:
        shown_counts = ", ".join(map(str, capture.counts[:SHOWN_LAUNCHES]))
        more = ", ..." if len(capture.counts) > SHOWN_LAUNCHES else ""
        empty = f"; {_plural(capture.empty, 'launch')} brought none" if capture.empty else ""
        trust = ", so the delta is not trustworthy and no saving is claimed" if side else ""
        yield Finding(
            "DF110",
            f"incomplete capture on {on}: graph launches replayed different numbers of kernels"
            f" ({shown_counts}{more}){empty}; the profiler lost events{trust}",
            severity="warning",
            hint="capture again, with graphs off or another profiler version",
        )
    if capture.thinned[0]:
        fewer, shared = capture.thinned
        yield Finding(
            "DF110",
            f"incomplete capture on {on}: its graph launches replayed fewer calls of {fewer} of"
            f" {shared} kernels than the other side's, more of none, and by no common ratio; the"
            " profiler lost events, so the delta is not trustworthy and no saving is claimed",
            severity="warning",
            hint="capture again, with graphs off or another profiler version",
        )
    if not capture.complete:
        trust = "; no saving is claimed" if side else ""
        yield Finding("DF111", f"INCOMPLETE: {on} {_damage(capture)}{trust}", severity="warning")
    if capture.excess_ns:
        trust = "; the headline is unreliable" if capture.corrupt else ""
        yield Finding(
            "DF112",
            f"corrupt durations on {on}: {_plural(capture.clipped_events, 'event')} run past"
            f" the next of their stream; {capture.kernel_ns} ns as recorded,"
            f" {capture.clipped_ns} ns clipped{trust}",
            severity="warning",
        )


def _damage(capture: Capture) -> str:
    if not capture.lost:
        return "was salvaged from a damaged file"
    names = ", ".join(shown(name, limit=80) for name in capture.lost[:SHOWN_LAUNCHES])
    return f"lacks {_plural(len(capture.lost), 'file')} that could not be read ({names})"


def _plural(number: int, noun: str) -> str:
    ending = "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{ending}"


def _examine(trace: Trace, *, alike: bool) -> Capture:
    ranks = trace.ranks
    uneven = [rank for rank in ranks if rank.replays.uneven and not alike and _unexplained(rank)]
    empty = sum(rank.replays.kernels_per_launch.count(0) for rank in ranks)
    suspects = uneven or [rank for rank in ranks if 0 in rank.replays.kernels_per_launch]
    return Capture(
        launches=sum(len(rank.replays.kernels_per_launch) for rank in ranks),
        empty=empty,
        uneven_ranks=tuple(rank.label for rank in uneven),
        counts=suspects[0].replays.kernels_per_launch if suspects else (),
        clipped_events=sum(rank.clipped.events for rank in ranks),
        excess_ns=sum(rank.clipped.excess_ns for rank in ranks),
        kernel_ns=trace.kernel_ns,
        complete=trace.complete,
        lost=trace.lost,
    )


def _thinned(trace: Trace, other: Trace) -> tuple[int, int]:
    """Count the kernels whose replays the trace lost against another, of those that both replay."""
    ratio = _launch_ratio(other, trace)
    mine, theirs = _replayed(trace), _replayed(other)
    shared = [
        Calls(name, theirs[name], mine[name], 0)
        for name in sorted(mine.keys() & theirs.keys())
        if theirs[name] >= TELLING_CALLS
    ]
    if not ratio or len(shared) < TELLING_KERNELS:
        return 0, 0
    off = [calls for calls in shared if not agrees(calls, ratio)]
    fewer = [calls for calls in off if calls.new < ratio * calls.base]
    common = common_ratio(shared)
    explained = common is not None and 2 * len(common.agreeing) >= len(shared)
    lost = not explained and len(fewer) == len(off) and 2 * len(fewer) > len(shared)
    return (len(fewer), len(shared)) if lost else (0, 0)


def _launch_ratio(base: Trace, new: Trace) -> Fraction | None:
    before, after = (sum(map(len, _launches(trace))) for trace in (base, new))
    return Fraction(after, before) if before and after else None


def _launches(trace: Trace) -> list[tuple[int, ...]]:
    return [rank.replays.kernels_per_launch for rank in trace.ranks]


def _replayed(trace: Trace) -> Counter[str]:
    """Count the replayed calls of each kernel."""
    calls: Counter[str] = Counter()
    for rank in trace.ranks:
        for signature, stats in rank.stats.items():
            if signature.replayed:
                calls[signature.name] += stats.count
    return calls


def _launch_counts(trace: Trace) -> list[frozenset[int]]:
    return [frozenset(counts) for counts in _launches(trace)]


def _unexplained(rank: RankTrace) -> bool:
    """Tell whether one graph losing kernels is the plainest reading of uneven launches."""
    counts = rank.replays.kernels_per_launch
    if rank.kernels is None:
        return True
    replays = _distinct_replays(rank.kernels)
    largest = max(replays, key=lambda names: sum(names.values()), default=Counter[str]())
    if all(names <= largest for names in replays):
        return True
    return len(set(counts)) > max(3, len(counts) // 2)


def _distinct_replays(table: KernelTable) -> list[Counter[str]]:
    """Count the kernels of each graph launch by name; equal launches once."""
    replayed = [signature.replayed for signature in table.signatures]
    launches: dict[int, Counter[int]] = {}
    for signature, correlation in zip(table.signature_id, table.correlation, strict=True):
        if replayed[signature]:
            launches.setdefault(correlation, Counter())[signature] += 1
    distinct = {tuple(sorted(launch.items())) for launch in launches.values()}
    return [
        Counter({str(table.signatures[index].name): count for index, count in launch})
        for launch in sorted(distinct)
    ]
