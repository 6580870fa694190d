"""Odd files of other formats; totals are worked out here with csv, json and sqlite3 alone."""

from __future__ import annotations

import codecs
import csv
import json
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from agent.errors import CorruptTrace, TraceError
from agent.traces.profile import write_profile
from agent.traces.reader import read_trace
from tests.unit.traces.inputs import read_one

HUGE = "9" * 6_000


def csv_sums(text: str, start: str, end: str) -> tuple[int, int]:
    rows = list(csv.DictReader(text.splitlines()))
    return len(rows), sum(int(row[end]) - int(row[start]) for row in rows)


NAME = '"void k<int, ""x"">(a, b)"'
TABLES = {
    "6.2": (
        '"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
        '"Start_Timestamp","End_Timestamp"\n'
        f'"KERNEL_DISPATCH",4,1,10,{NAME},1,1000,1500\n"KERNEL_DISPATCH",4,1,9,"l",2,2000,2700\n'
    ),
    "6.3": (
        '"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",'
        '"Correlation_Id","Start_Timestamp","End_Timestamp"\n'
        f'"KERNEL_DISPATCH","Agent 4",1,77,1,10,{NAME},1,1000,1500\n'
        f'"KERNEL_DISPATCH","Agent 4",1,77,2,10,{NAME},{HUGE},3000,3001\n'
    ),
    "7.0": (
        '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id",'
        '"Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size"\n'
        f'"KERNEL_DISPATCH","Agent 4",1,2,77,1,10,{NAME},1,1769070226071348200,1769070226071348207,0\n'
    ),
    "rocpd convert": (
        '"Guid","Kind","Agent_Id","Kernel_Name","Start_Timestamp","End_Timestamp"\n'
        f'"a","KERNEL_DISPATCH","Agent 4",{NAME},1000,1500\n'
        f'"b","KERNEL_DISPATCH","Agent 4",{NAME},1000,1600\n'
    ),
    "a process of thousands of digits": (
        f'"Process_Id","Kernel_Name","Start_Timestamp","End_Timestamp"\n{HUGE},k,10,15\n'
    ),
}


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("style", ["plain", "line ends of Windows", "a byte order mark"])
def test_every_header_gives_the_same_sums(tmp_path: Path, text: str, style: str) -> None:
    raw = text.replace("\n", "\r\n").encode() if style.startswith("line") else text.encode()
    path = tmp_path / "kernel_trace.csv"
    path.write_bytes(codecs.BOM_UTF8 + raw if style.startswith("a") else raw)
    trace = read_trace(path)
    assert (trace.count, trace.kernel_ns) == csv_sums(text, "Start_Timestamp", "End_Timestamp")


def test_rocprof_v1_columns(tmp_path: Path) -> None:
    text = (
        '"Index","KernelName","gpu-id","queue-id","pid","BeginNs","EndNs"\n'
        '0,"k(int, float) [clone .kd]",1,0,5,1000,1500\n1,"l",1,0,5,1600,1601\n'
    )
    (tmp_path / "results.csv").write_text(text)
    trace = read_trace(tmp_path / "results.csv")
    assert (trace.count, trace.kernel_ns) == csv_sums(text, "BeginNs", "EndNs")


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_table_cut_inside_its_last_number_is_damaged(tmp_path: Path, kept: int) -> None:
    whole = TABLES["6.2"]
    path = tmp_path / "kernel_trace.csv"
    path.write_text(whole[: -5 + kept])
    with pytest.raises(CorruptTrace, match="TR061 damaged row: the file ends without a line end"):
        read_trace(path)
    rank = read_one(path, salvage=True)
    assert (rank.count, rank.kernel_ns, rank.info.complete) == (1, 500, False)


def rocprof_json(changed: str = "", by: str = "") -> str:
    kernel = {
        "start_timestamp": 1000,
        "end_timestamp": 1500,
        "dispatch_info": {"kernel_id": 1, "agent_id": {"handle": 99}},
        "correlation_id": {"internal": 5},
    }
    process = {
        "metadata": {"pid": 7},
        "other": 0,
        "kernel_symbols": [{"kernel_id": 1, "kernel_name": "k.kd", "arch_vgpr_count": 4}],
        "buffer_records": {"kernel_dispatch": [kernel]},
    }
    text = json.dumps({"rocprofiler-sdk-tool": [process]})
    assert changed in text
    return text.replace(changed, by)


