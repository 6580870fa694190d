"""Events in two halves (`B` begins, `E` ends) -> complete events; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from agent.traces.events import NOTHING, Event
from agent.traces.numbers import to_ns

HALVES: Final = frozenset("BE")


def pair_halves(halves: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """Pair beginnings and ends per thread, innermost first; give also those without the other."""
    whole: list[Event] = []
    lonely: list[Event] = []
    stacks: dict[tuple[int | str, int | str], list[Event]] = {}
    for event in sorted(halves, key=lambda half: to_ns(half.ts) or 0):
        stack = stacks.setdefault((event.pid, event.tid), [])
        if event.ph == "B":
            stack.append(event)
        elif stack:
            whole.append(_joined(stack.pop(), event))
        else:
            lonely.append(event)
    return whole, [*lonely, *(event for stack in stacks.values() for event in stack)]


def _joined(begun: Event, ended: Event) -> Event:
    start, end = to_ns(begun.ts), to_ns(ended.ts)
    begun.ph = "X"
    begun.dur = NOTHING if start is None or end is None else _microseconds(end - start)
    begun.args = begun.args or ended.args
    return begun


def _microseconds(ns: int) -> msgspec.Raw:
    sign = "-" if ns < 0 else ""
    return msgspec.Raw(f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}".encode())
