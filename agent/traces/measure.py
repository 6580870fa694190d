"""Timeline figures of one rank's kernels: duplicates, overruns, busy time and span; pure."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agent.core.kernels import ClippedTotal
from agent.traces.collect import KernelColumns

LEGAL_OVERLAP_NS = 5_000
"""Programmatic dependent launch lets neighbours on a stream overlap by under 5 us each."""

_PLAUSIBLE_GAP_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Timeline:
    """Figures over the events that have a usable time.

    Attributes:
        duplicates: positions of events that repeat an earlier one in everything.
        unplaced: events without a usable time.
        origin_ns, span_ns, busy_ns: first start; last end minus that; union per device, summed.
        clipped: events that run past the next of their stream by more than is legal.
    """

    duplicates: frozenset[int] = frozenset()
    unplaced: int = 0
    origin_ns: int = 0
    span_ns: int = 0
    busy_ns: int = 0
    clipped: ClippedTotal = field(default_factory=ClippedTotal)


def measure(kernels: KernelColumns) -> Timeline:
    """Measure the timeline of one rank."""
    starts, durations = kernels.start_ns, kernels.duration_ns
    placed, unplaced = _placed(starts, durations)
    duplicates: set[int] = set()
    overruns = excess = 0
    for positions in _by(placed, kernels.device, kernels.stream).values():
        ordered = _in_time(positions, starts)
        duplicates.update(_repeats(ordered, kernels))
        if duplicates:
            ordered = [position for position in ordered if position not in duplicates]
        n_over, n_excess = _overruns(ordered, starts, durations)
        overruns += n_over
        excess += n_excess
    if not placed:
        return Timeline(frozenset(duplicates), unplaced)
    origin = min(starts[position] for position in placed)
    last = max(starts[position] + durations[position] for position in placed)
    busy = sum(
        _union(_in_time(positions, starts), starts, durations)
        for positions in _by(placed, kernels.device).values()
    )
    return Timeline(
        frozenset(duplicates), unplaced, origin, last - origin, busy, ClippedTotal(overruns, excess)
    )


def _placed(starts: Sequence[int], durations: Sequence[int]) -> tuple[Sequence[int], int]:
    """Give the positions of events with a usable time, and the number of the others.

    A time of 0 is the profiler's "no stamp", unless the events really begin there.
    """
    if 0 not in starts:
        return range(len(starts)), 0
    others = min((start for start in starts if start), default=0)
    placed = [
        position
        for position, start in enumerate(starts)
        if start or (durations[position] and others <= _PLAUSIBLE_GAP_NS)
    ]
    return placed, len(starts) - len(placed)


def _by(positions: Sequence[int], *columns: array[int]) -> dict[object, Sequence[int]]:
    """Group positions by the value of one or two columns."""
    if all(column.count(column[0]) == len(column) for column in columns if column):
        return {None: positions} if positions else {}
    groups: dict[object, list[int]] = {}
    if len(columns) == 1:
        (keys,) = columns
        for position in positions:
            groups.setdefault(keys[position], []).append(position)
    else:
        first, second = columns
        for position in positions:
            groups.setdefault((first[position], second[position]), []).append(position)
    return dict(groups)


def _in_time(positions: Sequence[int], starts: Sequence[int]) -> Sequence[int]:
    return sorted(positions, key=starts.__getitem__)


def _repeats(ordered: Sequence[int], kernels: KernelColumns) -> list[int]:
    """Give the positions that repeat an earlier event of the stream in every respect."""
    repeats: list[int] = []
    starts = kernels.start_ns
    seen: set[tuple[int, int, int]] = set()
    previous = None
    for position in ordered:
        if starts[position] != previous:
            previous = starts[position]
            seen.clear()
        identity = (
            kernels.duration_ns[position],
            kernels.name[position],
            kernels.correlation[position],
        )
        if identity in seen:
            repeats.append(position)
        seen.add(identity)
    return repeats


def _overruns(
    ordered: Sequence[int], starts: Sequence[int], durations: Sequence[int]
) -> tuple[int, int]:
    """Count events that run past the start of the next of their stream by far."""
    overruns = excess = 0
    for position, following in pairwise(ordered):
        past = starts[position] + durations[position] - starts[following]
        if past > LEGAL_OVERLAP_NS:
            overruns += 1
            excess += past
    return overruns, excess


def _union(ordered: Sequence[int], starts: Sequence[int], durations: Sequence[int]) -> int:
    busy = 0
    until = None
    for position in ordered:
        start = starts[position]
        end = start + durations[position]
        if until is None or start >= until:
            busy += end - start
            until = end
        elif end > until:
            busy += end - until
            until = end
    return busy
