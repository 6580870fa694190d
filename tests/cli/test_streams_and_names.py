"""Streams that are closed or full, names that are empty, alike or misspelled: one line and exit 2."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.workflows.diff import told_apart
from tests.cli.conftest import Run, kernel

PROGRAM = "from agent.cli import run; run()"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    words = f'"{sys.executable}" -c "{PROGRAM}" {command}'
    return subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", [("label", ""), ("diff", "", ""), ("diff", "TRACE", "")])
def test_an_empty_name_is_not_the_current_folder(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(trace_file.parent)
    done = run(*(word.replace("TRACE", trace_file.name) for word in command))
    assert (done.code, done.out) == (2, "")
    assert "TR001 the name of a trace is empty" in done.err


@pytest.mark.parametrize("option", ["-o", "--rules"])
def test_an_empty_file_name_is_refused(run: Run, trace_file: Path, option: str) -> None:
    done = run("label", trace_file, option, "")
    assert (done.code, done.out) == (2, "")
    assert "the name of the file is empty" in done.err
    assert "hint: label-agent label --help" in done.err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["labl", "x"], "Did you mean 'label'?", "label-agent --help"),
        (["diff", "a", "b", "--base-repeat"], "requires an argument", "label-agent diff --help"),
        (["label", "--json=true", "x"], "does not take a value", "label-agent label --help"),
    ],
)
def test_a_misspelled_command_line_names_what_is_near(
    run: Run, words: list[str], message: str, hint: str
) -> None:
    done = run(*words)
    assert done.code == 2
    assert message in done.err
    assert f"hint: {hint}" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="no sh")
def test_a_closed_stdout_is_an_error_and_no_crash(trace_file: Path) -> None:
    done = shell(f"label {trace_file} >&-")
    assert done.returncode == 2
    assert done.stderr.startswith("CL002 stdout is closed\nhint: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("errors", ["2>&-", "2>/dev/full"])
def test_an_error_that_nobody_hears_still_has_its_exit_code(errors: str) -> None:
    assert shell(f"label nope {errors}").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_asks_for_space(trace_file: Path) -> None:
    done = shell(f"label {trace_file} >/dev/full")
    assert done.returncode == 2
    assert "hint: free some space" in done.stderr


def test_absolute_paths_that_end_alike_are_told_apart(run: Run, tmp_path: Path) -> None:
    for name, duration in (("bf16", 10), ("fp8", 20)):
        path = tmp_path / name / "rank0.json"
        path.parent.mkdir()
        path.write_text(json.dumps([kernel("moe_gemm1_0", 1, duration)]))
    done = run("diff", tmp_path / "bf16" / "rank0.json", tmp_path / "fp8" / "rank0.json", "--json")
    result = json.loads(done.out)
    assert [result[side]["name"] for side in ("base", "new")] == [
        "bf16/rank0.json",
        "fp8/rank0.json",
    ]
    assert str(tmp_path) not in done.out


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        (["/x/a/t.json", "/x/b/t.json"], ["a/t.json", "b/t.json"]),
        (["/a/r/t.json", "/b/r/t.json", "/c.json"], ["/a/r/t.json", "/b/r/t.json", "c.json"]),
        (["/x/a/r/t.json", "/x/b/r/t.json"], ["a/r/t.json", "b/r/t.json"]),
        (["/x/t.json", "/x/t.json"], ["t.json", "t.json"]),
        (["/t.json", "/x/t.json"], ["t.json", "t.json"]),
    ],
)
def test_as_few_folders_as_needed_and_never_the_root(runs: list[str], names: list[str]) -> None:
    wanted = [name.removeprefix("/") for name in names]
    assert told_apart(runs, [Path(run).name for run in runs]) == wanted


def test_salvage_says_where_a_file_is_cut_off(run: Run, trace_file: Path) -> None:
    text = trace_file.read_text()
    trace_file.write_text(text[: text.index("opaque")])
    done = run("label", trace_file, "--salvage", "--json")
    messages = [warning["message"] for warning in json.loads(done.out)["warnings"]]
    size = trace_file.stat().st_size
    lost = f"1 malformed event was skipped; the file is cut off after {size} bytes of JSON"
    assert any(lost in message for message in messages), messages


def test_a_wrong_checksum_is_named_and_not_called_a_cut(run: Run, trace_file: Path) -> None:
    packed = bytearray(gzip.compress(trace_file.read_bytes()))
    packed[-6] ^= 1
    path = trace_file.with_suffix(".json.gz")
    path.write_bytes(packed)
    done = run("label", path)
    assert done.code == 2
    assert "TR010 the checksum of the gzip data is wrong" in done.err
    assert "truncated" not in done.err


KILLED = """
import os, signal, sys, threading, time
from agent.workflows import sending
def endless(*_, **__):
    print("reading", flush=True)
    time.sleep(600)
sending.read_trace = endless
sending.start_reading(["x"], salvage=False, watched=False, cache=None, needed=None)
time.sleep(float(sys.argv[1]))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_reading_process_ends_with_the_one_that_was_killed() -> None:
    """What it reads for is gone; it also holds the streams of whoever started the command."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, "1"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "reading\n"
    assert done.returncode == -9


def test_a_page_and_a_picture_do_not_share_a_file(run: Run, trace_file: Path) -> None:
    place = trace_file.with_name("x.svg")
    done = run("diff", trace_file, trace_file, "--svg", place, "-o", place)
    assert done.code == 2
    assert "--svg and -o name the same file" in done.err
    assert not place.exists()


@pytest.mark.parametrize(
    ("typed", "offered"), [("label-agent di", "diff"), ("label-agent rules l", "lint")]
)
def test_a_shell_is_told_what_may_come_next(typed: str, offered: str) -> None:
    words = typed.split()
    environment = {
        **os.environ,
        "_LABEL_AGENT_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert offered in [line.partition(",")[2] for line in done.stdout.splitlines()], done.stderr
