"""Kineto events as they come from the JSON, and which categories matter.

Fields hold what the file says; nothing here is converted. Times stay text until
`agent.traces.numbers` makes nanoseconds of them.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

Token = bytes | msgspec.Raw
"""A JSON token as text: a number, a quoted string, or nothing."""

NOTHING: Final = msgspec.Raw(b"")

IGNORED, KERNEL, MEMCPY, MEMSET, OPERATOR, RUNTIME, ANNOTATION, GPU_ANNOTATION, FRAME = range(9)
"""Kinds of events, from `cat`; everything else on a GPU's pid (syncs, overhead) is no GPU work."""

KINDS: Final = {
    "kernel": KERNEL,
    "gpu_memcpy": MEMCPY,
    "memcpy": MEMCPY,
    "gpu_memset": MEMSET,
    "memset": MEMSET,
    "cpu_op": OPERATOR,
    "operator": OPERATOR,
    "cuda_runtime": RUNTIME,
    "cuda_driver": RUNTIME,
    "hip_runtime": RUNTIME,
    "hip_driver": RUNTIME,
    "xpu_runtime": RUNTIME,
    "runtime": RUNTIME,
    "user_annotation": ANNOTATION,
    "gpu_user_annotation": GPU_ANNOTATION,
    "python_function": FRAME,
}
"""The categories that matter, in lower case, with their kinds."""


class Arguments(msgspec.Struct, gc=False):
    """The `args` of an event that matter; ids are the file's own."""

    external_id: int | None = msgspec.field(name="External id", default=None)
    external_id_2021: int | None = msgspec.field(name="external id", default=None)
    correlation: int | None = None
    device: int | None = None
    stream: int | None = None
    input_type: msgspec.Raw = msgspec.field(name="Input type", default=NOTHING)
    input_dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NOTHING)


class Event(msgspec.Struct, gc=False):
    """One event of `traceEvents`."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    args: Arguments | None = None


FRAME_CATEGORY: Final = "python_function"


class PlainFrame(msgspec.Struct, gc=False):
    """A complete Python frame, seen only far enough to know that it is nothing else."""

    ph: Literal["X"]
    cat: Literal["python_function"]


def kind_of(cat: str) -> int:
    """Give the kind of an event's category, in any spelling and case."""
    return KINDS.get(cat.strip().lower(), IGNORED)


_LAUNCHING = re.compile(r"Launch|Mem(?:cpy|set|Cpy|Set)")
_RUNTIME_NAME = re.compile(r"^(?:cuda|cu|hip)[A-Z]")


def launches_work(runtime_call: str) -> bool:
    """Tell whether a runtime call can put work on the GPU; unknown names may."""
    return bool(_LAUNCHING.search(runtime_call)) or not _RUNTIME_NAME.match(runtime_call)


def launches_graph(runtime_call: str) -> bool:
    """Tell whether a runtime call replays a graph (`hipGraphLaunch`, `cuGraphLaunch_ptsz`)."""
    return "GraphLaunch" in runtime_call
