"""Damaged files of other formats: an error with place and hint, or what is whole with `salvage`."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.core.kernels import RankTrace
from agent.errors import CorruptTrace, TraceError, UnknownTraceFormat
from agent.traces.reader import read_trace
from tests.unit.traces.inputs import read_one

HEADER = (
    '"Kind","Agent_Id","Queue_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"'
)
STATS_HEADER = '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"'


def row(name: str = "gemm", start: object = 100, end: object = 200, correlation: int = 1) -> str:
    return f'"KERNEL_DISPATCH","Agent 4",1,"{name}",{correlation},{start},{end}'


def write_csv(folder: Path, *rows: str, header: str = HEADER, end: str = "\n") -> Path:
    path = folder / "kernel_trace.csv"
    path.write_bytes(("\n".join([header, *rows]) + end).encode("utf-8", "surrogateescape"))
    return path


def codes(rank: RankTrace) -> list[str]:
    return [finding.code for finding in rank.findings]


BAD_ROWS = {
    "a row that is cut off": ('"KERNEL_DISPATCH","Agent 4",1,"gemm",1,1', "6 of 7 columns"),
    "a row with a column too many": (row() + ",1", "8 of 7 columns"),
    "a time that is no number": (row(start="N/A"), "starttimestamp is 'N/A'"),
    "a time that is missing": (row(end=""), "endtimestamp is ''"),
    "a time with a fraction": (row(end="200.5"), "endtimestamp is '200.5'"),
    "a time in a spreadsheet's notation": (row(end="1.55E+15"), "no whole number"),
    "a time of 70 bits": (row(end=1 << 69), "does not fit in 64 bits"),
    "a quote inside a name": (row(name='a"b'), "expected after"),
    "a name that does not end": ('"KERNEL_DISPATCH","Agent 4",1,"gemm', "unexpected end"),
}


@pytest.mark.parametrize(("bad", "what"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_damaged_csv_row_is_named_by_its_line(tmp_path: Path, bad: str, what: str) -> None:
    path = write_csv(tmp_path, row(), bad)
    with pytest.raises(CorruptTrace) as caught:
        read_trace(path)
    assert caught.value.code == "TR061"
    assert caught.value.location == f"{path}:3"
    assert what in caught.value.message
    assert "--salvage" in caught.value.hint


@pytest.mark.parametrize("bad", [bad for bad, _ in BAD_ROWS.values()], ids=BAD_ROWS)
def test_salvage_keeps_the_rows_before_a_damaged_one(tmp_path: Path, bad: str) -> None:
    rank = read_one(write_csv(tmp_path, row(), bad), salvage=True)
    assert (rank.count, rank.kernel_ns) == (1, 100)
    assert (rank.info.complete, rank.info.skipped_events) == (False, 1)
    assert codes(rank) == ["TR023"]


def test_a_kernel_trace_without_a_needed_column_says_which(tmp_path: Path) -> None:
    path = write_csv(tmp_path, "gemm,1", header="Kernel_Name,Start_Timestamp")
    with pytest.raises(CorruptTrace, match="TR060 no column End_Timestamp"):
        read_trace(path)


def test_a_kernel_trace_of_a_header_alone_holds_no_kernels(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="TR007 0 GPU kernels"):
        read_trace(write_csv(tmp_path))


def test_counters_are_not_kernels(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path, row() + ',"SQ_WAVES",1', header=HEADER + ',"Counter_Name","Counter_Value"'
    )
    with pytest.raises(UnknownTraceFormat, match="TR064"):
        read_trace(path)


def test_a_negative_duration_counts_as_zero_and_is_told(tmp_path: Path) -> None:
    rank = read_one(write_csv(tmp_path, row(), row(start=500, end=400)))
    assert (rank.count, rank.kernel_ns) == (2, 100)
    assert codes(rank) == ["TR030"]


def test_an_exact_repeat_counts_once_and_is_told(tmp_path: Path) -> None:
    rank = read_one(write_csv(tmp_path, row(), row(), row(correlation=2)))
    assert rank.count == 2
    assert codes(rank) == ["TR034"]


def test_a_kernel_that_runs_past_the_next_of_its_stream_is_told(tmp_path: Path) -> None:
    rank = read_one(write_csv(tmp_path, row(end=900_000), row(start=10_100, end=10_200)))
    assert (rank.clipped.events, rank.clipped.excess_ns) == (1, 889_900)
    assert rank.kernel_ns == 900_000
    assert codes(rank) == ["TR032", "TR033"]


def test_files_put_end_to_end_keep_every_row(tmp_path: Path) -> None:
    rank = read_one(write_csv(tmp_path, row(), HEADER, row(start=300, end=350)))
    assert (rank.count, rank.kernel_ns) == (2, 150)


def test_rows_of_another_kind_are_told(tmp_path: Path) -> None:
    other = row().replace("KERNEL_DISPATCH", "SCRATCH")
    rank = read_one(write_csv(tmp_path, row(), other))
    assert rank.count == 1
    assert codes(rank) == ["TR069"]


def test_bad_utf8_in_a_name_is_replaced_and_told(tmp_path: Path) -> None:
    rank = read_one(write_csv(tmp_path, row(name="ge\udcffmm")))
    assert [signature.name for signature in rank.stats] == ["ge\ufffdmm"]
    assert codes(rank) == ["TR021"]


@pytest.mark.parametrize(
    "name",
    ["x" * 300_000, "[/red]", "a\x1b[31mb", "=cmd()", "naïve", "a,b;c\td", "'", "a\nb", " "],
    ids=lambda name: ascii(name[:12]),
)
def test_a_hostile_name_comes_through_as_it_is(tmp_path: Path, name: str) -> None:
    rank = read_one(write_csv(tmp_path, row(name=name)))
    assert [signature.name for signature in rank.stats] == [name]


def test_a_cut_gzip_of_a_csv_is_an_error_and_salvage_keeps_its_whole_rows(tmp_path: Path) -> None:
    text = "\n".join([HEADER, *(row(name=f"k{i}", start=i, end=i + 1) for i in range(5000))])
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(text.encode())[:-2000])
    with pytest.raises(CorruptTrace):
        read_trace(path)
    rank = read_one(path, salvage=True)
    assert 0 < rank.count < 5000
    assert not rank.info.complete


NOT_KERNELS = {
    "HIP calls": '"hipLaunchKernel",2,200,100.0,100.0,90,110,1',
    "HSA calls": '"hsa_signal_destroy",2,200,100.0,100.0,90,110,1',
    "copies": '"MEMORY_COPY_HOST_TO_DEVICE",2,200,100.0,100.0,90,110,1',
    "domains": '"KERNEL_DISPATCH",2,200,100.0,100.0,90,110,1',
}


@pytest.mark.parametrize("stats", NOT_KERNELS.values(), ids=NOT_KERNELS)
def test_statistics_of_something_else_are_refused(tmp_path: Path, stats: str) -> None:
    with pytest.raises(UnknownTraceFormat, match="TR064"):
        read_trace(write_csv(tmp_path, stats, header=STATS_HEADER))


@pytest.mark.parametrize(
    "stats",
    [
        '"gemm",2,200,100.0,100.0,150,160,1',
        '"gemm",-2,200,100.0,100.0,90,110,1',
        '"gemm",2,-200,100.0,100.0,90,110,1',
        '"gemm",two,200,100.0,100.0,90,110,1',
    ],
)
def test_statistics_that_cannot_be_are_refused(tmp_path: Path, stats: str) -> None:
    good = '"norm",1,5,5.0,1.0,5,5,0'
    path = write_csv(tmp_path, good, stats, header=STATS_HEADER)
    with pytest.raises(CorruptTrace, match=r"kernel_trace\.csv:3: TR061"):
        read_trace(path)
    assert read_one(path, salvage=True).kernel_ns == 5


def test_a_name_twice_in_the_statistics_adds_up(tmp_path: Path) -> None:
    rows = ['"gemm",2,200,100.0,50.0,90,110,1', '"gemm",1,50,50.0,50.0,50,50,0']
    (stats,) = read_one(write_csv(tmp_path, *rows, header=STATS_HEADER)).stats.values()
    assert (stats.count, stats.time_ns, stats.min_ns, stats.max_ns) == (3, 250, 50, 110)


# --- rocprofv3 JSON


def dispatch(kernel_id: int = 1, start: object = 100, end: object = 200) -> dict[str, Any]:
    return {
        "start_timestamp": start,
        "end_timestamp": end,
        "dispatch_info": {"kernel_id": kernel_id, "agent_id": {"handle": 4}},
    }


def rocprof(records: Sequence[object], **more: object) -> dict[str, Any]:
    symbols = [{"kernel_id": 1, "kernel_name": "gemm.kd"}]
    tool = {"kernel_symbols": symbols, "buffer_records": {"kernel_dispatch": records}, **more}
    return {"rocprofiler-sdk-tool": [tool]}


def write_json(folder: Path, content: object) -> Path:
    path = folder / "results.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


BAD_RECORDS: dict[str, object] = {
    "no times": {"dispatch_info": {"kernel_id": 1}},
    "a time that is no number": dispatch(start="soon"),
    "a null": dispatch(end=None),
    "no kernel id": {**dispatch(), "dispatch_info": {}},
    "a list": [1, 2],
    "a time of 70 bits": dispatch(end=1 << 69),
}


@pytest.mark.parametrize("bad", BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_a_damaged_record_is_named_by_its_number(tmp_path: Path, bad: object) -> None:
    path = write_json(tmp_path, rocprof([dispatch(), bad, dispatch(start=300, end=310)]))
    with pytest.raises(CorruptTrace, match="TR061 record 2 of kernel_dispatch"):
        read_trace(path)
    rank = read_one(path, salvage=True)
    assert (rank.count, rank.kernel_ns, rank.info.skipped_events) == (2, 110, 1)


def test_times_as_text_are_read(tmp_path: Path) -> None:
    rank = read_one(write_json(tmp_path, rocprof([dispatch(start="100", end="250")])))
    assert rank.kernel_ns == 150


def test_a_kernel_without_a_symbol_keeps_its_time_under_its_id(tmp_path: Path) -> None:
    rank = read_one(write_json(tmp_path, rocprof([dispatch(kernel_id=9)])))
    assert [signature.name for signature in rank.stats] == ["unknown kernel 9"]


def test_any_cut_of_the_json_is_an_error_and_salvage_keeps_whole_records(tmp_path: Path) -> None:
    whole = json.dumps(rocprof([dispatch(start=10 * i, end=10 * i + 5) for i in range(40)]))
    path = tmp_path / "results.json"
    counts = []
    for cut in range(24, len(whole), 61):
        path.write_text(whole[:cut], encoding="utf-8")
        with pytest.raises(CorruptTrace):
            read_trace(path)
        try:
            counts.append(read_one(path, salvage=True).count)
        except TraceError:
            counts.append(0)
    assert counts == sorted(counts)
    assert counts[-1] in {39, 40}


@pytest.mark.parametrize(
    "content",
    [
        {"rocprofiler-sdk-tool": {}},
        {"rocprofiler-sdk-tool": [1]},
        {"rocprofiler-sdk-tool": [{"buffer_records": []}]},
        {"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": 7}}]},
        {"rocprofiler-sdk-tool": None},
    ],
)
def test_json_of_another_shape_is_an_error(tmp_path: Path, content: object) -> None:
    with pytest.raises(CorruptTrace, match="TR065"):
        read_trace(write_json(tmp_path, content))


@pytest.mark.parametrize(
    "content",
    [
        {"rocprofiler-sdk-tool": []},
        rocprof([]),
        rocprof([], metadata=[], strings=[1], agents=[]),
    ],
)
def test_json_without_kernels_is_an_error(tmp_path: Path, content: object) -> None:
    with pytest.raises(TraceError, match="TR007"):
        read_trace(write_json(tmp_path, content))


# --- SQLite


def make_database(folder: Path, script: str, name: str = "trace.sqlite") -> Path:
    path = folder / name
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


NSYS = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, "end", deviceId, demangledName);
INSERT INTO StringIds VALUES (1, 'gemm');
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 1);
"""


