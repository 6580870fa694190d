"""What was around the launches of each signature: Python frames, operator stacks, shapes; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from agent.core.kernels import FrameUse, LaunchContext, Signature
from agent.traces.collect import Collector
from agent.traces.columns import UNKNOWN, RankColumns, SpanTimes
from agent.traces.link import Links

MAX_FRAMES: Final = 40
MAX_SHAPES: Final = 8
MAX_STACKS: Final = 8
MAX_DEPTH: Final = 512
"""How many open spans around a launch are looked at; Python itself stops at 1000 calls."""
_FRAME: Final = re.compile(r"^(?P<path>.+)\((?P<line>\d{1,9})\): (?P<function>.+)$", re.DOTALL)

Frame = tuple[str, int, str]
_Sortable = TypeVar("_Sortable", str, tuple[str, ...])


def parse_frame(name: str) -> Frame | None:
    """Read `path(line): function`; the line is the function's first, not the call's."""
    found = _FRAME.match(name)
    return (found["path"], int(found["line"]), found["function"]) if found else None


def known_frames(collector: Collector) -> frozenset[Frame]:
    """Give all distinct Python functions of a file: they fingerprint the checkout's commit."""
    frames = (parse_frame(str(name)) for name in collector.frames.ids)
    return frozenset(frame for frame in frames if frame is not None)


def gather_context(
    collector: Collector, rank: RankColumns, links: Links, signature_of: Sequence[Signature]
) -> Mapping[Signature, LaunchContext]:
    """Give the context of each signature; `signature_of` has one entry per kernel of the rank.

    A replayed kernel has none: what is open around a graph launch is the replay, not its cause.
    """
    launches: dict[int, set[Signature]] = {}
    for signature, launch in zip(signature_of, links.launch.tolist(), strict=True):
        if launch != UNKNOWN and not signature.replayed:
            launches.setdefault(launch, set()).add(signature)
    frames = _frames(collector, rank, launches)
    stacks = _operator_stacks(collector, rank, launches)
    shapes = _shapes(collector, rank, links, signature_of)
    return {
        signature: LaunchContext(
            frames.get(signature, ()), shapes.get(signature, ()), stacks.get(signature, ())
        )
        for signature in sorted(set(signature_of))
    }


def _frames(
    collector: Collector, rank: RankColumns, launches: Mapping[int, set[Signature]]
) -> dict[Signature, tuple[FrameUse, ...]]:
    parsed = [parse_frame(str(name)) for name in collector.frames.ids]
    counts: dict[Signature, Counter[tuple[int, Frame]]] = {}
    what = rank.frames.what.unpacked()
    for launch, stack in open_spans(rank.frames.times(), rank, launches):
        inside_out = [parsed[what[at]] for at in reversed(stack)]
        named = [frame for frame in inside_out if frame is not None]
        for signature in launches[launch]:
            uses = counts.setdefault(signature, Counter())
            uses.update(enumerate(named[:MAX_FRAMES]))
    return {
        signature: tuple(
            FrameUse(path, line, function, depth, n_launches)
            for (depth, (path, line, function)), n_launches in sorted(
                uses.items(), key=lambda use: (use[0][0], -use[1], use[0][1])
            )
        )
        for signature, uses in counts.items()
    }


def _operator_stacks(
    collector: Collector, rank: RankColumns, launches: Mapping[int, set[Signature]]
) -> dict[Signature, tuple[tuple[str, ...], ...]]:
    names = [operator[0] for operator in collector.operators.ids]
    counts: dict[Signature, Counter[tuple[str, ...]]] = {}
    what = rank.operators.what.unpacked()
    for launch, stack in open_spans(rank.operators.times(), rank, launches):
        if stack:
            path = tuple(str(names[what[at]]) for at in stack)
            for signature in launches[launch]:
                counts.setdefault(signature, Counter())[path] += 1
    return {signature: _most_common(seen, MAX_STACKS) for signature, seen in counts.items()}


def _shapes(
    collector: Collector, rank: RankColumns, links: Links, signature_of: Sequence[Signature]
) -> dict[Signature, tuple[str, ...]]:
    dims = [_compact(operator[2]) for operator in collector.operators.ids]
    counts: dict[Signature, Counter[str]] = {}
    what = rank.operators.what.unpacked()
    for signature, operator in zip(signature_of, links.operator.tolist(), strict=True):
        if operator != UNKNOWN and (shape := dims[what[operator]]):
            counts.setdefault(signature, Counter())[shape] += 1
    return {signature: _most_common(seen, MAX_SHAPES) for signature, seen in counts.items()}


def _compact(dims: bytes) -> str:
    """Give shapes without the white space that a writer put between their numbers."""
    return b"".join(dims.split()).decode("utf-8", "replace")


def _most_common(seen: Counter[_Sortable], limit: int) -> tuple[_Sortable, ...]:
    ordered = sorted(seen.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(value for value, _ in ordered[:limit])


def open_spans(
    spans: SpanTimes, rank: RankColumns, launches: Mapping[int, set[Signature]]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Give, for each launch, the innermost spans of its thread around it, outermost first."""
    starts, ends = spans.start_ns, spans.end_ns
    threads, at_ns = rank.launches.thread, rank.launches.start_ns
    points: dict[int, list[int]] = {}
    for launch in launches:
        points.setdefault(threads[launch], []).append(launch)
    by_thread: dict[int, list[int]] = {thread: [] for thread in points}
    for position, thread in enumerate(spans.thread):
        if thread in by_thread:
            by_thread[thread].append(position)
    for thread, positions in by_thread.items():
        positions.sort(key=lambda position: (starts[position], -ends[position]))
        stack: list[int] = []
        at = 0
        for launch in sorted(points[thread], key=at_ns.__getitem__):
            now = at_ns[launch]
            while at < len(positions) and starts[positions[at]] <= now:
                stack.append(positions[at])
                at += 1
            yield launch, _still_open(stack, ends, now)


def _still_open(stack: list[int], ends: Sequence[int], now: int) -> tuple[int, ...]:
    """Give the innermost spans that go on after `now`; those above them that ended are dropped."""
    still: list[int] = []
    at = len(stack)
    while at and len(still) < MAX_DEPTH:
        at -= 1
        if ends[stack[at]] > now:
            still.append(stack[at])
    stack[at:] = still[::-1]
    return tuple(stack[at:])
