"""Lost replays, corrupt durations, and what may then not be claimed."""

from __future__ import annotations

import random

import pytest

from agent.compare.capture import examine_capture
from agent.compare.gates import judge_gates, parse_gate
from agent.compare.table import compare_traces
from agent.core.kernels import ClippedTotal, GraphReplays
from agent.core.proposals import Finding
from tests.unit.compare.runs import graph_rank, rank, rules_for, run

FULL = ("A/a", "B/b", "C/c", "C/c")
HEAD, PIECE, TAIL = ("E/embed", "A/a"), ("A/a", "B/b", "C/c", "A/a"), ("A/a", "B/b", "C/c")


@pytest.mark.parametrize(
    "launches",
    [
        pytest.param((FULL, FULL, FULL), id="even"),
        pytest.param((HEAD, PIECE, PIECE, PIECE, TAIL), id="pieces of one step, told by the head"),
        pytest.param((FULL, ("A/other", "B/b"), FULL), id="two batch sizes with other kernels"),
    ],
)
def test_launches_of_several_graphs_are_no_gap(launches):
    assert not examine_capture(run(graph_rank(*launches)).trace).gaps


@pytest.mark.parametrize(
    "launches",
    [
        pytest.param((FULL, FULL[:2], ()), id="a launch without kernels"),
        pytest.param((FULL, FULL, ()), id="only an empty launch"),
        pytest.param((FULL, FULL[:3], FULL), id="a launch that lost its last kernel"),
        pytest.param((FULL, ("A/a", "C/c"), FULL), id="a launch with holes"),
        pytest.param((HEAD, PIECE, PIECE, ()), id="several graphs, one launch empty"),
    ],
)
def test_a_launch_that_lost_kernels_is_a_gap(launches):
    assert examine_capture(run(graph_rank(*launches)).trace).gaps


def test_without_a_timeline_uneven_launches_are_a_gap():
    assert examine_capture(run(graph_rank(FULL, FULL[:2], table=False)).trace).gaps


def test_the_same_uneven_launches_on_both_sides_explain_each_other():
    one = run(graph_rank(FULL, FULL[:2]))
    assert compare_traces(one, one).conclusive


def test_no_saving_is_claimed_from_an_incomplete_side_and_the_sum_still_holds():
    diff = compare_traces(run(graph_rank(FULL, FULL, FULL)), run(graph_rank(FULL, FULL[:2], ())))
    assert diff.delta_ns == -6_000
    assert not diff.conclusive
    assert (diff.ledger.savings, diff.ledger.costs, diff.ledger.introduced) == ((), (), ())
    assert diff.ledger.net_ns == diff.delta_ns
    said = next(finding.message for finding in diff.findings if finding.code == "DF110")
    assert said.startswith("incomplete capture on side new")
    assert "4, 2, 0" in said
    assert "not trustworthy" in said


def test_launches_that_all_brought_nothing_are_a_gap():
    eager = rank({"A/a": (4, 400)}, replays=GraphReplays((0, 0)))
    diff = compare_traces(run({"A/a": (4, 400)}), run(eager))
    [said] = [finding.message for finding in diff.findings if finding.code == "DF110"]
    assert "2 launches brought none" in said
    assert not diff.conclusive


def test_no_cost_is_claimed_against_an_incomplete_base():
    diff = compare_traces(run(graph_rank(FULL, FULL[:2], ())), run(graph_rank(FULL, FULL, FULL)))
    assert not diff.ledger.costs
    assert diff.ledger.unclaimed


LAYERS = tuple(f"{letter}/k" for letter in "ABCDEFGHIJ" for _ in range(20))


def test_one_launch_that_lost_kernels_at_random_is_a_gap_against_the_other_side():
    """A third is gone, with no graph launch of the same side to tell it by."""
    chance = random.Random(7)
    kept = tuple(name for name in LAYERS if chance.random() > 1 / 3)
    diff = compare_traces(run(graph_rank(LAYERS)), run(graph_rank(kept)))
    assert not diff.conclusive
    assert not diff.ledger.savings
    [said] = [one.message for one in diff.findings if one.code == "DF110"]
    assert said.startswith("incomplete capture on side new")
    mirrored = compare_traces(run(graph_rank(kept)), run(graph_rank(LAYERS)))
    [said] = [one.message for one in mirrored.findings if one.code == "DF110"]
    assert said.startswith("incomplete capture on side base")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(LAYERS[::2], id="half as many layers"),
        pytest.param(tuple(name for name in LAYERS if name[0] > "D"), id="some kernels gone"),
        pytest.param((*LAYERS[:170], *LAYERS[:60:3]), id="some more, some less"),
        pytest.param((*LAYERS, *("X/new",) * 20), id="a new kernel"),
        pytest.param(LAYERS[30:], id="two kernels fewer"),
    ],
)
def test_a_changed_graph_is_no_gap(changed):
    diff = compare_traces(run(graph_rank(LAYERS)), run(graph_rank(changed)))
    assert "DF110" not in {one.code for one in diff.findings}


def test_corrupt_durations_carry_both_totals():
    corrupt = rank({"A/a": (6, 1_600_190_000)}, clipped=ClippedTotal(1, 1_599_850_000))
    diff = compare_traces(run({"A/a": (6, 340_000)}), run(corrupt))
    assert diff.new.capture.clipped_ns == 340_000
    assert diff.new.capture.corrupt
    said = next(finding.message for finding in diff.findings if finding.code == "DF112")
    assert "1600190000 ns as recorded, 340000 ns clipped" in said
    assert "unreliable" in said


def test_nothing_is_claimed_from_corrupt_durations():
    clipped = ClippedTotal(events=1, excess_ns=900)
    kernels = {"GEMM/g": (2, 1_000), "MLA/m": (2, 500)}
    rules = rules_for({"GEMM", "MLA"})
    base = run(rank(kernels), rules=rules)
    new = run(rank({**kernels, "GEMM/g": (2, 100)}, clipped=clipped), rules=rules)
    diff = compare_traces(base, new)
    assert (diff.comparable, diff.conclusive) == (True, False)
    assert (diff.ledger.savings, diff.kernel_targets) == ((), ())
    assert [entry.delta_ns for entry in diff.ledger.unclaimed] == [-900]
    [result] = judge_gates([parse_gate("total>1%", rules)], diff)
    assert result.failed
    assert "corrupt durations on side new" in result.message


def test_what_reading_found_is_passed_on_once_with_its_side():
    said = Finding("TR030", "1 event with a negative duration", "warning", "rank0.json")
    noisy = [rank({"A/a": (1, 9)}, label=str(n), findings=(said, JUDGED)) for n in range(3)]
    diff = compare_traces(run(*noisy), run(*[{"A/a": (1, 9)}] * 3))
    messages = [one.message for one in diff.findings if one.code.startswith("TR")]
    assert messages == ["side base: 1 event with a negative duration (3 files, rank0.json, ...)"]


JUDGED = Finding("TR050", "graph launches brought between 0 and 4 kernels", "warning")


def test_an_overrun_of_little_weight_leaves_the_headline():
    slight = rank({"A/a": (6, 1_000_000)}, clipped=ClippedTotal(1, 900))
    diff = compare_traces(run({"A/a": (6, 1_000_000)}), run(slight))
    assert "unreliable" not in next(f.message for f in diff.findings if f.code == "DF112")