@pytest.mark.parametrize(
    "values", ["NULL, 5, 0, 1", "'soon', 5, 0, 1", "1.5, 5, 0, 1", "5, NULL, 0, 1"]
)
def test_a_damaged_database_row_is_named_by_its_number(tmp_path: Path, values: str) -> None:
    script = f"{NSYS} INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({values});"
    path = make_database(tmp_path, script)
    with pytest.raises(CorruptTrace, match="TR061 row 2 of CUPTI_ACTIVITY_KIND_KERNEL"):
        read_trace(path)
    rank = read_one(path, salvage=True)
    assert (rank.count, rank.kernel_ns, rank.info.skipped_events) == (1, 100, 1)


@pytest.mark.parametrize("bytes_kept", [16, 100, 3000, 5000])
def test_a_cut_database_is_an_error(tmp_path: Path, bytes_kept: int) -> None:
    path = make_database(tmp_path, NSYS)
    path.write_bytes(path.read_bytes()[:bytes_kept])
    with pytest.raises(CorruptTrace, match="TR062"):
        read_trace(path)


def test_damage_in_the_midst_is_an_error_and_salvage_keeps_the_rows_before(tmp_path: Path) -> None:
    rows = "".join(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({10 * i}, {10 * i + 5}, 0, 1);"
        for i in range(100, 2000)
    )
    path = make_database(tmp_path, f"BEGIN; {NSYS} {rows} COMMIT;")
    content = bytearray(path.read_bytes())
    content[20_480:24_576] = b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises(CorruptTrace, match="TR062"):
        read_trace(path)
    rank = read_one(path, salvage=True)
    assert 0 < rank.count < 1900
    assert codes(rank) == ["TR023"]


