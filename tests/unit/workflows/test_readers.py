"""Runs read side by side are the runs read one after the other, errors and all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from agent.errors import CorruptTrace, RuleFileError, TraceError
from agent.kept import KeptFolder
from agent.traces import cache as caching
from agent.traces.document import DamagedDocument
from agent.traces.inflate import ReadProgress
from agent.traces.profile import write_profile
from agent.traces.reader import read_trace
from agent.traces.walk import DamagedJson
from agent.workflows import readers, sending
from agent.workflows.readers import Readers


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch):
    monkeypatch.setattr(readers, "_processors", lambda: 2)


@pytest.fixture(params=["fork", "spawn"])
def _each_start(request, monkeypatch):
    import multiprocessing

    if request.param not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {request.param} here")
    monkeypatch.setattr(sending, "_context", lambda: multiprocessing.get_context(request.param))


def trace_file(path, kernels):
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": f"kernel_{at % 3}",
            "pid": 0,
            "tid": 7,
            "ts": 10 * at,
            "dur": at % 7,
            "args": {"device": 0, "stream": 7, "correlation": at},
        }
        for at in range(kernels)
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return str(path)


@pytest.mark.usefixtures("_each_start")
def test_the_traces_are_the_same_and_in_order(tmp_path):
    runs = [trace_file(tmp_path / f"{count}.json", count) for count in (5, 3, 4)]
    with Readers([[run] for run in runs], worthwhile=0) as side_by_side:
        assert side_by_side._reading
        assert list(side_by_side.traces()) == [read_trace([run]) for run in runs]


@pytest.mark.usefixtures("_each_start")
def test_runs_of_several_files_and_without_a_timeline_come_through(tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(3):
        trace_file(folder / f"TP-{rank}.json", 4 + rank)
    profile = tmp_path / "run.profile"
    profile.write_bytes(write_profile(read_trace([folder])))
    runs = [str(folder), str(profile)]
    with Readers([[run] for run in runs], worthwhile=0) as side_by_side:
        assert list(side_by_side.traces()) == [read_trace([run]) for run in runs]


@pytest.mark.usefixtures("_each_start")
def test_one_large_run_is_read_in_a_process_of_its_own(tmp_path):
    run = [trace_file(tmp_path / f"TP-{rank}.json", 5 + rank) for rank in range(2)]
    with Readers([run], worthwhile=0) as reading:
        assert reading._reading
        assert list(reading.traces()) == [read_trace(run)]


def test_small_runs_are_read_here(tmp_path):
    runs = [trace_file(tmp_path / f"{count}.json", count) for count in (5, 3)]
    with Readers([[run] for run in runs]) as reading:
        assert not reading._reading
        assert list(reading.traces()) == [read_trace([run]) for run in runs]


@pytest.mark.usefixtures("_each_start")
def test_the_first_error_in_order_is_raised_with_all_its_parts(tmp_path):
    good = trace_file(tmp_path / "good.json", 3)
    cut = tmp_path / "cut.json"
    cut.write_text('{"traceEvents": [{"ph": "X", "na')
    empty = tmp_path / "empty.json"
    empty.write_text("")
    with pytest.raises(CorruptTrace) as expected:
        read_trace([cut])
    with (
        Readers([[good], [str(cut)], [str(empty)]], worthwhile=0) as reading,
        pytest.raises(CorruptTrace) as raised,
    ):
        list(reading.traces())
    assert vars(raised.value) == vars(expected.value)
    assert raised.value.hint


def test_an_error_keeps_its_parts_on_the_way():
    import pickle

    err = RuleFileError("RS001", "bad", findings=(), location="a:1", hint="do this")
    again = pickle.loads(pickle.dumps(err))
    assert (type(again), str(again), vars(again)) == (RuleFileError, str(err), vars(err))


@pytest.mark.parametrize("kind", [DamagedDocument, DamagedJson])
def test_what_an_error_was_made_of_can_be_sent_with_it(kind):
    """`tblib`, which Dask installs, sends the context of an error too."""
    import pickle

    again = pickle.loads(pickle.dumps(kind(7, "bad")))
    assert (type(again), again.at, again.what) == (kind, 7, "bad")


def test_a_process_that_dies_is_an_error_that_names_its_run(tmp_path, monkeypatch):
    runs = [trace_file(tmp_path / f"{count}.json", count) for count in (5, 3)]
    monkeypatch.setattr(sending, "read_trace", lambda *_, **__: os.kill(os.getpid(), 9))
    with (
        Readers([[run] for run in runs], worthwhile=0) as reading,
        pytest.raises(TraceError) as raised,
    ):
        list(reading.traces())
    assert (raised.value.code, raised.value.location) == ("TR017", runs[0])
    assert "signal 9" in raised.value.message


def test_leaving_early_ends_the_processes(tmp_path):
    runs = [trace_file(tmp_path / f"{count}.json", count) for count in (5, 3)]
    with Readers([[run] for run in runs], worthwhile=0) as reading:
        processes = [process for _, process in reading._reading.values()]
        assert len(processes) == 2
    assert not any(process.is_alive() for process in processes)


def test_progress_arrives_under_names_that_differ(tmp_path):
    runs = []
    for name in ("base", "new"):
        (tmp_path / name).mkdir()
        runs.append(trace_file(tmp_path / name / "trace.json", 9))
    seen: list[ReadProgress] = []
    with Readers([[run] for run in runs], worthwhile=0, progress=seen.append) as reading:
        list(reading.traces())
    assert {read.source for read in seen} == set(runs)
    assert all(read.done == read.total for read in seen)


INTERRUPTED = """
import os, signal, sys, time
from agent.workflows import readers, sending
readers.Readers.__init__.__kwdefaults__["worthwhile"] = 0
readers._processors = lambda: 2
sending._context = lambda: __import__("multiprocessing").get_context("fork")
def read_trace(*_, **__):
    if sys.argv[1] in _[0]:
        time.sleep(0.2)
        os.killpg(0, signal.SIGINT)
    time.sleep(30)
