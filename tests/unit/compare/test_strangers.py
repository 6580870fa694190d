"""Files in one folder that are not ranks of one run."""

from __future__ import annotations

import pytest

from agent.compare.strangers import stranger_findings
from agent.compare.table import compare_traces
from agent.core.kernels import TraceInfo
from agent.render.label_report import label_text
from tests.unit.compare.runs import rank, run

DECODE = {f"GEMM/d{n}": (10, 1_000) for n in range(9)} | {"Elementwise/copy": (10, 100)}
IMAGE = {f"Attention/i{n}": (10, 1_000) for n in range(9)} | {"Elementwise/copy": (10, 100)}


def files(*tables, **fields):
    """A run of files named a.json, b.json, ..."""
    return run(
        *(
            rank(table, label=str(n), info=TraceInfo(f"{'abcdef'[n]}.json", "kineto"), **fields)
            for n, table in enumerate(tables)
        )
    )


def test_files_of_two_runs_in_one_folder_are_said_not_to_look_like_ranks():
    [finding] = stranger_findings(files(DECODE, IMAGE, DECODE, IMAGE).trace)
    assert (finding.code, finding.severity) == ("DF107", "warning")
    assert finding.message == (
        "these files do not look like ranks of one run: a.json and b.json share 1 of 19 kernel"
        " names, which hold 1.1 % of their time"
    )


def test_files_of_gpus_of_two_vendors_are_no_run():
    ranks = [
        rank(DECODE, label=vendor, info=TraceInfo(f"{vendor}.json", "kineto", vendor=vendor))
        for vendor in ("rocm", "cuda", "unknown", "rocm")
    ]
    [finding] = stranger_findings(run(*ranks).trace)
    assert finding.code == "DF107"
    assert "cuda.json is of cuda, rocm.json is of rocm" in finding.message
    assert not stranger_findings(run(*ranks[2:]).trace)


def test_it_is_said_in_both_reports_and_of_a_side():
    text = " ".join(label_text(files(DECODE, IMAGE)).split())
    assert "! DF107 these files do not look like ranks of one run" in text
    found = compare_traces(files(DECODE, DECODE), files(DECODE, IMAGE)).findings
    assert [one.message[:10] for one in found if one.code == "DF107"] == ["side new: "]


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param([DECODE], id="one file"),
        pytest.param([DECODE, DECODE], id="the same kernels"),
        pytest.param(
            [DECODE, {**DECODE, "GEMM/head": (1, 90_000)}], id="a last stage with a large head"
        ),
        pytest.param([DECODE, {"Elementwise/copy": (2, 20)}], id="a rank that hardly works"),
        pytest.param([DECODE, DECODE | IMAGE, IMAGE], id="one that runs both joins them"),
        pytest.param([DECODE, {}], id="a file without kernels"),
    ],
)
def test_ranks_of_one_run_are_let_be(tables):
    assert stranger_findings(files(*tables).trace) == ()


def test_stages_run_other_kernels_and_are_not_strangers():
    ranks = [
        rank(table, label=f"0 {stage}", rank=0, stage=stage)
        for table, stage in ((DECODE, "DECODE"), (IMAGE, "EXTEND"))
    ]
    assert stranger_findings(run(*ranks).trace) == ()


def test_a_third_group_of_files_is_counted():
    other = {f"MLA/m{n}": (1, 50) for n in range(5)}
    [finding] = stranger_findings(files(DECODE, IMAGE, other).trace)
    assert finding.message.endswith("; 3 groups of files in all")
