"""`label` and `diff` from the command line: the contract of their JSON, formats and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run, kernel


def test_label_json_keeps_its_contract(run: Run, trace_file: Path) -> None:
    done = run("label", trace_file, "--json")
    assert done.code == 0
    result = json.loads(done.out)
    assert isinstance(result["schema"], int)
    totals = result["totals"]
    assert (totals["kernels"], totals["kernel_ns"]) == (3, 60_000)
    assert (totals["busy_ns"], totals["span_ns"]) == (60_000, 230_000)
    by_id = {row["id"]: (row["count"], row["time_ns"]) for row in result["categories"]}
    assert by_id == {
        "MoEGEMM": (1, 10_000),
        "Comm": (1, 20_000),
        "Unlabelled": (1, 30_000),
    }
    assert sum(result["coverage"].values()) == pytest.approx(1)
    assert set(result["coverage"]) == {"validated", "vendor", "inferred", "unlabelled"}
    (unlabelled,) = result["unlabelled"]
    assert (unlabelled["name"], unlabelled["count"], unlabelled["time_ns"]) == (
        "opaque_device_fn_q7_v3",
        1,
        30_000,
    )
    assert set(result["ruleset"]) >= {"name", "version", "digest"}


@pytest.mark.parametrize("form", ["text", "md", "csv", "html"])
def test_label_writes_every_format(run: Run, trace_file: Path, form: str) -> None:
    done = run("label", trace_file, "--format", form)
    assert done.code == 0
    assert "MoEGEMM" in done.out


def test_the_same_input_gives_the_same_bytes(run: Run, trace_file: Path) -> None:
    assert run("label", trace_file, "--json").out == run("label", trace_file, "--json").out


def test_no_absolute_path_is_in_a_result(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trace_file.parent)
    for form in ("text", "md", "csv", "json"):
        assert str(trace_file.parent) not in run("label", "trace.json", "--format", form).out


def test_a_profile_stands_for_its_trace(run: Run, trace_file: Path, tmp_path: Path) -> None:
    profile = tmp_path / "run.profile"
    done = run("label", trace_file, "-o", profile)
    assert (done.code, done.err) == (0, f"wrote {profile}\n")
    direct = json.loads(run("label", trace_file, "--json").out)
    kept = json.loads(run("label", profile, "--json").out)
    for key in ("totals", "categories", "unlabelled", "coverage"):
        assert kept[key] == direct[key]


def test_diff_of_a_trace_with_itself_is_empty(run: Run, trace_file: Path) -> None:
    result = json.loads(run("diff", trace_file, trace_file, "--json").out)
    assert result["ledger"]["net_ns"] == 0
    assert all(row["delta_ns"] == 0 and row["status"] == "both" for row in result["categories"])


def test_diff_mirrors_itself(run: Run, trace_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"traceEvents": [kernel("moe_gemm1_0", 5, 17)]}))
    there = json.loads(run("diff", trace_file, other, "--json").out)
    back = json.loads(run("diff", other, trace_file, "--json").out)
    forward = {row["id"]: row["delta_ns"] for row in there["categories"]}
    assert forward == {row["id"]: -row["delta_ns"] for row in back["categories"]}
    assert there["ledger"]["net_ns"] == -back["ledger"]["net_ns"] == 17_000 - 60_000


def test_a_failed_gate_is_exit_1_and_names_itself(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    events = [kernel("moe_gemm1_0", 5, 90), kernel("opaque_device_fn_q7_v3", 300, 30)]
    other.write_text(json.dumps({"traceEvents": events}))
    done = run(
        "diff", trace_file, other, "--fail-on", "unlabelled>1%", "--fail-on", "unlabelled>99%"
    )
    assert done.code == 1
    assert "unlabelled>1%" in done.err
    assert "unlabelled>99%" not in done.err


def test_a_wrong_gate_is_exit_2_before_anything_is_read(run: Run) -> None:
    done = run("diff", "no-such-file", "no-such-file", "--fail-on", "total>>1%")
    assert done.code == 2
    assert "DF003" in done.err
    assert "^" in done.err


@pytest.mark.parametrize("form", ["text", "md", "csv", "html", "github"])
def test_diff_writes_every_format(run: Run, trace_file: Path, form: str) -> None:
    assert run("diff", trace_file, trace_file, "--format", form).code == 0


def imported(*arguments: object) -> set[str]:
    """Run a command in a process of its own and give the modules it imported."""
    code = (
        "import sys; from agent.cli import main; main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def test_diff_imports_no_sdk_git_or_parser(trace_file: Path) -> None:
    modules = imported("diff", trace_file, trace_file)
    assert "agent.compare.table" in modules
    assert not {"openai", "anthropic", "git", "tree_sitter", "httpx2"} & modules


def test_only_reading_events_imports_numpy(run: Run, trace_file: Path, tmp_path: Path) -> None:
    profile = tmp_path / "run.profile"
    assert run("label", trace_file, "-o", profile).code == 0
    assert "numpy" in imported("diff", trace_file, trace_file)
    assert "numpy" not in imported("diff", profile, profile)


@pytest.mark.parametrize(
    ("suffix", "begins"), [("html", "<!doctype html>"), ("json", "{"), ("md", "")]
)
def test_the_suffix_of_the_output_decides_the_format(
    run: Run, trace_file: Path, tmp_path: Path, suffix: str, begins: str
) -> None:
    for command in (("label", trace_file), ("diff", trace_file, trace_file)):
        output = tmp_path / f"report.{suffix}"
        assert run(*command, "-o", output).code == 0
        text = output.read_text()
        assert text.lower().startswith(begins)
        assert text == run(*command, "--format", suffix).out


def test_the_waterfall_can_be_written_alone(run: Run, trace_file: Path, tmp_path: Path) -> None:
    assert run("diff", trace_file, trace_file, "--svg", tmp_path / "w.svg").code == 0
    assert (tmp_path / "w.svg").read_text().startswith("<svg")


def test_every_kernel_of_a_category_can_be_seen_with_its_rule(run: Run, trace_file: Path) -> None:
    assert "ncclDevKernel_Generic_4" in run("label", trace_file, "--kernels").out
    assert "ncclDevKernel_Generic_4" in run("label", trace_file, "--kernels", "--format", "csv").out
    result = json.loads(run("label", trace_file, "--json").out)
    (comm,) = [row for row in result["categories"] if row["id"] == "Comm"]
    assert comm["kernels"][0]["rule"]


def test_a_document_holds_every_unlabelled_kernel(run: Run, tmp_path: Path) -> None:
    names = [f"opaque_device_fn_{index}_q7" for index in range(25)]
    events = [kernel(name, 10 * index, 5) for index, name in enumerate(names)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    result = json.loads(run("label", path, "--json").out)
    assert {row["name"] for row in result["unlabelled"]} == set(names)


def test_a_spreadsheet_can_have_a_line_for_each_kernel(run: Run, trace_file: Path) -> None:
    rows = run("diff", trace_file, trace_file, "--format", "csv", "--kernels").out.splitlines()
    assert len(rows) == 4
    assert any("opaque_device_fn_q7_v3,both,1,30000" in row for row in rows)


def test_top_bounds_the_kernels_of_a_document(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    names = ("opaque_one", "opaque_two", "opaque_three")
    events = [kernel(name, 10 * at, 5) for at, name in enumerate(names)]
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    (row,) = json.loads(run("diff", path, path, "--json", "--top", "2").out)["categories"]
    assert (row["base"]["count"], len(row["kernels"])) == (3, 2)
    (row,) = json.loads(run("diff", path, path, "--json").out)["categories"]
    assert len(row["kernels"]) == 3
