"""The tables of the agent benchmark are those of today's code."""

from __future__ import annotations

import pytest

from benchmarks import agent as benchmark


def test_the_demos_table_in_the_docs_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    page = benchmark.PAGE.read_text(encoding="utf-8")
    assert benchmark.filled(page, {"demo": benchmark.demo_table()}) == page


def test_only_the_named_part_of_the_page_is_written() -> None:
    page = "<!-- agent: demo -->\nold\n<!-- end -->\n<!-- agent: sglang -->\nkept\n<!-- end -->\n"
    assert benchmark.filled(page, {"demo": "new \\1"}) == page.replace("old", "new \\1")


def test_nothing_is_recovered_wrongly_in_the_docs() -> None:
    page = benchmark.PAGE.read_text(encoding="utf-8").partition("<!-- agent: ablation -->")[2]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    wrong = [cell for row in rows[2:] for cell in (row[3], row[8]) if cell.strip()]
    assert set(wrong) <= {"0.0 %"}
