"""Generated tables and databases: totals equal plain sums, anything else is an error.

`LABEL_AGENT_FUZZ` sets how many examples are tried; without it a few seconds' worth.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.core.kernels import Trace
from agent.errors import TraceError
from agent.traces.reader import read_trace

BOUNDED = settings(
    max_examples=int(os.environ.get("LABEL_AGENT_FUZZ", "60")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
NAMES = st.sampled_from(
    ("k", "gemm, a", 'f<"x">', "a\nb", "ünïcode", "", "x" * 400, "void f(int, float) [clone .kd]", "'")
)  # fmt: skip
FINE = st.integers(1, 5_000) | st.integers(1_769_070_226_071_348_200, 1_769_070_226_071_349_000)
ODD = st.sampled_from((-(1 << 63), (1 << 63) - 1, None, "x", 1.5, b"\xff", "12"))
ROWS = st.lists(st.tuples(NAMES, FINE, FINE, st.integers(0, 3)), min_size=1, max_size=12)
ODD_ROWS = st.lists(
    st.tuples(NAMES, FINE | FINE | ODD, FINE | FINE | ODD, st.integers(0, 3)),
    min_size=1,
    max_size=6,
)

Row = tuple[str, Any, Any, int]


def read(name: str, raw: bytes) -> Trace | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(raw)
        return read_path(path)


def read_path(path: Path) -> Trace | None:
    """Read a file; None for an error, which names a row and a hint."""
    try:
        return read_trace(path)
    except TraceError as err:
        error = err
    assert error.hint
    assert error.code == "TR061"
    return None


def sums(rows: Sequence[Row], *, once: bool = True) -> tuple[int, int]:
    """Count what is not repeated, and add up what is not negative."""
    spans = [
        (name, start, max(0, end - start), correlation) for name, start, end, correlation in rows
    ]
    spans = list(dict.fromkeys(spans)) if once else spans
    return len(spans), sum(duration for _, _, duration, _ in spans)


def known(rows: Sequence[Row]) -> bool:
    """Tell whether all times are integers, and no time is the one that has no opposite."""
    times = [time for _, start, end, _ in rows for time in (start, end)]
    return all(type(time) is int and time != -(1 << 63) for time in times)


@given(ROWS, st.sampled_from((",", ";", "\t")), st.sampled_from(("\n", "\r\n")), st.booleans())
@BOUNDED
def test_a_kernel_trace_in_any_spelling(
    rows: list[Row], delimiter: str, line_end: str, quoted: bool
) -> None:
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=quoting)
    writer.writerow(["Kernel_Name", "Start_Timestamp", "End_Timestamp", "Correlation_Id"])
    writer.writerows([name or "empty", *rest] for name, *rest in rows)
    trace = read("kernel_trace.csv", text.getvalue().encode())
    assert trace is not None
    named = [(name or "empty", *rest) for name, *rest in rows]
    assert (trace.count, trace.kernel_ns) == sums(named)  # type: ignore[arg-type]


@given(ROWS)
@BOUNDED
def test_rocprof_json(rows: list[Row]) -> None:
    names = sorted({name for name, *_ in rows})
    symbols = [{"kernel_id": names.index(name), "kernel_name": name or "empty"} for name in names]
    dispatches = [
        {
            "start_timestamp": start,
            "end_timestamp": end,
            "dispatch_info": {"kernel_id": names.index(name), "agent_id": {"handle": 3}},
            "correlation_id": {"internal": correlation},
        }
        for name, start, end, correlation in rows
    ]
    process = {"kernel_symbols": symbols, "buffer_records": {"kernel_dispatch": dispatches}}
    trace = read("r.json", json.dumps({"rocprofiler-sdk-tool": [process]}).encode())
    assert trace is not None
    assert (trace.count, trace.kernel_ns) == sums(rows)


NSYS = (
    "CREATE TABLE StringIds(id, value)",
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(demangledName, start, end, correlationId)",
    "StringIds",
    "CUPTI_ACTIVITY_KIND_KERNEL",
)
ROCPD = (
    "CREATE TABLE rocpd_info_kernel_symbol_a(id, display_name)",
    "CREATE TABLE rocpd_kernel_dispatch_a(kernel_id, start, end, event_id, pid)",
    "rocpd_info_kernel_symbol_a",
    "rocpd_kernel_dispatch_a",
)


@pytest.mark.parametrize("tables", [NSYS, ROCPD], ids=["nsys", "rocpd"])
@given(rows=ODD_ROWS)
@BOUNDED
def test_databases(tables: tuple[str, str, str, str], rows: list[Row]) -> None:
    strings_sql, events_sql, strings, events = tables
    names = sorted({name for name, *_ in rows})
    marks = "?, ?, ?, ?" if events.startswith("CUPTI") else "?, ?, ?, ?, 1"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.db"
        connection = sqlite3.connect(path)
        connection.execute(strings_sql)
        connection.execute(events_sql)
        connection.executemany(f"INSERT INTO {strings} VALUES(?, ?)", enumerate(names))
        stored = [(names.index(name), *rest) for name, *rest in rows]
        connection.executemany(f"INSERT INTO {events} VALUES({marks})", stored)
        connection.commit()
        connection.close()
        trace = read_path(path)
    if trace is None:
        assert not known(rows) or any(end - start > (1 << 62) for _, start, end, _ in rows)
        return
    assert known(rows)
    times = [(name, start, end, 0) for name, start, end, _ in rows]
    counts = rows if events.startswith("CUPTI") else times
    assert (trace.count, trace.kernel_ns) == sums(counts)
