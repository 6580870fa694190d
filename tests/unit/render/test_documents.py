"""JSON: the shape others build on, and its page in the docs."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from agent.render.diff_tables import HEAD
from agent.render.documents import SCHEMA, diff_document, label_document, to_json
from tests.builders import signature
from tests.unit.compare.runs import rules_for, run
from tests.unit.render.pairs import HOSTILE, hostile, incomplete, one_run, plain

PAGE = Path(__file__).parents[3] / "docs" / "json.md"
WRITE = os.environ.get("LABEL_AGENT_GOLDEN") == "write"


def test_a_run_has_the_promised_fields():
    document = label_document(one_run())
    assert document["schema"] == SCHEMA
    assert document["totals"] == {
        "kernel_ns": 500_000,
        "busy_ns": None,
        "span_ns": None,
        "kernels": 6,
        "clipped_ns": 500_000,
        "copies": {"count": 0, "time_ns": 0},
        "without_op_ns": 500_000,
    }
    assert document["categories"] == [
        {
            "id": "GEMM",
            "count": 4,
            "time_ns": 400_000,
            "kernels": [labelled_kernel("GEMM/a", "rule.GEMM", 4, 400_000)],
        },
        {
            "id": "Unlabelled",
            "count": 2,
            "time_ns": 100_000,
            "kernels": [labelled_kernel("Unlabelled/odd", None, 2, 100_000)],
        },
    ]
    assert document["coverage"] == {
        "validated": 0.0,
        "vendor": 0.8,
        "inferred": 0.0,
        "unlabelled": 0.2,
    }
    assert document["unlabelled"][0]["name"] == "Unlabelled/odd"
    assert set(document["ruleset"]) == {"name", "version", "digest"}
    assert document["warnings"] == []


def labelled_kernel(name: str, rule: str | None, count: int, time_ns: int) -> dict[str, object]:
    return {"name": name, "rule": rule, "count": count, "time_ns": time_ns, "ops": []}


def test_a_run_says_which_kernel_got_which_label():
    """One name with two ops is one entry; two ranks and folded categories still add up."""
    ranks = [
        {"GEMM/a": (4, 400), signature("MLA/b", op="aten::x"): (1, 10), "MLA/b": (2, 30)},
        {"GEMM/c": (1, 900), "MLA/b": (5, 60)},
    ]
    one = run(*ranks, rules=rules_for({"GEMM", "MLA"}, MLA="Others"))
    for rollup in (False, True):
        rows = label_document(one, rollup=rollup)["categories"]
        for row in rows:
            assert sum(kernel["count"] for kernel in row["kernels"]) == row["count"]
            assert sum(kernel["time_ns"] for kernel in row["kernels"]) == row["time_ns"]
        assert [kernel["name"] for kernel in rows[0]["kernels"]] == ["GEMM/c", "GEMM/a"]
        assert rows[1]["kernels"] == [
            {"name": "MLA/b", "rule": "rule.MLA", "count": 8, "time_ns": 100, "ops": ["aten::x"]}
        ]
    assert [len(row["kernels"]) for row in label_document(one, kernels=1)["categories"]] == [1, 1]


def test_a_comparison_has_the_promised_fields():
    document = diff_document(plain())
    rows = {row["id"]: row for row in document["categories"]}
    assert rows["GEMM"]["base"] == {"count": 400, "time_ns": 4_000_000}
    assert rows["GEMM"]["delta_ns"] == -360_000
    assert rows["CastFromFP8"]["status"] == "new"
    assert set(document["ledger"]) >= {"introduced", "costs", "savings", "net_ns"}
    work = document["work"]
    assert (work["equal"], work["ratio"], work["sign_flips"]) == (False, 0.9, False)
    assert (work["raw_delta_pct"], work["per_pass_delta_pct"]) == (-10.46875, -0.520833)
    assert {"totals", "coverage"} <= set(document["base"])
    assert document["targets"][0]["rules"][0]["evidence"][0]["lines"] == [7, 8]
    assert document["warnings"][0]["code"] == "DF120"


def test_an_incomplete_capture_claims_nothing():
    document = diff_document(incomplete())
    assert (document["conclusive"], document["new"]["complete"]) == (False, False)
    assert document["ledger"]["savings"] == []
    assert document["ledger"]["unclaimed"]


def test_the_same_comparison_is_the_same_bytes():
    assert to_json(diff_document(plain())) == to_json(diff_document(plain()))


def test_names_come_back_verbatim_and_the_file_is_ascii():
    text = to_json(diff_document(hostile()))
    assert text.isascii()
    names = {kernel["name"] for row in json.loads(text)["categories"] for kernel in row["kernels"]}
    assert {f"Unlabelled/{name}" for name in HOSTILE} <= names


@pytest.mark.parametrize(
    ("heading", "document"),
    [("label", label_document(one_run())), ("diff", diff_document(plain()))],
)
def test_the_page_in_the_docs_shows_a_real_document(heading, document):
    page = PAGE.read_text()
    pattern = re.compile(rf"(<!-- example {heading} -->\n```json\n)(.*?)(```)", re.DOTALL)
    found = pattern.search(page)
    assert found is not None
    if WRITE:
        PAGE.write_text(pattern.sub(lambda match: match[1] + to_json(document) + match[3], page))
        return
    assert json.loads(found[2]) == json.loads(to_json(document))


@pytest.mark.parametrize("document", [label_document(one_run()), diff_document(plain())])
def test_every_field_is_described_in_the_docs(document):
    page = PAGE.read_text()
    prose = page.split("<!-- example")[0]
    described = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]*)`", prose))))
    assert keys_of(document) - described == set()


def test_every_column_of_csv_is_described_in_the_docs():
    described = PAGE.read_text().split("## CSV")[1].split("<!-- example")[0]
    assert [column for column in HEAD if f"`{column}`" not in described] == []


@pytest.mark.parametrize("section", ["## `diff`", "## CSV"])
def test_a_difference_at_equal_work_is_not_described_as_that_of_one_pass(section):
    """The names are part of the interface; they sound like a time per pass."""
    described = PAGE.read_text().split(section)[1].split("\n## ")[0]
    assert "`per_pass_delta_ns`" in described
    assert "no time of one pass" in described


def keys_of(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for one in value.values() for key in keys_of(one)}
    if isinstance(value, list):
        return {key for one in value for key in keys_of(one)}
    return set()