@pytest.mark.parametrize("place", ['"pid": 7', '"other": 0', '"arch_vgpr_count": 4'])
def test_a_number_of_thousands_of_digits_in_json_is_no_crash(tmp_path: Path, place: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(rocprof_json(place, f"{place.partition(':')[0]}: {HUGE}"))
    rank = read_one(path)
    assert (rank.count, rank.kernel_ns) == (1, 500)


@pytest.mark.parametrize("place", ['"start_timestamp": 1000', '"kernel_id": 1,'])
def test_a_time_or_id_of_thousands_of_digits_is_a_damaged_record(
    tmp_path: Path, place: str
) -> None:
    path = tmp_path / "results.json"
    comma = "," if place.endswith(",") else ""
    path.write_text(rocprof_json(place, f"{place.partition(':')[0]}: {HUGE}{comma}"))
    with pytest.raises(CorruptTrace, match="TR061 record 1 of kernel_"):
        read_trace(path)


STRINGS = "CREATE TABLE StringIds(id INTEGER, value TEXT); INSERT INTO StringIds VALUES(1, 'k');"
NSYS = STRINGS + (
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, streamId, correlationId,"
    " globalPid, demangledName);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(100, 200, 0, 7, 1, 5, 1), (300, 450, 0, 7, 2, 5, 1);"
)
ROCPD = (
    "CREATE TABLE rocpd_info_kernel_symbol_a(id, display_name);"
    "INSERT INTO rocpd_info_kernel_symbol_a VALUES(1, 'k');"
    "CREATE TABLE rocpd_kernel_dispatch_a(id, guid, pid, agent_id, kernel_id, queue_id, stream_id,"
    " event_id, start, end);"
    "INSERT INTO rocpd_kernel_dispatch_a VALUES(1, 'g', 1, 1, 1, 1, 0, 1, 100, 200),"
    " (2, 'g', 1, 1, 1, 1, 0, 2, 300, 450);"
)
RPD = (
    "CREATE TABLE rocpd_string(id, string);"
    "INSERT INTO rocpd_string VALUES(1, 'KernelExecution'), (2, 'Task'), (3, 'k'), (4, 'hipLaunch');"
    "CREATE TABLE rocpd_op(id, gpuId, queueId, sequenceId, start, end, description_id, opType_id);"
    "INSERT INTO rocpd_op VALUES(1, 0, 0, 0, 100, 200, 3, 1), (2, 0, 0, 0, 300, 450, 3, 2);"
    "CREATE TABLE rocpd_api(id, pid, start, apiName_id); INSERT INTO rocpd_api VALUES(1, 5, 9, 4);"
    "CREATE TABLE rocpd_api_ops(op_id, api_id); INSERT INTO rocpd_api_ops VALUES(1, 1), (2, 1);"
)
DATABASES = {
    "nsys": (NSYS, "CUPTI_ACTIVITY_KIND_KERNEL", "StringIds", "value"),
    "rocpd": (ROCPD, "rocpd_kernel_dispatch_a", "rocpd_info_kernel_symbol_a", "display_name"),
    "rpd": (RPD, "rocpd_op", "rocpd_string", "string"),
}


def database(folder: Path, script: str) -> Path:
    path = folder / "trace.db"
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


@pytest.mark.parametrize("kind", DATABASES)
def test_sums_are_those_of_the_table(tmp_path: Path, kind: str) -> None:
    script, table, *_ = DATABASES[kind]
    path = database(tmp_path, script)
    with sqlite3.connect(path) as connection:
        sums = connection.execute(f"SELECT count(*), sum(end - start) FROM {table}").fetchone()
    trace = read_trace(path)
    assert (trace.count, trace.kernel_ns) == sums == (2, 250)


@pytest.mark.parametrize("kind", DATABASES)
@pytest.mark.parametrize("value", [-(1 << 63), "'x'", "NULL", "1.5", f"'{'x' * 5_000}'"])
def test_a_time_that_is_none_is_a_damaged_row(tmp_path: Path, kind: str, value: object) -> None:
    script, table, *_ = DATABASES[kind]
    path = database(tmp_path, f"{script} UPDATE {table} SET start = {value} WHERE start = 300;")
    with pytest.raises(CorruptTrace, match="TR061 row 2 of") as caught:
        read_trace(path)
    assert len(caught.value.message) < 200
    rank = read_one(path, salvage=True)
    assert (rank.count, rank.kernel_ns, rank.info.skipped_events) == (1, 100, 1)


MOST = (1 << 63) - 1


@pytest.mark.parametrize("kind", DATABASES)
def test_times_too_far_apart_for_64_bits_are_an_error(tmp_path: Path, kind: str) -> None:
    script, table, *_ = DATABASES[kind]
    far = f"UPDATE {table} SET start = {-MOST}, end = {5 - MOST} WHERE start = 300;"
    path = database(tmp_path, f"{script} {far} UPDATE {table} SET end = {MOST} WHERE start > 0;")
    with pytest.raises(CorruptTrace, match="TR061 events lie further apart"):
        read_trace(path)


@pytest.mark.parametrize("kind", DATABASES)
def test_a_duration_beyond_64_bits_is_not_cut_short(tmp_path: Path, kind: str) -> None:
    script, table, *_ = DATABASES[kind]
    path = database(
        tmp_path,
        f"{script} UPDATE {table} SET start = {-MOST}, end = {MOST} WHERE start = 300;",
    )
    with pytest.raises(CorruptTrace, match="TR061 row 2 of"):
        read_trace(path)
    assert read_one(path, salvage=True).kernel_ns == 100


@pytest.mark.parametrize("kind", DATABASES)
def test_a_name_of_bytes_is_read_as_text(tmp_path: Path, kind: str) -> None:
    script, _, strings, column = DATABASES[kind]
    path = database(
        tmp_path, f"{script} UPDATE {strings} SET {column} = x'6bff' WHERE {column} = 'k';"
    )
    assert {signature.name for signature in read_one(path).stats} == {"k\ufffd"}


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT"
IDLE = {
    "nsys": STRINGS + f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {ENDLESS} x AS start, x AS end,"
    " 1 AS demangledName FROM c WHERE x < 0;",
    "nsys, every table": "".join(
        f"CREATE VIEW {view} AS {ENDLESS} {columns} FROM c WHERE x < 0;"
        for view, columns in (
            ("CUPTI_ACTIVITY_KIND_KERNEL", "x AS start, x AS end, 1 AS demangledName"),
            ("CUPTI_ACTIVITY_KIND_RUNTIME", "x AS start, x AS nameId, x AS correlationId"),
            ("CUPTI_ACTIVITY_KIND_MEMCPY", "x AS start, x AS end"),
            ("CUPTI_ACTIVITY_KIND_MEMSET", "x AS start, x AS end"),
            ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "x AS start, x AS end"),
            ("TARGET_INFO_GPU", "x AS id, x AS name"),
            ("StringIds", "x AS id, x AS value"),
        )
    ),
    "nsys, rows without end": STRINGS + f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {ENDLESS}"
    " x AS start, x + 1 AS end, 1 AS demangledName FROM c;",
    "rocpd, rows without end": f"CREATE VIEW kernels AS {ENDLESS} 'k' AS name, x AS start,"
    " x + 1 AS end FROM c;",
}


