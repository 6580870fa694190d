"""Steps that a serving stack or a profiler annotated: their names, and where they ran on the GPU.

An annotation stands on the host around the calls that launch a step, and profilers copy it to each
GPU stream it reached. What a step launched tells where it ran; the copies of one stream do where
launches are not known, and the host's own times where there is nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from agent.core.kernels import Step
from agent.traces.vectors import Vector, blocks

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


_NO_STEP: Final = -1
"""What a launch outside of steps finds: the entry behind those of all steps."""


@dataclass(frozen=True, slots=True, order=True)
class Annotation:
    """One annotated range in the file's clock; `stream` is "" on the host."""

    start_ns: int
    end_ns: int
    name: str
    stream: str = ""


@dataclass(frozen=True, slots=True)
class Launched:
    """Columns of GPU events, `launch` being the place of each one's launch or -1; and launches."""

    start_ns: Vector
    duration_ns: Vector
    launch_ns: Vector
    launch: Vector


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
    if not host:
        return []
    step_of_launch = np.append(steps_at(host, launched.launch_ns), _NO_STEP)  # what -1 finds
    limits = np.iinfo(np.int64)
    first, last = np.full(len(host) + 1, limits.max), np.full(len(host) + 1, limits.min)
    for block in blocks(len(launched.start_ns)):
        step, start_ns = step_of_launch[launched.launch[block]], launched.start_ns[block]
        np.minimum.at(first, step, start_ns)
        np.maximum.at(last, step, start_ns + launched.duration_ns[block])
    return sorted(
        replace(step, start_ns=start_ns, end_ns=end_ns)
        for step, start_ns, end_ns in zip(host, first.tolist(), last.tolist(), strict=False)
        if start_ns <= end_ns
    )


def steps_at(ordered: Sequence[Annotation] | Sequence[Step], times: Vector) -> Vector:
    """Give for each time the step around it, -1 if none: of two the last begun, if it goes on."""
    begins = np.array([step.start_ns for step in ordered])
    ends = np.array([step.end_ns for step in ordered])
    step = np.searchsorted(begins, times, side="right") - 1
    return np.where((step >= 0) & (times < ends[step]), step, _NO_STEP)
