"""Ranges that a program marks by ROCTx are its steps, in every format that records them.

Where they stand: rocprofiler-sdk writes the message of a range into the `extdata` of its event
(rocpd) or among its strings, by correlation (JSON); rpd keeps it as the argument of a `UserMarker`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.kernels import Trace
from agent.traces.markers import step_of
from agent.traces.reader import read_trace
from tests.unit.traces.inputs import GOLDEN, put_input

ORIGIN = 1_550_151_853_000_000
MARKED = (
    ("serve", 0, 500_000),
    ("step 1", 0, 150_000),
    ("forward of step 1", 10, 140_000),
    ("step 2", 150_000, 400_000),
)
"""Ranges on the host; the golden inputs launch up to 131 us, and replay at 199 and 299 us."""

SUFFIX = "_0000aa00_0001"
VIEWS = """
DROP VIEW rocpd_event; DROP VIEW regions;
CREATE VIEW rocpd_event AS SELECT * FROM rocpd_event_0000aa00_0001;
CREATE VIEW regions AS SELECT R.id, R.guid, S.string AS name, P.pid, R.start, R."end", E.stack_id,
E.extdata FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id
JOIN rocpd_string S ON S.id = R.name_id JOIN rocpd_info_process P ON P.id = R.pid;
"""


def rocpd(scratch: Path, *, views: bool) -> Path:
    folder = GOLDEN / "rocpd" / ("one-process" if views else "without-views")
    path = put_input(folder, scratch)
    with sqlite3.connect(path) as database:
        database.execute(f"ALTER TABLE rocpd_event{SUFFIX} ADD COLUMN extdata")
        database.execute(
            f"INSERT INTO rocpd_string{SUFFIX} VALUES (900, 'guid-a', 'roctxThreadRangeA')"
        )
        for number, (name, start, end) in enumerate(MARKED, 901):
            at = (ORIGIN + start, ORIGIN + end)
            message = json.dumps({"message": name})
            event = (number, "guid-a", number, message)
            database.execute(f"INSERT INTO rocpd_event{SUFFIX} VALUES (?, ?, ?, ?)", event)
            row = (number, "guid-a", 1, 1, 1, *at, 900, number)
            holes = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO rocpd_region{SUFFIX} VALUES ({holes})", row)
        database.executescript(VIEWS if views else "")
    database.close()
    return path


def rocprof_json(scratch: Path, *, order: str = "compact") -> Path:
    raw = (GOLDEN / "rocprofv3-json" / order / "results.json").read_text(encoding="utf-8")
    document = json.loads(raw)
    [process] = document["rocprofiler-sdk-tool"]
    process["buffer_records"]["marker_api"] = [
        {
            "size": 48,
            "kind": 7,
            "operation": 1,
            "correlation_id": {"internal": number, "external": 0},
            "start_timestamp": ORIGIN + start,
            "end_timestamp": ORIGIN + end,
            "thread_id": 4711,
        }
        for number, (_, start, end) in enumerate(MARKED, 901)
    ]
    process["strings"]["marker_api"] = [
        {"key": number, "value": name} for number, (name, _, _) in enumerate(MARKED, 901)
    ]
    path = scratch / "results.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def rpd(scratch: Path, *, schema: int) -> Path:
    path = put_input(GOLDEN / "rpd" / f"schema-{schema}", scratch)
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO rocpd_string VALUES (900, 'UserMarker')")
        for number, (name, start, end) in enumerate(MARKED, 901):
            database.execute("INSERT INTO rocpd_string VALUES (?, ?)", (number, name))
            more = () if schema == 2 else (1, 1)
            row = (number, 4711, 4711, ORIGIN + start, ORIGIN + end, 900, *more, number)
            holes = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO rocpd_api VALUES ({holes})", row)
    database.close()
    return path


FORMATS: dict[str, Callable[[Path], Path]] = {
    "rocpd by its views": lambda scratch: rocpd(scratch, views=True),
    "rocpd by its tables": lambda scratch: rocpd(scratch, views=False),
    "rocprofv3 JSON": rocprof_json,
    "rocprofv3 JSON, names last": lambda scratch: rocprof_json(
        scratch, order="names-after-records"
    ),
    "rpd, schema 2": lambda scratch: rpd(scratch, schema=2),
    "rpd, schema 3": lambda scratch: rpd(scratch, schema=3),
}


def steps_of(trace: Trace) -> list[tuple[str, int]]:
    [rank] = trace.ranks
    return [(step.name, step.start_ns) for step in rank.steps]


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
def test_marked_steps_are_where_their_launches_ran(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    """The first kernel starts 1 us after the origin, the first replayed one at 200 us."""
    assert steps_of(read_trace(make(tmp_path))) == [("step 1", 0), ("step 2", 199_000)]


@pytest.mark.parametrize("extdata", [None, "", "{", "[]", '{"message": 7}', "[" * 5_000], ids=repr)
def test_a_marker_without_a_text_is_no_step(extdata: str | None, tmp_path: Path) -> None:
    path = rocpd(tmp_path, views=True)
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE rocpd_event{SUFFIX} SET extdata = ?", (extdata,))
    database.close()
    assert steps_of(read_trace(path)) == []


def test_a_file_without_markers_has_no_steps(tmp_path: Path) -> None:
    for case in ("rocpd/one-process", "rpd/schema-3", "rocprofv3-json/compact"):
        (tmp_path / case.partition("/")[0]).mkdir()
        path = put_input(GOLDEN / case, tmp_path / case.partition("/")[0])
        assert steps_of(read_trace(path)) == []


@pytest.mark.parametrize(
    ("start", "end", "is_one"),
    [(5, 5, True), (5, 4, False), (5, 1 << 64, True), (1 << 63, 1 << 64, False), (5, None, False)],
)
def test_a_range_without_usable_times_is_no_step(start: int, end: int | None, is_one: bool) -> None:
    assert (step_of("step 1", start, end) is not None) is is_one


def test_salvage_of_a_call_with_an_id_of_64_bits_reads_on(tmp_path: Path) -> None:
    """rocprofiler's ids are unsigned; the call's start had been taken when its id was refused."""
    path = rocprof_json(tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"))
    [process] = document["rocprofiler-sdk-tool"]
    calls = process["buffer_records"]["hip_api"]
    calls.append({**calls[0], "correlation_id": {"internal": (1 << 64) - 1}})
    path.write_text(json.dumps(document), encoding="utf-8")
    for salvage in (False, True):
        trace = read_trace(path, salvage=salvage)
        assert steps_of(trace) == [("step 1", 0), ("step 2", 199_000)]