@pytest.mark.parametrize("script", IDLE.values(), ids=IDLE)
def test_views_without_end_are_stopped_with_and_without_salvage(
    tmp_path: Path, script: str
) -> None:
    path = database(tmp_path, script)
    with pytest.raises(CorruptTrace, match="a view does not come to an end"):
        read_trace(path)
    with suppress(TraceError):  # 0 GPU kernels in what is whole of it
        rank = read_one(path, salvage=True)
        assert not rank.info.complete
        assert rank.count <= path.stat().st_size


def test_what_was_read_before_a_view_without_end_is_kept(tmp_path: Path) -> None:
    view = f"CREATE VIEW TARGET_INFO_GPU AS {ENDLESS} x AS id, x AS name FROM c WHERE x < 0;"
    rank = read_one(database(tmp_path, NSYS + view), salvage=True)
    assert (rank.count, rank.kernel_ns) == (2, 250)


def test_a_profile_that_was_formatted_is_the_same_and_one_that_was_edited_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(TABLES["6.2"])
    written = write_profile(read_trace(path))
    document = json.loads(written)
    for text in (
        json.dumps(document, indent=2),
        json.dumps(document, sort_keys=True),
        "\ufeff" + written.decode(),
    ):
        profile = tmp_path / "run.profile"
        profile.write_text(text, encoding="utf-8")
        assert read_trace(profile).kernel_ns == 1_200
        profile.write_text(text.replace("1500", "1501").replace("500", "501"), encoding="utf-8")
        with pytest.raises(CorruptTrace, match="TR066"):
            read_trace(profile)
