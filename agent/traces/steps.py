"""Steps that a serving stack or a profiler annotated: their names, and where they ran on the GPU.

An annotation stands on the host around the calls that launch a step, and profilers copy it to each
GPU stream it reached. What a step launched tells where it ran; the copies of one stream do where
launches are not known, and the host's own times where there is nothing else.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, islice
from operator import add, ne
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


_NO_STEP: Final = -1


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
    launched_ns: Iterable[int | None]


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
    """Move steps from the host's time to that of the events launched in them.

    Events of one step mostly stand together, so they are measured run by run.
    """
    if not host:
        return []
    steps = array("i", map(_StepOf(host).__getitem__, launched.launched_ns))
    placed: dict[int, tuple[int, int]] = {}
    for begin, end in _runs(steps):
        starts = launched.start_ns[begin:end]
        first, last = min(starts), max(map(add, starts, launched.duration_ns[begin:end]))
        known = placed.get(steps[begin], (first, last))
        placed[steps[begin]] = min(known[0], first), max(known[1], last)
    placed.pop(_NO_STEP, None)
    return sorted(
        replace(host[step], start_ns=first, end_ns=last) for step, (first, last) in placed.items()
    )


class _StepOf(dict[int | None, int]):
    """The position of the step that a launch stands in, found once for each time of launch."""

    def __init__(self, host: Sequence[Annotation]) -> None:
        super().__init__({None: _NO_STEP})
        self._host = host
        self._starts = [step.start_ns for step in host]

    def __missing__(self, at_ns: int | None) -> int:
        assert at_ns is not None  # noqa: S101 - None is there from the start
        step = bisect_right(self._starts, at_ns) - 1
        inside = step >= 0 and at_ns < self._host[step].end_ns
        self[at_ns] = step if inside else _NO_STEP
        return self[at_ns]


def _runs(values: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Give begin and end of each run of equal values."""
    begin = 0
    changes = map(ne, values, islice(values, 1, None))
    for end in chain(compress(range(1, len(values)), changes), (len(values),)):
        if end > begin:
            yield begin, end
        begin = end
