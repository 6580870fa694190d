"""Bad input is one line, a hint and exit 2: no traceback, nothing half-written."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import main
from tests.cli.conftest import Run

GOOD_EVENT = (
    '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 1, "args": {}}'
)
FILES = {
    "an empty file": b"",
    "a page of HTML": b"<html><body>404</body></html>",
    "plain text": b"hello world\n",
    "no events": b'{"traceEvents": []}',
    "another JSON document": b'{"a": 1}',
    "a list of numbers": b"[1, 2, 3]",
    "events without GPU work": b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1}]}',
    "truncated JSON": b'{"traceEvents": [' + GOOD_EVENT.encode() + b', {"ph": "X", "cat": "ker',
    "a truncated gzip": gzip.compress(b'{"traceEvents": [' + b" " * 70_000 + b"]}")[:40],
    "an unescaped quote": b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a"b", "ts": 1, "dur": 1}]}',
    "binary": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
@pytest.mark.parametrize("command", ["label", "diff"])
def test_an_unusable_file_is_a_clear_error(
    run: Run, tmp_path: Path, command: str, content: bytes
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    result = tmp_path / "result.json"
    paths = [path] if command == "label" else [path, path]
    done = run(command, *paths, "--json", "-o", result)
    _is_clear_error(done.code, done.out, done.err)
    assert str(path) in done.err
    assert not result.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["label", "no-such-file.json"],
        ["label", "no-such-*.json"],
        ["label", "."],
        ["label"],
        ["diff", "only-one"],
        ["label", "x", "--format", "pdf"],
        ["label", "x", "--no-such-option"],
        ["no-such-command"],
        ["label", "x", "--top", "many"],
        ["rules", "show", "no-such-rule"],
        ["rules", "list", "--category", "Nope"],
        ["rules", "test", "no-such.tsv"],
        ["rules", "import", "no-such.json"],
        ["judge", "no-such.jsonl", "--repo", "no-such-folder"],
        ["verify", "--repo", "no-such-folder"],
        ["propose", "no-such.json", "--repo", "no-such-folder"],
        ["propose", "no-such.json", "--model", "nobody:x"],
        ["label", "x", "--rules", "no-such.toml"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_a_clear_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    _is_clear_error(done.code, done.out, done.err)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_rule_file_shows_all_its_faults_with_their_lines(
    run: Run, trace_file: Path
) -> None:
    rules = trace_file.parent / "rules.toml"
    rules.write_text(
        'schema = 1\nversion = 1\n\n[[rule]]\nid = "a"\ncategory = "Nope"\nkernel = \'(\'\n'
        "grade = \"vendor\"\nexamples = ['x']\ncounterexamples = ['y']\ncolour = 'red'\n"
    )
    done = run("label", trace_file, "--rules", rules)
    assert done.code == 2
    lines = [line for line in done.err.splitlines() if line.startswith(f"{rules}:")]
    assert len(lines) >= 2
    assert all(line[len(str(rules)) + 1].isdigit() for line in lines)


def test_a_result_that_cannot_be_written_is_a_clear_error(run: Run, trace_file: Path) -> None:
    done = run("label", trace_file, "-o", trace_file.parent / "no" / "such" / "folder.txt")
    _is_clear_error(done.code, done.out, done.err)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("trace.json", ["label", "trace.json"]),
        ("trace.json", ["label", "."]),
        ("trace.json", ["diff", "trace.json", "other.json"]),
        ("other.json", ["diff", "trace.json", "other.json", "--format", "md"]),
        ("rules.toml", ["label", "trace.json", "--rules", "rules.toml"]),
        ("rules.toml", ["rules", "import", "names.csv"]),
    ],
)
def test_no_result_replaces_what_it_is_made_of(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: list[str]
) -> None:
    monkeypatch.chdir(trace_file.parent)
    Path("other.json").write_bytes(trace_file.read_bytes())
    Path("rules.toml").write_text("schema = 1\nversion = 1\n")
    Path("names.csv").write_text("GEMM,gemm_kernel\n")
    before = Path(name).read_bytes()
    done = run(*command, "-o", name)
    _is_clear_error(done.code, done.out, done.err)
    assert "CL006" in done.err
    assert Path(name).read_bytes() == before


def test_an_earlier_report_beside_the_traces_is_written_again(run: Run, trace_file: Path) -> None:
    report = trace_file.parent / "report.html"
    for _ in range(2):
        assert run("label", trace_file.parent, "-o", report).code == 0
    assert report.stat().st_size


def test_csv_has_no_place_for_findings_so_they_are_said_beside_it(
    run: Run, trace_file: Path
) -> None:
    cut = trace_file.with_name("cut.json")
    cut.write_bytes(trace_file.read_bytes()[:-60])
    done = run("label", cut, "--salvage", "--format", "csv")
    assert done.code == 0
    assert "INCOMPLETE" in done.err
    done = run("diff", trace_file, cut, "--salvage", "--allow-incomplete", "--format", "csv")
    assert "INCOMPLETE" in done.err


def test_two_formats_are_one_too_many(run: Run, trace_file: Path) -> None:
    done = run("label", trace_file, "--json", "--format", "csv")
    _is_clear_error(done.code, done.out, done.err)


def test_a_name_outside_the_encoding_of_stdout_is_spelled_out(trace_file: Path) -> None:
    command = [sys.executable, "-m", "agent", "label", str(trace_file)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\xb7" in done.stdout


def test_debug_shows_where_an_error_came_from(run: Run) -> None:
    done = run("label", "no-such-file.json", "--debug")
    assert done.code == 2
    assert "Traceback" in done.err
    assert "TraceError" in done.err


def test_escape_sequences_never_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    name = "evil\x1b[2Jname\u202ereversed"
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 0, "ts": 1, "dur": 1}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [event]}))
    for form in ("text", "md", "csv", "html"):
        done = run("label", path, "--format", form)
        assert done.code == 0
        assert "\x1b" not in done.out + done.err
        assert "\u202e" not in done.out + done.err


@pytest.mark.parametrize("arguments", [[], ["rules"]])
def test_no_command_shows_the_help_as_it_is(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.code == 0
    assert "Commands:" in done.out
    assert "\\x0a" not in done.out + done.err


def test_a_cut_file_without_kernels_is_not_blamed_on_the_profiler(run: Run, tmp_path: Path) -> None:
    event = (
        '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
    )
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents": [{event}, {event}, {{"ph": "X", "ca')
    done = run("label", path, "--salvage")
    assert done.code == 2
    assert "the file ends before its GPU part" in done.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["rules", "list", "--category", "mla"], "MLA"), (["rules", "show", "mla"], "mla.")],
)
def test_a_near_miss_names_what_was_meant(run: Run, arguments: list[str], meant: str) -> None:
    assert f"did you mean {meant}" in run(*arguments).err


def test_help_and_version_are_exit_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
    assert "label-agent" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["demo", "label", "propose", "review", "judge", "diff", "verify", "rules lint"]
)
def test_every_command_has_help_with_an_example(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main([*command.split(), "--help"]) == 0
    assert "Example: label-agent" in capsys.readouterr().out


def _is_clear_error(code: int, out: str, err: str) -> None:
    assert code == 2, out + err
    assert out == ""
    assert "Traceback" not in err
    assert "CL009" not in err
    assert err.count("\n") <= 4
    assert "hint: " in err


def test_a_result_written_to_a_pipe_or_a_link_leaves_it_what_it_is(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.json", tmp_path / "target.json"
    os.mkfifo(pipe)
    link.symlink_to(target)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("label", trace_file, "--json", "-o", pipe).code == 0
        piped = os.read(reader, 1 << 20)
    finally:
        os.close(reader)
    assert run("label", trace_file, "--json", "-o", link).code == 0
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert json.loads(piped) == json.loads(target.read_text())


def test_a_result_keeps_the_mode_of_the_file_it_replaces(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    result = tmp_path / "result.json"
    result.write_text("old")
    result.chmod(0o640)
    assert run("label", trace_file, "--json", "-o", result).code == 0
    assert result.stat().st_mode & 0o777 == 0o640


def test_a_rule_file_found_upwards_is_named_from_where_one_stands(
    run: Run, trace_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "label-rules.toml").write_text("schema = 1\n")
    monkeypatch.chdir(tmp_path)
    assert run("label", trace_file).err.startswith("label-rules.toml:1: RS003 ")


@pytest.mark.parametrize("place", ["rank", "tid", "base", "correlation"])
def test_an_integer_of_thousands_of_digits_is_no_crash(
    run: Run, tmp_path: Path, place: str
) -> None:
    big = "9" * 5_000
    tid, correlation = (big if place == name else "7" for name in ("tid", "correlation"))
    event = (
        f'{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": {tid}, "ts": 1, "dur": 1, '
        f'"args": {{"correlation": {correlation}}}}}'
    )
    head = {
        "rank": f'"distributedInfo": {{"rank": {big}}}, ',
        "base": f'"baseTimeNanoseconds": {big}, ',
    }
    path = tmp_path / "trace.json"
    path.write_text(f'{{{head.get(place, "")}"traceEvents": [{event}]}}')
    done = run("label", path, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["totals"]["kernel_ns"] == 1_000


@pytest.mark.parametrize("extends", ["builtin@1.5", "builtin@", "builtin@x"])
def test_lint_names_a_wrong_extends(run: Run, tmp_path: Path, extends: str) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(f'schema = 1\nversion = 1\nextends = "{extends}"\n')
    done = run("rules", "lint", "--rules", rules)
    assert done.code in (1, 2)
    assert "RS010" in done.out + done.err
    assert "CL009" not in done.err


def test_a_journal_that_is_a_pipe_is_refused_at_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".label-agent").mkdir()
    os.mkfifo(tmp_path / ".label-agent" / "journal.jsonl")
    done = run("review")
    assert done.code == 2
    assert "JR001" in done.err


def test_upgrading_without_a_rule_file_names_the_built_in_one(run: Run) -> None:
    done = run("rules", "upgrade")
    assert done.code == 2
    assert "rules/builtin.toml: RS010" in done.err
    assert "--rules" in done.err


def test_a_comparison_is_not_written_as_a_profile(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "pair.profile"
    done = run("diff", trace_file, trace_file, "-o", output)
    assert (done.code, output.exists()) == (2, False)
    assert "CL001" in done.err
