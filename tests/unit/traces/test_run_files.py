"""Which files of a folder are ranks of the run, how they are named, and what is said of the others."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.core.kernels import Trace
from agent.errors import LabelAgentError, TraceError, UnknownTraceFormat, UsageError
from agent.traces.inflate import ReadProgress
from agent.traces.reader import read_trace


def rank(duration: int = 10, number: int | None = None, world: int | None = None) -> bytes:
    """A file of two kernels of `duration` microseconds each."""
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100 * at, "dur": duration}
        for at in (1, 2)
    ]  # fmt: skip
    info = {} if number is None else {"distributedInfo": {"rank": number, "world_size": world}}
    return json.dumps({**info, "traceEvents": events}).encode()


def merged(durations: Mapping[int, int]) -> bytes:
    events = [
        {**event, "pid": f"[TP{number:02d}-DP00] 0"}
        for number, duration in durations.items()
        for event in json.loads(rank(duration))["traceEvents"]
    ]
    return json.dumps({"traceEvents": events}).encode()


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, raw in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    return folder


def said(trace: Trace) -> str:
    findings = [*trace.findings, *(found for rank in trace.ranks for found in rank.findings)]
    return "\n".join(f"{found.code} {found.location} {found.message}" for found in findings)


STRANGERS = {
    "a configuration": b'{"tp_size": 8}',
    "a result with a line for each request": b'{"a": 1}\n{"a": 2}\n',
    "a log whose lines begin with a bracket": b"[2025-11-03 12:00:00 TP0] Load weight begin.\n",
    "a TOML file": b"[project]\nname = 'x'\n",
    "a YAML file": b"{a: 1}\n",
    "a list of numbers": b"[1, 2, 3]",
    "a list of other objects": b'[{"a": 1}, {"b": 2}]',
    "a list of texts": b'["a", "b"]',
    "a text": b'"x"',
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(64)),
    "another table": b"a,b\n1,2\n",
    "a tar file": bytes(257) + b"ustar" + bytes(300),
    "nothing": b"",
}


@pytest.mark.parametrize("raw", STRANGERS.values(), ids=STRANGERS)
@pytest.mark.parametrize("salvage", [False, True])
def test_a_stranger_in_the_folder_is_passed_over_with_a_note(
    tmp_path: Path, raw: bytes, salvage: bool
) -> None:
    trace = read_trace(put(tmp_path, {"rank0.json": rank(), "stranger": raw}), salvage=salvage)
    assert (trace.count, trace.kernel_ns, trace.complete) == (2, 20_000, True)
    assert "TR044 stranger no trace, passed over" in said(trace)
    with pytest.raises(UnknownTraceFormat) as caught:
        read_trace(tmp_path / "stranger", salvage=salvage)
    assert caught.value.location == str(tmp_path / "stranger")
    assert "salvage" not in caught.value.hint


def test_the_server_options_that_sglang_writes_beside_its_traces_need_no_word(
    tmp_path: Path,
) -> None:
    options = b'{"model_path": "m", "tp_size": 2, "internal_states": [{}]}'
    trace = read_trace(put(tmp_path, {"rank0.json": rank(), "server_args.json": options}))
    assert (trace.count, trace.complete, said(trace)) == (2, True, "")
    (tmp_path / "rank0.json").unlink()
    with pytest.raises(UnknownTraceFormat):
        read_trace(tmp_path)


@pytest.mark.parametrize(
    "raw",
    [rank()[:-30], gzip.compress(rank())[:-20], rank().replace(b"kernel", b"cpu_op")],
    ids=["cut", "cut gzip", "without kernels"],
)
def test_a_lost_rank_is_named_and_makes_the_run_incomplete(tmp_path: Path, raw: bytes) -> None:
    trace = read_trace(put(tmp_path, {"rank0.json": rank(10, 0, 2), "rank1.json": raw}))
    assert (trace.kernel_ns, trace.complete, trace.lost) == (20_000, False, ("rank1.json",))
    assert "TR042 rank1.json unreadable" in said(trace)
    assert "rank 1 of world_size 2 is absent" in said(trace)


def test_no_finding_of_a_run_names_a_folder_of_the_machine(tmp_path: Path) -> None:
    files = {"r/rank0.json": rank(), "r/rank1.json": rank()[:-9], "r/a": b"x", "r/b.json": b"{}"}
    trace = read_trace(put(tmp_path, files) / "r")
    assert str(tmp_path) not in repr(trace)


def test_an_error_that_ends_it_all_names_files_as_the_user_did(tmp_path: Path) -> None:
    put(tmp_path, {"rank0.json": rank()[:-9], "rank1.json": rank()[:-30]})
    with pytest.raises(TraceError) as caught:
        read_trace(tmp_path)
    assert caught.value.location == str(tmp_path / "rank0.json")
    put(tmp_path / "m", {"merged-17.trace.json": merged({0: 1}), "17-TP-0.trace.json": rank()})
    with pytest.raises(UsageError) as refused:
        read_trace(tmp_path / "m")
    assert refused.value.location == str(tmp_path / "m" / "merged-17.trace.json")


@pytest.mark.parametrize(
    "names",
    [
        ["1769-TP-{}.trace.json.gz", "0 1 2"],
        ["1769-TP-{}-DP-0-PP-0-EP-0.trace.json.gz", "0 1 2"],
        ["dp0_pp0_tp{0}_rank{0}.1769.pt.trace.json", "0 1 2"],
        ["rank{}.json", "0 1 2"],
        ["rank_00{}.json", "0 1 2"],
        ["trace_{}.json", "0 1 2"],
        ["rank{}/trace.json", "0 1 2"],
        ["run/TP-{}-DP-0/x.json", "0 1 2"],
    ],
    ids=lambda value: value[0],
)
def test_ranks_are_told_by_the_names_of_files_and_folders(tmp_path: Path, names: list[str]) -> None:
    template, labels = names
    put(tmp_path, {template.format(number): rank(10 + number) for number in range(3)})
    trace = read_trace(tmp_path)
    assert " ".join(rank.label for rank in trace.ranks) == labels
    assert [rank.rank for rank in trace.ranks] == [0, 1, 2]
    assert trace.kernel_ns == 2 * (10 + 11 + 12) * 1_000
    (tmp_path / template.format(1)).unlink()
    assert "rank 1 is absent" in said(read_trace(tmp_path))


@pytest.mark.parametrize("number", [-1, 1.5, 10**30, True, None, [], "x"])
def test_a_rank_that_no_machine_has_is_none(tmp_path: Path, number: object) -> None:
    info = {"distributedInfo": {"rank": number, "world_size": number}}
    raw = json.dumps({**json.loads(rank()), **info}).encode()
    (only,) = read_trace(put(tmp_path, {"x.json": raw})).ranks
    assert (only.rank, only.label, only.info.world_size) == (None, "x", None)


def test_links_to_folders_are_followed_and_loops_entered_once(tmp_path: Path) -> None:
    put(tmp_path, {"data/a/rank0.json": rank(), "data/b/rank1.json": rank(11)})
    run = tmp_path / "run"
    run.mkdir()
    (run / "first").symlink_to(tmp_path / "data" / "a")
    (run / "second").symlink_to(tmp_path / "data" / "b")
    (tmp_path / "data" / "a" / "loop").symlink_to(run)
    assert read_trace(run).kernel_ns == 42_000


def test_one_file_under_several_names_counts_once(tmp_path: Path) -> None:
    put(tmp_path, {"rank0.json": rank()})
    (tmp_path / "again.json").symlink_to(tmp_path / "rank0.json")
    os.link(tmp_path / "rank0.json", tmp_path / "hard.json")
    put(tmp_path, {"rank0.json.gz": gzip.compress(rank())})
    (tmp_path / "dangling.json").symlink_to(tmp_path / "missing.json")
    trace = read_trace([str(tmp_path), str(tmp_path / "rank0.json")])
    assert [(rank.label, rank.kernel_ns) for rank in trace.ranks] == [("0", 20_000)]
    assert said(trace).count("the same events as") == 2


def test_two_ranks_with_equal_events_are_two(tmp_path: Path) -> None:
    assert read_trace(put(tmp_path, {"rank0.json": rank(), "rank1.json": rank()})).count == 4


def test_the_same_rank_twice_is_named(tmp_path: Path) -> None:
    trace = read_trace(put(tmp_path, {"a.json": rank(10, 0, 2), "b.json": rank(11, 0, 2)}))
    assert trace.kernel_ns == 42_000
    assert "TR043  rank 0 is there 2 times: a.json, b.json" in said(trace)
    assert "rank 1 of world_size 2 is absent" in said(trace)


def test_stages_are_kept_apart(tmp_path: Path) -> None:
    files = {
        f"x-TP-{number}-{stage}.trace.json": rank(duration + number)
        for stage, duration in (("EXTEND", 10), ("DECODE", 20))
        for number in range(2)
    }
    del files["x-TP-0-EXTEND.trace.json"]
    trace = read_trace(put(tmp_path, files))
    assert [(rank.label, rank.kernel_ns) for rank in trace.ranks] == [
        ("0 DECODE", 40_000),
        ("1 DECODE", 42_000),
        ("1 EXTEND", 22_000),
    ]
    assert "TR045" in said(trace)


@pytest.mark.parametrize("name", ["merged-17.trace.json.gz", "all.json"])
def test_a_merged_file_and_its_parts_are_not_summed(tmp_path: Path, name: str) -> None:
    raw = merged({0: 10, 1: 11})
    files = {name: gzip.compress(raw) if name.endswith("gz") else raw}
    assert read_trace(put(tmp_path, files)).kernel_ns == 42_000
    put(tmp_path, {f"17-TP-{number}.trace.json": rank(10 + number) for number in range(2)})
    with pytest.raises(UsageError, match="merged file and per-rank files"):
        read_trace(tmp_path)


def test_names_that_are_no_text_are_read_and_can_be_shown(tmp_path: Path) -> None:
    folder = os.fsdecode(b"run\xff")
    put(tmp_path, {f"{folder}/rank0.json": rank(), f"{folder}/a\nb\x1b.json": rank()[:-9]})
    trace = read_trace(tmp_path / folder)
    assert trace.kernel_ns == 20_000
    with pytest.raises(LabelAgentError):
        read_trace(tmp_path / folder / "a\nb\x1b.json")


def test_a_folder_beside_the_ranks_is_passed_over_with_a_note(tmp_path: Path) -> None:
    files = {"rank0.json": rank(), "old/rank0.json": rank(99), ".cache/x": b"x"}
    (tmp_path / "empty").mkdir()
    trace = read_trace(put(tmp_path, files))
    assert (trace.kernel_ns, trace.complete) == (20_000, True)
    assert said(trace) == "TR044 old a folder beside files, passed over"


def test_a_pipe_that_a_pattern_meets_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(put(tmp_path, {"rank0.json": rank()}) / "rank1.json")
    with pytest.raises(TraceError, match="not a regular file"):
        read_trace(str(tmp_path / "*.json"))
    assert read_trace(tmp_path).kernel_ns == 20_000


def test_a_file_written_to_while_it_is_read_is_not_half_of_each(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}
    path.write_text(json.dumps({"traceEvents": [event] * 9_000}), encoding="utf-8")

    def rewrite(_: ReadProgress) -> None:
        with path.open("r+b") as file:
            file.write(path.read_bytes().replace(b'"dur": 2', b'"dur": 3'))

    with pytest.raises(TraceError, match=r"trace\.json: TR018 .* changed while it was read"):
        read_trace(path, progress=rewrite)