def test_a_database_of_something_else_is_named(tmp_path: Path) -> None:
    path = make_database(tmp_path, "CREATE TABLE cookies (id);")
    with pytest.raises(UnknownTraceFormat, match=r"TR063 .*cookies"):
        read_trace(path)


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("CREATE TABLE StringIds (id, value); CREATE TABLE META_DATA_EXPORT (name);", "TR007"),
        (NSYS[: NSYS.rindex("INSERT")], "TR007"),
        (NSYS.replace("demangledName", "demangled"), "TR060 .*demangledname"),
        (NSYS.replace('"end"', "stop"), "TR060 .*end"),
        ("CREATE TABLE rocpd_op (gpuId); CREATE TABLE rocpd_string (id);", "TR060 .*rocpd_op"),
        ("CREATE VIEW kernels AS SELECT 'a' AS name, 1 AS start, 2 AS 'end' FROM gone;", "TR063"),
    ],
)
def test_a_database_that_lacks_something_says_what(tmp_path: Path, script: str, what: str) -> None:
    with pytest.raises(TraceError, match=what):
        read_trace(make_database(tmp_path, script))


def test_a_view_without_end_is_stopped(tmp_path: Path) -> None:
    endless = (
        "CREATE VIEW kernels AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT 'k' AS name, i AS start, i + 1 AS \"end\" FROM n WHERE i < 0;"
    )
    with pytest.raises(CorruptTrace, match="does not come to an end"):
        read_trace(make_database(tmp_path, endless))


