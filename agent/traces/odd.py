"""What is odd in a rank's events, as findings; pure."""

from __future__ import annotations

from agent.core.kernels import KernelTable
from agent.core.proposals import Finding
from agent.traces.columns import RankColumns
from agent.traces.link import Links
from agent.traces.measure import Timeline

_JUMP_NS = 600_000_000_000
_JUMP_RATIO = 10
_UNRELIABLE = 0.01
"""Share of the sum that corrupt durations may hold before the headline cannot be trusted."""


def describe(
    rank: RankColumns, table: KernelTable, links: Links, timeline: Timeline, source: str
) -> tuple[Finding, ...]:
    """List everything odd about one rank."""
    findings = [
        *_bad_times(rank, timeline),
        *_overruns(table, timeline),
        *_repeats(timeline),
        *_replays(links),
        *_unlaunched(links, len(rank.kernels.start_ns)),
    ]
    return tuple(
        Finding(code, message, severity="note" if code in _NOTES else "warning", location=source)
        for code, message in findings
    )


_NOTES = frozenset({"TR051"})


def _bad_times(rank: RankColumns, timeline: Timeline) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if rank.negative:
        found.append(("TR030", f"{_events(rank.negative)} with a negative duration, counted as 0"))
    if timeline.unplaced:
        found.append(
            ("TR031", f"{_events(timeline.unplaced)} with time stamp 0, left out of busy and span")
        )
    gap_ns = timeline.widest_gap_ns
    if gap_ns > _JUMP_NS and gap_ns > _JUMP_RATIO * (timeline.span_ns - gap_ns):
        found.append(("TR037", f"nothing ran for {gap_ns} ns: the span holds a jump of the clock"))
    if rank.no_time:
        found.append(("TR035", f"times that are no usable numbers, read as 0: {rank.no_time}"))
    return found


def _overruns(table: KernelTable, timeline: Timeline) -> list[tuple[str, str]]:
    clipped = timeline.clipped
    if not clipped.events:
        return []
    is_kernel = [signature.work == "kernel" for signature in table.signatures]
    total_ns = sum(
        duration
        for number, duration in zip(table.signature_id, table.duration_ns, strict=True)
        if is_kernel[number]
    )
    share = clipped.excess_ns / total_ns
    rest_ns = total_ns - clipped.excess_ns
    found = [
        (
            "TR032",
            (
                f"{_events(clipped.events)} run past the next of their stream by"
                f" {clipped.excess_ns} ns in all: {total_ns} ns as recorded,"
                f" {rest_ns} ns when clipped"
            ),
        )
    ]
    if share > _UNRELIABLE:
        percent = f"> {int(share * 100)}" if share < 1 else "100"
        found.append(
            ("TR033", f"headline unreliable: corrupt durations are {percent} % of the recorded sum")
        )
    return found


def _repeats(timeline: Timeline) -> list[tuple[str, str]]:
    n_repeats = len(timeline.duplicates)
    if not n_repeats:
        return []
    return [("TR034", f"{_events(n_repeats)} repeat another in every field and count once")]


def _replays(links: Links) -> list[tuple[str, str]]:
    counts = links.replays.kernels_per_launch
    if not links.replays.uneven:
        return []
    empty = counts.count(0)
    lost = f"; {empty} of {len(counts)} have none" if empty else ""
    return [
        (
            "TR050",
            (
                f"graph launches brought between {min(counts)} and {max(counts)} kernels{lost}:"
                " the profiler may have lost events"
            ),
        )
    ]


def _unlaunched(links: Links, n_events: int) -> list[tuple[str, str]]:
    if not links.n_unlaunched:
        return []
    return [("TR051", f"{links.n_unlaunched} of {_events(n_events)} have no launch in the trace")]


def _events(number: int) -> str:
    return f"{number} GPU event" if number == 1 else f"{number} GPU events"
