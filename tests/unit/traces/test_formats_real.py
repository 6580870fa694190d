"""The real files of other formats give the figures of their index, and of csv, json and sqlite3."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from agent.core.kernels import Trace
from agent.traces.reader import read_trace

FILES = (
    "mixtral_mi300_rank0.rpd",
    "rocprofv3_kernel_trace_mi350.csv",
    "rocprofv3_kernel_stats_decode_mi350.csv",
    "rocprofv3_results.json.gz",
)
Sums = dict[str, tuple[int, int]]


def by_name(trace: Trace) -> Sums:
    """Sum kernels by name over the signatures of a trace."""
    return summed(
        (signature.name, stats.count, stats.time_ns)
        for signature, stats in trace.stats.items()
        if signature.work == "kernel"
    )


def summed(rows: Iterable[tuple[str, int, int]]) -> Sums:
    sums: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, count, time_ns in rows:
        sums[name] = (sums[name][0] + count, sums[name][1] + time_ns)
    return dict(sums)


@pytest.mark.parametrize("name", FILES)
def test_kernels_names_and_total_equal_the_index(shared: Path, name: str) -> None:
    with (shared / "traces" / "INDEX.tsv").open(encoding="utf-8") as file:
        (row,) = [row for row in csv.DictReader(file, delimiter="\t") if row["file"] == name]
    trace = read_trace(shared / "traces" / name)
    assert trace.count == int(row["gpu_kernel_events"])
    assert len(by_name(trace)) == int(row["distinct_kernels"])
    assert round(trace.kernel_ns / 1000, 1) == float(row["total_kernel_us"])
    assert trace.complete
    assert [finding.code for rank in trace.ranks for finding in rank.findings] == []


def test_a_kernel_trace_sums_like_its_rows(shared: Path) -> None:
    path = shared / "traces" / "rocprofv3_kernel_trace_mi350.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            (row["Kernel_Name"], 1, int(row["End_Timestamp"]) - int(row["Start_Timestamp"]))
            for row in csv.DictReader(file)
        ]
    assert by_name(read_trace(path)) == summed(rows)


def test_kernel_stats_are_taken_as_they_stand(shared: Path) -> None:
    path = shared / "traces" / "rocprofv3_kernel_stats_decode_mi350.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    (rank,) = read_trace(path).ranks
    assert rank.kernels is None
    assert rank.busy_ns is None
    assert {
        signature.name: (stats.count, stats.time_ns, stats.min_ns, stats.max_ns)
        for signature, stats in rank.stats.items()
    } == {
        row["Name"]: tuple(int(row[c]) for c in ("Calls", "TotalDurationNs", "MinNs", "MaxNs"))
        for row in rows
    }


def test_rocprofv3_json_sums_like_its_records(shared: Path) -> None:
    path = shared / "traces" / "rocprofv3_results.json.gz"
    with gzip.open(path) as file:
        (tool,) = json.load(file)["rocprofiler-sdk-tool"]
    names = {symbol["kernel_id"]: symbol["kernel_name"] for symbol in tool["kernel_symbols"]}
    rows = [
        (
            names[record["dispatch_info"]["kernel_id"]],
            1,
            record["end_timestamp"] - record["start_timestamp"],
        )
        for record in tool["buffer_records"]["kernel_dispatch"]
    ]
    trace = read_trace(path)
    assert by_name(trace) == summed(rows)
    assert trace.ranks[0].info.device_names == ("AMD Instinct MI350X",)


def test_an_rpd_file_sums_like_its_operations(shared: Path) -> None:
    path = shared / "traces" / "mixtral_mi300_rank0.rpd"
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    rows = connection.execute(
        "SELECT description, count(*), sum(end - start) FROM op"
        " WHERE opType IN ('KernelExecution', 'Task') GROUP BY description"
    ).fetchall()
    replayed_ns, launches = connection.execute(
        "SELECT sum(o.end - o.start), count(DISTINCT a.id) FROM rocpd_op o"
        " JOIN rocpd_api_ops x ON x.op_id = o.id JOIN api a ON a.id = x.api_id"
        " WHERE a.apiName = 'hipGraphLaunch'"
    ).fetchone()
    connection.close()
    trace = read_trace(path)
    (rank,) = trace.ranks
    assert by_name(trace) == summed(rows)
    assert rank.rank == 0
    assert rank.replays.time_ns == replayed_ns
    assert rank.replays.kernels_per_launch == (622,) * launches
