"""Ranges that a program marked by NVTX or ROCTx: those named like steps are kept as such."""

from __future__ import annotations

import json

from agent.traces.numbers import INT64_MAX
from agent.traces.steps import Annotation, is_step


def step_of(name: object, start_ns: object, end_ns: object) -> Annotation | None:
    """Give a marked range of the host if it has both times, in order, and the name of a step."""
    if not (isinstance(start_ns, int) and isinstance(end_ns, int)):
        return None
    if not (isinstance(name, str) and is_step(name)):
        return None
    if not -INT64_MAX <= start_ns <= min(end_ns, INT64_MAX):
        return None
    return Annotation(start_ns, min(end_ns, INT64_MAX), name)


def message_of(extdata: object) -> object:
    """Give the text of a ROCTx marker, which rocpd keeps as `{"message": TEXT}`; None without."""
    try:
        found = json.loads(extdata) if isinstance(extdata, str) else None
    except (ValueError, RecursionError):
        return None
    return found.get("message") if isinstance(found, dict) else None
