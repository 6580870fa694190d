"""Whole reports, compared byte for byte; `make golden` rewrites them and the diff is reviewed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.compare.gates import judge_gates, parse_gate
from agent.render.diff_markdown import diff_markdown
from agent.render.diff_tables import diff_csv, diff_github
from agent.render.diff_text import diff_text
from agent.render.label_report import label_csv, label_markdown, label_text
from agent.render.svg import waterfall_svg
from tests.unit.render.pairs import by_rank, hostile, incomplete, one_run, plain

FOLDER = Path(__file__).parents[2] / "golden" / "reports"
WRITE = os.environ.get("LABEL_AGENT_GOLDEN") == "write"


def annotations() -> str:
    diff = plain()
    gates = [parse_gate(one, diff.ruleset) for one in ("total>0%", "new-category", "GEMM>1%")]
    return diff_github(diff, judge_gates(gates, diff))


REPORTS = {
    "unequal-work.txt": lambda: diff_text(plain()),
    "unequal-work-wide.txt": lambda: diff_text(plain(), width=132),
    "unequal-work.md": lambda: diff_markdown(plain()),
    "unequal-work.csv": lambda: diff_csv(plain(), kernels=True),
    "unequal-work.svg": lambda: waterfall_svg(plain()),
    "annotations.txt": annotations,
    "by-rank.txt": lambda: diff_text(by_rank()),
    "by-rank.md": lambda: diff_markdown(by_rank()),
    "incomplete.txt": lambda: diff_text(incomplete()),
    "hostile.txt": lambda: diff_text(hostile(), top=20),
    "hostile.md": lambda: diff_markdown(hostile(), top=20),
    "run.txt": lambda: label_text(one_run()),
    "run.md": lambda: label_markdown(one_run()),
    "run.csv": lambda: label_csv(one_run()),
}


@pytest.mark.parametrize("name", REPORTS)
def test_golden_report(name):
    path, report = FOLDER / name, REPORTS[name]()
    if WRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(report, encoding="utf-8")
    assert report == path.read_text(encoding="utf-8")


def test_each_golden_report_is_of_a_report():
    assert {path.name for path in FOLDER.iterdir()} == set(REPORTS)
