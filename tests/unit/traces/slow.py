"""What a file's kernels add up to, found slowly: `json`, decimals and plain loops over dicts.

It shares nothing with the package but the rules: what is GPU work, which times are usable, what
counts once, what is busy.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

WORK = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
}
MATTER = (
    *("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "External id", "external id"),
    *("correlation", "device", "stream", "Input type", "Input Dims"),
)
LARGEST_NS = 2**62 - 1


class Number(str):
    """The text of a number."""

    __slots__ = ()


class RefusedError(Exception):
    """The text is not one trace."""


class Work(NamedTuple):
    """A GPU event."""

    rank: str
    name: str
    work: str
    start: int | None
    duration: int
    device: int
    stream: int
    correlation: int


class Sums(NamedTuple):
    """What is compared of one rank: count and time by name and work, busy time and span."""

    by_name: tuple[tuple[tuple[str, str], tuple[int, int]], ...]
    busy_ns: int
    span_ns: int


def sums_of(raw: bytes) -> list[Sums] | None:
    """Give the sums of each rank of a file, or None where it must be refused."""
    text = raw.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    try:
        events = events_of(text)
    except (RefusedError, ValueError, RecursionError):
        return None
    work = [found for event in complete(events) if (found := work_of(event))]
    ranks = {found.rank for found in work}
    return sorted(add_up([one for one in work if one.rank == rank]) for rank in ranks) or None


def events_of(text: str) -> list[dict[str, Any]]:
    document = DECODER.decode(text)
    if isinstance(document, list):
        events = document
    elif isinstance(document, Pairs):
        lists = [value for key, value in document if key == "traceEvents" and type(value) is list]
        if len(lists) != 1:
            raise RefusedError
        (events,) = lists
    else:
        raise RefusedError
    if any(not isinstance(event, Pairs) for event in events):
        raise RefusedError
    return [as_dict(event) for event in events]


class Pairs(tuple[tuple[str, Any], ...]):
    """An object's pairs, as they stand."""

    __slots__ = ()


BARE = object()
DECODER = json.JSONDecoder(
    object_pairs_hook=Pairs,
    parse_int=Number,
    parse_float=Number,
    parse_constant=lambda _: BARE,
    strict=False,
)


def as_dict(value: Any) -> Any:
    """Make objects of pairs; two values for a key that matters and bare words are refused."""
    if value is BARE:
        raise RefusedError
    if isinstance(value, Pairs):
        members = [(key, as_dict(member)) for key, member in value]
        for key, member in members:
            if key in MATTER and dict(members)[key] != member:
                raise RefusedError(key)
        return dict(members)
    return [as_dict(member) for member in value] if isinstance(value, list) else value


def complete(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the complete events, those in two halves included."""
    whole = [event for event in events if event.get("ph") == "X"]
    stacks: dict[Any, list[dict[str, Any]]] = {}
    halves = [event for event in events if event.get("ph") in ("B", "E")]
    for event in sorted(halves, key=lambda half: nanoseconds(half.get("ts")) or 0):
        stack = stacks.setdefault((identity(event.get("pid")), identity(event.get("tid"))), [])
        if event["ph"] == "B":
            stack.append(event)
        elif stack:
            begun = stack.pop()
            args = begun.get("args") if isinstance(begun.get("args"), dict) else event.get("args")
            start, end = nanoseconds(begun.get("ts")), nanoseconds(event.get("ts"))
            known = start is not None and end is not None
            duration = Number(Decimal(end - start) / 1000) if known else None  # type: ignore[operator]
            whole.append({**begun, "dur": duration, "args": args})
    return whole


def work_of(event: dict[str, Any]) -> Work | None:
    work = WORK.get(text_of(event.get("cat")).strip().lower())
    if work is None:
        return None
    args = event.get("args") if isinstance(event.get("args"), dict) else {}
    pid, tid = identity(event.get("pid")), identity(event.get("tid"))
    merged = re.match(r"\[([^\]]+)\]", pid) if isinstance(pid, str) else None
    return Work(
        merged.group(1) if merged else "",
        text_of(event.get("name")),
        work,
        nanoseconds(event.get("ts")),
        max(0, nanoseconds(event.get("dur")) or 0),
        number_or(args.get("device"), last_number(pid), 2**31 - 1),
        number_or(args.get("stream"), last_number(tid), 2**63 - 1),
        number_or(args.get("correlation"), -1, 2**63 - 1),
    )


def text_of(value: Any) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", value) if isinstance(value, str) else ""


def nanoseconds(value: Any) -> int | None:
    if not isinstance(value, str) or len(value) > 64 or not value.isascii():
        return None
    try:
        exact = Decimal(value.strip())
    except InvalidOperation:
        return None
    if not exact.is_finite() or exact.copy_abs() > Decimal(LARGEST_NS) / 1000:
        return None
    return round(exact * 1000)


def whole(value: Any) -> int | None:
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return int(float(value)) if float(value).is_integer() else None
    except ValueError:
        return None


def identity(value: Any) -> int | str:
    if isinstance(value, Number):
        number = whole(value)
        return str(value) if number is None else number
    return text_of(value) if isinstance(value, str) else -1


def last_number(value: int | str) -> int:
    if isinstance(value, int):
        return value
    found = re.search(r"-?\d+\s*$", value)
    return int(found.group()) if found and len(found.group().strip()) <= 40 else -1


def number_or(value: Any, other: int, limit: int) -> int:
    number = whole(value)
    number = other if number is None else number
    return number if ~limit <= number <= limit else -1


def usable(work: Work, found: list[Work]) -> bool:
    """Tell whether a start is one: 0 is no stamp, unless the events begin within a second of it."""
    earliest = min((other.start for other in found if other.start), default=0)
    return bool(work.start) or (work.start == 0 and earliest <= 10**9 and work.duration > 0)


def once(found: list[Work]) -> list[Work]:
    """Leave out what repeats another in everything, where its time is usable."""
    kept: list[Work] = []
    for work in found:
        if work not in kept or not usable(work, found):
            kept.append(work)
    return kept


def add_up(found: list[Work]) -> Sums:
    """Add up one rank."""
    kept = once(found)
    by_name: dict[tuple[str, str], tuple[int, int]] = {}
    for work in kept:
        count, time_ns = by_name.get((work.name, work.work), (0, 0))
        by_name[work.name, work.work] = (count + 1, time_ns + work.duration)
    spans = [
        (work.device, work.start or 0, (work.start or 0) + work.duration)
        for work in kept
        if work.work == "kernel" and usable(work, found)
    ]
    devices = {device for device, _, _ in spans}
    busy_ns = sum(union([span[1:] for span in spans if span[0] == device]) for device in devices)
    ends = [end for _, _, end in spans]
    span_ns = max(ends) - min(start for _, start, _ in spans) if spans else 0
    return Sums(tuple(sorted(by_name.items())), busy_ns, span_ns)


def union(spans: list[tuple[int, int]]) -> int:
    total, until = 0, min(start for start, _ in spans)
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total
