"""Steps that a serving stack or a profiler annotated: their names, and where they ran on the GPU.

An annotation stands on the host around the calls that launch a step, and profilers copy it to each
GPU stream it reached. What a step launched tells where it ran; the copies of one stream do where
launches are not known, and the host's own times where there is nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.core.kernels import Step

_KINDS: Final = tuple(
    map(
        re.compile,
        (
            r"ProfilerStep#\d",
            r"step\[",
            r"execute_\w*context_\d",
            r"(?i)(?:step|iter(?:ation)?)[ _:#-]*\d+$",
        ),
    )
)
"""Steps of `torch.profiler`, SGLang, vLLM, and numbered ones; the first kind found counts."""


@dataclass(frozen=True, slots=True, order=True)
class Annotation:
    """One annotated range in the file's clock; `stream` is "" on the host."""

    start_ns: int
    end_ns: int
    name: str
    stream: str = ""


@dataclass(frozen=True, slots=True)
class Launched:
    """Columns of GPU events: start, duration, and when each was launched; None is not known."""

    start_ns: Sequence[int]
    duration_ns: Sequence[int]
    launched_ns: Sequence[int | None]


def is_step(name: str) -> bool:
    """Tell whether an annotation's name is that of a step."""
    return any(kind.match(name) for kind in _KINDS)


def place_steps(
    annotations: Iterable[Annotation], launched: Launched, origin_ns: int
) -> tuple[Step, ...]:
    """Give the steps in time order, relative to `origin_ns`; one that launched nothing is none."""
    found = sorted(set(annotations))
    kind = next((one for one in _KINDS if any(one.match(step.name) for step in found)), None)
    if kind is None:
        return ()
    named = [step for step in found if kind.match(step.name)]
    host = [step for step in named if not step.stream]
    steps = _where_launched(host, launched) or _of_one_stream(named) or host
    return tuple(Step(one.name, one.start_ns - origin_ns, one.end_ns - origin_ns) for one in steps)


def _of_one_stream(steps: Iterable[Annotation]) -> list[Annotation]:
    """Give the copies on the stream that holds most of their time."""
    streams: dict[str, list[Annotation]] = {}
    for step in steps:
        if step.stream:
            streams.setdefault(step.stream, []).append(step)
    return max(
        (streams[stream] for stream in sorted(streams)),
        key=lambda copies: sum(copy.end_ns - copy.start_ns for copy in copies),
        default=[],
    )


def _where_launched(host: Sequence[Annotation], launched: Launched) -> list[Annotation]:
    """Move steps from the host's time to that of the events launched in them."""
    starts = [step.start_ns for step in host]
    step_at: dict[int, int] = {}
    placed: dict[int, tuple[int, int]] = {}
    if not host:
        return []
    for start, duration, at in zip(
        launched.start_ns, launched.duration_ns, launched.launched_ns, strict=True
    ):
        if at is None:
            continue
        step = step_at.get(at)
        if step is None:
            step = step_at[at] = bisect_right(starts, at) - 1
        if step < 0 or at >= host[step].end_ns:
            continue
        first, last = placed.get(step, (start, start))
        placed[step] = (min(first, start), max(last, start + duration))
    moved = [
        replace(host[step], start_ns=first, end_ns=last) for step, (first, last) in placed.items()
    ]
    return sorted(moved)