def test_a_view_alone_is_enough(tmp_path: Path) -> None:
    view = "CREATE VIEW kernels AS SELECT 'gemm' AS name, 5 AS start, 9 AS \"end\", 1 AS pid;"
    rank = read_one(make_database(tmp_path, view))
    assert (rank.info.format, rank.count, rank.kernel_ns) == ("rocpd", 1, 4)


def test_nothing_is_written_beside_a_database(tmp_path: Path) -> None:
    path = make_database(tmp_path, f"PRAGMA journal_mode = WAL; {NSYS}")
    tmp_path.chmod(0o555)
    before = path.read_bytes()
    assert read_one(path).count == 1
    tmp_path.chmod(0o755)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_rows_that_are_still_in_the_journal_are_read(tmp_path: Path) -> None:
    path = tmp_path / "live.sqlite"
    writer = sqlite3.connect(path)
    writer.executescript(f"PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; {NSYS}")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(before) == 3
    assert read_one(path).count == 1
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    writer.close()


def test_a_compressed_database_is_read(tmp_path: Path) -> None:
    path = make_database(tmp_path, NSYS)
    packed = tmp_path / "trace.bin"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_one(packed).kernel_ns == 100


def test_bad_utf8_in_a_database_is_replaced_and_told(tmp_path: Path) -> None:
    path = make_database(tmp_path, NSYS.replace("'gemm'", "CAST(x'6765ff6d' AS TEXT)"))
    rank = read_one(path)
    assert [signature.name for signature in rank.stats] == ["ge\ufffdm"]
    assert codes(rank) == ["TR021"]


def test_graphs_recorded_as_a_whole_and_nothing_else_is_an_error(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE StringIds (id, value);"
        'CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, "end", graphId);'
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 9, 1);"
    )
    with pytest.raises(TraceError, match="TR067") as caught:
        read_trace(make_database(tmp_path, script))
    assert "--cuda-graph-trace=node" in caught.value.hint


def test_operations_of_an_unknown_type_are_told(tmp_path: Path) -> None:
    script = """
    CREATE TABLE rocpd_string (id, string); CREATE TABLE rocpd_api_ops (id, api_id, op_id);
    CREATE TABLE rocpd_api (id, pid, tid, start, "end", apiName_id, args_id);
    CREATE TABLE rocpd_op (id, gpuId, queueId, sequenceId, start, "end", description_id, opType_id);
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'gemm'), (4, 'Teleport');
    INSERT INTO rocpd_op VALUES (1, 0, 0, 0, 10, 15, 3, 2), (2, 0, 0, 0, 20, 25, 3, 4);
    """
    rank = read_one(make_database(tmp_path, script))
    assert rank.count == 1
    assert codes(rank) == ["TR069"]
    assert "'Teleport'" in rank.findings[0].message
