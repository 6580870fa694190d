"""Comparing stage by stage, rank by rank, stream by stream."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from agent.compare.table import compare_traces
from agent.core.kernels import ClippedTotal, KernelTable, Step
from agent.errors import UsageError
from agent.render.diff_text import diff_text
from agent.render.phrases import parts_rows
from tests.builders import rank_trace, signature, stats
from tests.unit.compare.runs import graph_rank, rank, run

KERNELS = {"A/a": (4, 400), "B/b": (2, 100)}


def timeline(steps: tuple[Step, ...]):
    """Four kernels of 10 ns at 0, 100, 200, 300; the streams alternate."""
    one, other = signature("A/a"), signature("B/b")
    table = KernelTable(
        (one, other),
        array("I", [0, 0, 1, 1]),
        array("q", [0, 100, 200, 300]),
        array("q", [10, 10, 10, 10]),
        array("i", [0] * 4),
        array("q", [7, 8, 7, 8]),
        array("q", [-1] * 4),
    )
    return rank_trace({one: stats(2, 20), other: stats(2, 20)}, kernels=table, steps=steps)


def parts(base, new, by):
    return {name: part.base.kernel_ns for name, part in compare_traces(base, new, by=by).parts}


def test_stage_files_are_compared_stage_by_stage():
    base = run(rank(KERNELS, stage="EXTEND"), rank({"A/a": (8, 80)}, stage="DECODE", label="1"))
    assert parts(base, base, "stage") == {"DECODE": 80, "EXTEND": 500}


def test_a_rank_whose_steps_are_all_of_one_stage_is_that_stage():
    one = run(rank(KERNELS, steps=(Step("step[DECODE bs=16]", 0, 10),)))
    assert parts(one, one, "stage") == {"DECODE": 500}


def test_mixed_steps_cut_a_rank_by_the_start_of_its_kernels():
    steps = (Step("step[EXTEND bs=1]", 0, 150), Step("step[DECODE bs=1]", 200, 250))
    one = run(timeline(steps))
    assert parts(one, one, "stage") == {"DECODE": 10, "EXTEND": 20, "between steps": 10}


def test_streams_are_cut_from_the_timeline():
    one = run(timeline(()))
    assert parts(one, one, "stream") == {"stream 7": 20, "stream 8": 20}


def test_ranks_stand_in_their_own_order():
    one = run(*[KERNELS] * 11)
    assert list(parts(one, one, "rank")) == [f"rank {number}" for number in range(11)]


def test_a_part_of_one_side_is_named_and_not_compared():
    diff = compare_traces(run(KERNELS, KERNELS), run(KERNELS), by="rank")
    assert [name for name, _ in diff.parts] == ["rank 0"]
    assert any("rank 1 is on side base only" in finding.message for finding in diff.findings)


@pytest.mark.parametrize(
    ("by", "said"),
    [("stage", "stages"), ("stream", "streams"), ("colour", "by")],
)
def test_parts_that_a_run_does_not_tell_are_an_error(by, said):
    with pytest.raises(UsageError, match=said) as raised:
        compare_traces(run(KERNELS), run(KERNELS), by=by)
    assert raised.value.code == "DF004"


def staged(stage: str):
    return run(timeline((Step(f"step[{stage} bs=1]", 0, 400),)))


def codes_of(findings) -> set[str]:
    return {finding.code for finding in findings}


def test_streams_are_no_more_conclusive_than_their_whole():
    """A decode window against a prefill one: each stream by itself looked comparable."""
    diff = compare_traces(staged("EXTEND"), staged("DECODE"), by="stream")
    assert not diff.comparable
    assert [part.comparable for _, part in diff.parts] == [False, False]
    assert [part.kernel_targets for _, part in diff.parts] == [(), ()]
    assert "no conclusion" in diff_text(diff).split("=== stream 7")[1]
    _, rows = parts_rows(diff)
    assert [row[-1] for row in rows] == ["not comparable", "not comparable"]


def test_stages_are_compared_where_the_whole_holds_others_too():
    one = rank(KERNELS, stage="DECODE", label="0 DECODE", rank=0)
    both = run(one, rank(KERNELS, stage="EXTEND", label="0 EXTEND", rank=0))
    diff = compare_traces(both, run(one), by="stage")
    assert not diff.comparable
    assert [(name, part.conclusive) for name, part in diff.parts] == [("DECODE", True)]


def test_streams_of_an_incomplete_capture_claim_nothing():
    """A stream has no graph launches of its own that could tell what is missing."""
    full = ("A/a", "B/b", "B/b")
    base, new = run(graph_rank(full, full)), run(graph_rank(full, ()))
    diff = compare_traces(base, new, by="stream")
    [(_, part)] = diff.parts
    assert (part.comparable, part.conclusive) == (diff.comparable, diff.conclusive) == (True, False)
    assert part.work.ratio is None
    assert part.ledger.savings == ()
    assert part.ledger.unclaimed


def test_streams_of_corrupt_durations_are_unreliable_too():
    corrupt = replace(timeline(()), clipped=ClippedTotal(1, 30))
    diff = compare_traces(run(timeline(())), run(corrupt), by="stream")
    assert [part.corrupt for _, part in diff.parts] == [True, True]
    assert [row[-1] for row in parts_rows(diff)[1]] == ["corrupt", "corrupt"]


@pytest.mark.parametrize(
    ("base", "new", "by"),
    [
        (staged("EXTEND"), staged("DECODE"), "stage"),
        (run(KERNELS, KERNELS), run(KERNELS), "rank"),
    ],
)
def test_a_comparison_by_parts_does_not_advise_to_compare_by_these_parts(base, new, by):
    advised = f"--by {by}"
    assert any(advised in finding.hint for finding in compare_traces(base, new).findings)
    findings = compare_traces(base, new, by=by).findings
    assert "DF102" in codes_of(findings) or "DF103" in codes_of(findings)
    assert not any(advised in finding.hint for finding in findings)