sending.read_trace = read_trace
from agent.cli import main
sys.exit(main(["diff", sys.argv[1], sys.argv[2]]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")
def test_an_interrupt_leaves_no_traceback_and_no_process(tmp_path):
    """As from a keyboard: every process of the group gets it."""
    runs = [trace_file(tmp_path / f"{count}.json", count) for count in (5, 3)]
    command = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *runs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    output, errors = command.communicate(timeout=20)
    assert (command.returncode, output) == (130, "")
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.killpg(command.pid, 0)


@pytest.mark.usefixtures("_each_start")
def test_what_is_kept_is_recalled_here_and_the_rest_is_read_there(tmp_path, monkeypatch):
    monkeypatch.setattr(caching, "_SETTLED_NS", -(1 << 62))
    runs = [trace_file(tmp_path / f"{count}.json", count) for count in (5, 3, 4)]
    cache = caching.TraceCache(KeptFolder(tmp_path / "cache"), smallest=0)
    plain = [read_trace([run]) for run in runs]
    with Readers([[run] for run in runs], worthwhile=1, cache=cache) as reading:
        assert reading._reading
        assert list(reading.traces()) == plain
    assert len(list(cache.folder.path.glob("*.ranks"))) == 3
    for run in runs[1:]:
        read_trace([run], cache=cache)
    with Readers([[run] for run in runs], worthwhile=1, cache=cache) as reading:
        assert not reading._reading
        assert list(reading.traces()) == plain


@pytest.mark.usefixtures("_each_start")
def test_events_that_nobody_needs_are_not_sent(tmp_path):
    runs = [trace_file(tmp_path / f"{count}.json", count) for count in (5, 3)]
    with Readers([[run] for run in runs], worthwhile=0, needed=_is_long) as reading:
        first, second = (trace.ranks[0] for trace in reading.traces())
    assert first == read_trace([runs[0]]).ranks[0]
    assert second == replace(read_trace([runs[1]]).ranks[0], kernels=None)


def _is_long(rank):
    return rank.count > 3


@pytest.mark.usefixtures("_each_start")
def test_something_is_made_of_each_run_in_their_order(tmp_path):
    runs = [trace_file(tmp_path / f"{count}.json", count) for count in (5, 3, 4)]
    for worthwhile in (0, 1 << 40):
        with Readers([[run] for run in runs], worthwhile=worthwhile) as reading:
            assert list(reading.made_of_each(lambda trace: trace.count)) == [5, 3, 4]
