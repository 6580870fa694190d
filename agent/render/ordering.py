"""Orders in which the rows of a report may stand; all are total, so output never varies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from agent.compare.rows import CategoryRow, KernelRow

Sort = Literal["time", "delta", "calls", "name"]


def sorted_rows(rows: Iterable[CategoryRow], sort: Sort) -> list[CategoryRow]:
    """Order categories: by time or calls on both sides, size of the difference, or name."""
    order = _ORDERS[sort]
    return sorted(rows, key=lambda row: (order(row), row.category))


def sorted_kernels(rows: Iterable[KernelRow], sort: Sort = "delta") -> list[KernelRow]:
    """Order kernels the same way."""
    order = _ORDERS[sort]
    return sorted(rows, key=lambda row: (order(row), row.name, row.category))


def _by_time(row: CategoryRow | KernelRow) -> int:
    return -(row.base.time_ns + row.new.time_ns)


def _by_delta(row: CategoryRow | KernelRow) -> int:
    return -abs(row.delta_ns)


def _by_calls(row: CategoryRow | KernelRow) -> int:
    return -(row.base.count + row.new.count)


_ORDERS: dict[Sort, Callable[[CategoryRow | KernelRow], int]] = {
    "time": _by_time,
    "delta": _by_delta,
    "calls": _by_calls,
    "name": lambda _row: 0,
}
