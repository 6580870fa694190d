"""Timeline figures of one rank's GPU work: duplicates, overruns, busy time and span; pure.

Everything is said of kernels; copies and fills run beside them on copy engines.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod

import numpy as np

from agent.core.kernels import ClippedTotal
from agent.traces.columns import Kernels
from agent.traces.events import KERNEL
from agent.traces.numbers import INT64_MAX
from agent.traces.vectors import Mask, Vector, as_vector, blocks, in_groups

LEGAL_OVERLAP_NS = 5_000
"""Programmatic dependent launch lets neighbours on a stream overlap by under 5 us each."""

_PLAUSIBLE_GAP_NS = 1_000_000_000

_Place = tuple[int, int, int]
"""Device, stream and kind of work."""

_Naming = Callable[[], tuple[Sequence[int], Sequence[int]]]
"""Gives names and correlations, which few files need."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Figures over the events that have a usable time.

    Attributes:
        duplicates: positions of events that repeat an earlier one in everything.
        unplaced: events without a usable time.
        origin_ns: first start of any GPU work.
        span_ns, busy_ns: last end minus first start of kernels; their union per device, summed.
        widest_gap_ns: the longest time in which a device did nothing.
        clipped: kernels that run past the next of their stream by more than is legal.
    """

    duplicates: frozenset[int] = frozenset()
    unplaced: int = 0
    origin_ns: int = 0
    span_ns: int = 0
    busy_ns: int = 0
    widest_gap_ns: int = 0
    clipped: ClippedTotal = field(default_factory=ClippedTotal)


def measure(kernels: Kernels, *, block: int = 65_536) -> Timeline:
    """Measure the timeline of one rank; without `work` in the columns, all events are kernels.

    A line is the positions of a stream's events in time order. Their times are looked up `block`
    events at a time, so that memory stays bounded.
    """
    starts = as_vector(kernels.start_ns)
    usable = has_time(kernels)
    unplaced = len(starts) - int(np.count_nonzero(usable))
    if unplaced == len(starts):
        return Timeline(unplaced=unplaced)
    origin = int(starts.min(where=usable, initial=INT64_MAX))
    devices: dict[int, list[Vector]] = {}
    duplicates: set[int] = set()
    naming = cache(lambda: (kernels.name, kernels.correlation))
    for (device, _, work), events in _streams(kernels, usable):
        line, repeated = _line(kernels, events, naming)
        duplicates.update(repeated)
        if work == KERNEL:
            devices.setdefault(device, []).append(line)
    lines = [line for of_device in devices.values() for line in of_device]
    overruns = [_overruns(kernels, line, block) for line in lines]
    first = min((kernels.start_ns[line[0]] for line in lines), default=origin)
    last = max((_last_end(kernels, line, block) for line in lines), default=first)
    busy = [_busy(kernels, of_device, block) for of_device in devices.values()]
    return Timeline(
        frozenset(duplicates),
        unplaced,
        origin,
        span_ns=last - first,
        busy_ns=sum(ns for ns, _ in busy),
        widest_gap_ns=max((gap for _, gap in busy), default=0),
        clipped=ClippedTotal(sum(n for n, _ in overruns), sum(ns for _, ns in overruns)),
    )


def has_time(kernels: Kernels) -> Mask:
    """Tell for each event whether it has a usable time.

    A time of 0 is the profiler's "no stamp", unless the events really begin there.
    """
    starts = as_vector(kernels.start_ns)
    usable: Mask = starts != 0
    if not usable.all():
        earliest = starts.min(where=usable, initial=INT64_MAX) if usable.any() else 0
        if earliest <= _PLAUSIBLE_GAP_NS:
            usable |= as_vector(kernels.duration_ns) > 0
        usable[kernels.timeless] = False
    return usable


def _streams(kernels: Kernels, usable: Mask) -> Iterator[tuple[_Place, Vector]]:
    """Give the events with a usable time of each stream that do one kind of work, in file order."""
    codes, known = _codes(kernels, usable)
    sizes = tuple(map(len, known))
    for code, events in in_groups(codes):
        if code < prod(sizes):
            place = np.unravel_index(code, sizes)
            device, stream, work = (int(one[at]) for one, at in zip(known, place, strict=True))
            yield (device, stream, work), events


def _codes(kernels: Kernels, usable: Mask) -> tuple[Vector, list[Vector]]:
    """Number the places where something ran, the last for what has no time; and give the places."""
    works = kernels.work or array("B", [KERNEL]) * len(usable)
    columns = [as_vector(column) for column in (kernels.device, kernels.stream, works)]
    known = [np.unique(column) for column in columns]
    sizes = tuple(map(len, known))
    codes = np.full(len(usable), prod(sizes), np.min_scalar_type(prod(sizes)))
    for block in blocks(len(usable)):
        digits = map(np.searchsorted, known, (column[block] for column in columns))
        number = np.ravel_multi_index(tuple(digits), sizes)
        codes[block] = np.where(usable[block], number, prod(sizes))
    return codes, known


def _line(kernels: Kernels, events: Vector, naming: _Naming) -> tuple[Vector, Sequence[int]]:
    """Give the events of a stream in time order, and the positions of those that are repeats.

    Of two that start together the shorter comes first.
    """
    if all((np.diff(_starts(kernels, part)) > 0).all() for part in _parts(events)):
        return events, ()
    starts = _starts(kernels, events)
    repeats = _duplicates(kernels, events, starts, naming)
    kept = events[~np.isin(events, list(repeats))]
    order = np.lexsort((_ends(kernels, kept), _starts(kernels, kept)))
    return kept[order], repeats


def _starts(kernels: Kernels, events: Vector) -> Vector:
    return as_vector(kernels.start_ns)[events]


def _ends(kernels: Kernels, events: Vector) -> Vector:
    return _starts(kernels, events) + as_vector(kernels.duration_ns)[events]


def _parts(line: Vector, size: int = 65_536) -> Iterator[Vector]:
    """Cut a line into parts of `size` and one: each ends with the event the next begins with."""
    return (line[at : at + size + 1] for at in range(0, max(1, len(line) - 1), size))


def _duplicates(kernels: Kernels, events: Vector, starts: Vector, naming: _Naming) -> Sequence[int]:
    """Give the positions that repeat an earlier event of the stream in every respect."""
    values, counts = np.unique(starts, return_counts=True)
    together = events[np.isin(starts, values[counts > 1])].tolist()
    name, correlation = naming() if together else ((), ())
    seen_before: set[tuple[int, int, int, int]] = set()
    found: list[int] = []
    for position in together:
        start, duration = kernels.start_ns[position], kernels.duration_ns[position]
        identity = start, duration, name[position], correlation[position]
        if identity in seen_before:
            found.append(position)
        seen_before.add(identity)
    return found


def _overruns(kernels: Kernels, line: Vector, size: int) -> tuple[int, int]:
    """Count events that run past the start of the next of their stream by far, and by how much."""
    n_far = excess = 0
    for part in _parts(line, size):
        past = _ends(kernels, part)[:-1] - _starts(kernels, part)[1:]
        far = past[past > LEGAL_OVERLAP_NS].tolist()
        n_far += len(far)
        excess += sum(far)
    return n_far, excess


def _last_end(kernels: Kernels, line: Vector, size: int) -> int:
    return max(int(_ends(kernels, part).max()) for part in _parts(line, size))


def _busy(kernels: Kernels, lines: Sequence[Vector], size: int) -> tuple[int, int]:
    """Give the union of the intervals of one device (its span without gaps), and the widest gap.

    Nothing runs before the start number k just when the k earliest ends lie before it: with starts
    and ends sorted each for itself, the gaps are between neighbours.
    """
    until = first = min(kernels.start_ns[line[0]] for line in lines)
    idle = widest = 0
    for events in _in_time(kernels, lines, size):
        starts = np.sort(_starts(kernels, events))
        ends_before = np.maximum(np.sort(_ends(kernels, events)), until)
        gaps = starts[1:] - ends_before[:-1]
        gaps = np.append(gaps[gaps > 0], max(0, int(starts[0]) - until))
        idle += int(gaps.sum())
        widest = max(widest, int(gaps.max()))
        until = int(ends_before[-1])
    return until - first - idle, widest


def _in_time(kernels: Kernels, lines: Sequence[Vector], size: int) -> Iterator[Vector]:
    """Merge the streams of a device, a bounded block at a time: none starts before one given."""
    at = [0] * len(lines)
    while True:
        heads = [line[done : done + size + 1] for line, done in zip(lines, at, strict=True)]
        bounds = [kernels.start_ns[head[size]] for head in heads if len(head) > size]
        if bounds:
            bound = min(bounds)
            sizes = [np.searchsorted(_starts(kernels, head), bound, "right") for head in heads]
            heads = [head[:stop] for head, stop in zip(heads, sizes, strict=True)]
        events = np.concatenate(heads)
        if len(events):
            yield events
        if not bounds:
            return
        at = [done + len(head) for done, head in zip(at, heads, strict=True)]
