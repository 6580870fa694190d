"""Rows, totals and what stands first."""

from __future__ import annotations

import pytest

from agent.compare.table import compare_traces
from agent.core.kernels import Trace, TraceInfo
from agent.errors import UsageError
from tests.builders import signature
from tests.unit.compare.runs import label, rank, rules_for, run

BASE = {"GEMM/a": (4, 400), "GEMM/b": (2, 100), "MLA/c": (2, 90), "Unlabelled/x": (1, 7)}
NEW = {"GEMM/a": (4, 440), "GEMM/d": (2, 80), "CastFromFP8/e": (2, 30), "Unlabelled/x": (1, 7)}


@pytest.fixture
def diff():
    return compare_traces(run(BASE), run(NEW))


def test_rows_hold_both_sides_and_their_status(diff):
    rows = {
        row.category: (row.base.time_ns, row.new.time_ns, row.status) for row in diff.categories
    }
    assert rows == {
        "GEMM": (500, 520, "both"),
        "MLA": (90, 0, "gone"),
        "CastFromFP8": (0, 30, "new"),
        "Unlabelled": (7, 7, "both"),
    }


def test_rows_stand_by_time_over_both_sides(diff):
    assert [row.category for row in diff.categories] == ["GEMM", "MLA", "CastFromFP8", "Unlabelled"]


def test_kernels_are_joined_by_name_inside_their_category(diff):
    kernels = {kernel.name: kernel.status for kernel in diff.categories[0].kernels}
    assert kernels == {"GEMM/a": "both", "GEMM/b": "gone", "GEMM/d": "new"}


def test_the_residual_is_zero_and_the_ledger_is_the_difference(diff):
    assert diff.residual_ns == 0
    assert diff.ledger.net_ns == diff.delta_ns == 557 - 597
    assert diff.ledger.introduced_ns == 30
    assert diff.ledger.existing_ns == 20 - 90


def test_the_same_name_in_two_categories_makes_two_rows():
    """One ATen kernel is a cast where the dtypes say so, and elementwise elsewhere."""
    cast = signature("CastFromFP8/k", op="aten::copy_")
    one = run({"Elementwise/k": (1, 5), cast: (1, 6)})
    assert {row.category for row in compare_traces(one, one).categories} == {
        "CastFromFP8",
        "Elementwise",
    }


def test_a_run_compared_with_itself_differs_in_nothing():
    one = run(BASE, BASE)
    diff = compare_traces(one, one)
    assert diff.empty
    assert diff.delta_ns == 0
    assert not diff.ledger.entries
    assert not diff.targets
    assert not diff.aliases
    assert not diff.replacements
    assert not diff.findings


def test_rollup_folds_rows_and_loses_nothing():
    rules = rules_for({"GEMM", "MLA", "CastFromFP8"}, MLA="Others")
    diff = compare_traces(run(BASE, rules=rules), run(NEW, rules=rules), rollup=True)
    others = next(row for row in diff.categories if row.category == "Others")
    assert (others.base.time_ns, others.new.time_ns) == (97, 7)
    assert diff.residual_ns == 0


def test_copies_stand_beside_the_kernels_and_in_no_sum():
    copy = signature("Memcpy DtoD", work="memcpy")
    diff = compare_traces(run(BASE), run({**BASE, copy: (3, 999)}))
    assert diff.delta_ns == 0
    assert diff.new.copies.time_ns == 999
    assert diff.residual_ns == 0
    assert "Memcpy DtoD" not in {row.category for row in diff.categories}


def test_two_rule_sets_cannot_be_compared():
    other = rules_for({"GEMM", "MLA"})
    object.__setattr__(other, "digest", "1" * 64)
    with pytest.raises(UsageError, match="different rules") as raised:
        compare_traces(run(BASE), run(BASE, rules=other))
    assert raised.value.code == "DF001"


def test_a_salvaged_side_needs_leave_and_then_claims_nothing():
    damaged = run(rank(NEW, info=TraceInfo("torn.json", "kineto", complete=False)))
    with pytest.raises(UsageError, match="torn") as raised:
        compare_traces(run(BASE), damaged)
    assert raised.value.code == "DF002"
    diff = compare_traces(run(BASE), damaged, allow_incomplete=True)
    assert not diff.conclusive
    assert not diff.ledger.savings
    assert diff.ledger.net_ns == diff.delta_ns


def test_a_run_with_a_lost_file_is_incomplete():
    lost = Trace("run", run(NEW).trace.ranks, lost=("TP-2.json.gz",))
    diff = compare_traces(run(BASE), label(lost), allow_incomplete=True)
    [said] = [finding.message for finding in diff.findings if finding.code == "DF111"]
    assert "TP-2.json.gz" in said


def test_two_empty_runs_compare():
    diff = compare_traces(run({}), run({}))
    assert diff.empty
    assert diff.residual_ns == 0


def test_unlabelled_kernels_that_moved_are_said_to_hide_costs():
    diff = compare_traces(
        run({"GEMM/a": (1, 100)}), run({"GEMM/a": (1, 101), "Unlabelled/x": (1, 50)})
    )
    [finding] = [finding for finding in diff.findings if finding.code == "DF130"]
    assert "98 %" in finding.message


def test_the_difference_is_a_table_of_kernels(diff):
    columns = diff.columns()
    assert len({len(values) for values in columns.values()}) == 1
    assert sum(columns["delta_ns"]) == diff.delta_ns


def test_a_difference_and_a_run_are_printed_in_a_line(diff):
    """Their values are megabytes of kernels."""
    assert repr(diff) == "<TraceDiff run -> run: -40 ns, rules test@1>"
    assert repr(run(BASE)) == "<LabelledTrace run: 9 kernels, 597 ns, rules test@1>"
    hostile = run({"A/a": (1, 2)}, name="\x1b[2J\nrun")
    assert repr(hostile) == r"<LabelledTrace \x1b[2J\x0arun: 1 kernel, 2 ns, rules test@1>"
