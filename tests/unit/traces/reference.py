"""A slow reader to compare with: the whole file as one `json.loads`, exact decimals, plain loops.

It shares nothing with the package but the rules it is meant to follow.
"""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

WORK = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
}
OPS = ("cpu_op", "operator")
RUNTIMES = ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "hip_driver")


class Row(NamedTuple):
    """One GPU event as the tests compare it."""

    name: str
    work: str
    start_ns: int
    duration_ns: int
    device: int
    stream: int
    correlation: int
    op: str
    input_dtypes: tuple[str, ...]
    replayed: bool


def load(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    document = json.loads(raw, parse_float=Decimal, parse_int=Decimal)
    return document if isinstance(document, list) else document["traceEvents"]


def nanoseconds(value: Any) -> int:
    return int((Decimal(value) * 1000).to_integral_value())


def kind(event: dict[str, Any]) -> str:
    return str(event.get("cat", "")).lower()


def rows(events: list[dict[str, Any]]) -> list[Row]:
    """Every complete GPU event with its operator, in file order."""
    complete = [event for event in events if event.get("ph") == "X"]
    gpu = [event for event in complete if kind(event) in WORK]
    ops = [event for event in complete if kind(event) in OPS]
    launches = {}
    for event in complete:
        if kind(event) in RUNTIMES and "Event" not in event["name"]:
            launches.setdefault(_int(event, "correlation"), event)
    repeats = sum(_external(event) == _int(event, "correlation") != -1 for event in gpu)
    by_id = 2 * repeats <= sum(_external(event) != -1 for event in gpu)
    named = {_external(op): op for op in ops if _external(op) > 0}
    return [_row(event, launches, ops, named if by_id else {}) for event in gpu]


def _row(event, launches, ops, named) -> Row:
    launch = launches.get(_int(event, "correlation"))
    replayed = launch is not None and "GraphLaunch" in launch["name"]
    op = None if replayed else named.get(_external(event))
    if op is None and launch is not None and not replayed:
        op = named.get(_external(launch)) or _around(launch, ops)
    types = (op or {}).get("args", {}).get("Input type", [])
    return Row(
        event["name"],
        WORK[kind(event)],
        nanoseconds(event["ts"]),
        max(0, nanoseconds(event["dur"])),
        _int(event, "device"),
        _int(event, "stream"),
        _int(event, "correlation"),
        "" if op is None else op["name"],
        tuple(types),
        replayed,
    )


def _around(launch, ops):
    now = nanoseconds(launch["ts"])
    enclosing = [
        op
        for op in ops
        if op["tid"] == launch["tid"]
        and nanoseconds(op["ts"]) <= now < nanoseconds(op["ts"]) + nanoseconds(op["dur"])
    ]
    return max(enclosing, key=lambda op: nanoseconds(op["ts"]), default=None)


def _int(event, key: str) -> int:
    value = event.get("args", {}).get(key)
    return -1 if value is None else int(value)


def _external(event) -> int:
    return max(_int(event, "External id"), _int(event, "external id"))
