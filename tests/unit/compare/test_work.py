"""How much work each side did, and what that does to the difference."""

from __future__ import annotations

from fractions import Fraction

from agent.compare.table import compare_traces
from agent.core.kernels import Step
from tests.unit.compare.runs import rank, run

SHARED_ROWS = {"GEMM/a": (20, 2_000_000), "MoEGEMM/b": (10, 4_000_000)}


def steps(number: int) -> tuple[Step, ...]:
    return tuple(Step(f"ProfilerStep#{n}", n * 10, n * 10 + 9) for n in range(number))


def test_equal_work_has_one_difference():
    diff = compare_traces(run(SHARED_ROWS), run({**SHARED_ROWS, "GEMM/a": (20, 2_200_000)}))
    assert diff.work.equal
    assert diff.work.total.raw == diff.work.total.per_pass == Fraction(2, 60)
    assert diff.ledger_per_pass is None
    assert not [finding for finding in diff.findings if finding.code == "DF120"]


def test_a_shorter_window_that_looks_faster_is_slower_per_pass():
    new = {"GEMM/a": (18, 1_818_000), "MoEGEMM/b": (9, 3_636_000), "CastFromFP8/c": (9, 270_000)}
    diff = compare_traces(run(SHARED_ROWS), run(new))
    assert diff.work.ratio == Fraction(9, 10)
    assert diff.work.total.raw == Fraction(-276, 6_000)
    assert diff.work.total.per_pass == Fraction(6, 100)
    assert diff.work.existing.per_pass == Fraction(1, 100)
    assert diff.work.total.flips
    assert diff.work.existing.flips
    [said] = [finding.message for finding in diff.findings if finding.code == "DF120"]
    assert "unequal work: every shared category has 0.9x the calls" in said
    assert "the total and the existing categories have the opposite sign" in said


def test_annotated_steps_that_the_calls_bear_out_are_the_passes():
    base = run(rank(SHARED_ROWS, steps=steps(10)))
    new = run(rank({"GEMM/a": (18, 1), "MoEGEMM/b": (9, 1)}, steps=steps(9)))
    work = compare_traces(base, new).work
    assert (work.source, work.passes, work.ratio) == ("steps", (10, 9), Fraction(9, 10))


def test_steps_that_contradict_the_calls_are_said_and_not_used():
    base = run(rank(SHARED_ROWS, steps=steps(3)))
    new = run(rank({"GEMM/a": (18, 1), "MoEGEMM/b": (9, 1)}, steps=steps(3)))
    diff = compare_traces(base, new)
    assert (diff.work.source, diff.work.ratio) == ("calls", Fraction(9, 10))
    assert "DF121" in {finding.code for finding in diff.findings}


def test_steps_that_two_categories_follow_decide_where_the_calls_have_no_common_ratio():
    base = dict.fromkeys(("A/a", "B/b", "C/c", "D/d", "E/e", "F/f", "G/g"), (100, 1))
    new = {name: (count, 1) for name, count in zip(base, (80, 80, 70, 60, 50, 30, 20), strict=True)}
    work = compare_traces(run(rank(base, steps=steps(5))), run(rank(new, steps=steps(4)))).work
    assert (work.source, work.ratio) == ("steps", Fraction(4, 5))


def test_other_models_with_as_many_steps_are_not_comparable():
    base = run(rank({"A/a": (10, 1), "B/b": (10, 1), "C/c": (10, 1)}, steps=steps(1)))
    new = run(rank({"A/d": (9, 1), "B/e": (7, 1), "C/f": (4, 1)}, steps=steps(1)))
    diff = compare_traces(base, new)
    assert diff.work.ratio is None
    assert not diff.comparable
    assert "DF105" in {finding.code for finding in diff.findings}


def test_two_heavy_categories_of_many_are_no_vote():
    base = {f"{letter}/k": (100, 1) for letter in "ABCDEFGH"} | {"X/k": (100, 99), "Y/k": (100, 99)}
    new = {f"{letter}/k": (60 + 4 * at, 1) for at, letter in enumerate("ABCDEFGH")}
    diff = compare_traces(run(base), run({**new, "X/k": (70, 99), "Y/k": (70, 99)}))
    assert not diff.comparable


def test_kernels_tell_the_ratio_where_categories_do_not():
    """Both categories got one more kernel; the four others run as before."""
    base = {"A/1": (10, 100), "A/2": (10, 100), "B/1": (20, 100), "B/2": (30, 100)}
    new = {**base, "A/3": (7, 1), "B/3": (5, 1)}
    work = compare_traces(run(base), run(new)).work
    assert (work.ratio, work.basis) == (1, "kernels")
    assert work.consensus.agreeing == ("A/1", "A/2", "B/1", "B/2")


def test_two_kernels_alone_tell_no_ratio():
    base = {"A/1": (10, 100), "B/1": (20, 100)}
    new = {**base, "A/3": (7, 1), "B/3": (5, 1)}
    assert compare_traces(run(base), run(new)).work.ratio is None


def test_ranks_are_not_passes():
    """Twice the ranks are twice the calls: the ranks differ, and that is what is said first."""
    diff = compare_traces(run(SHARED_ROWS), run(SHARED_ROWS, SHARED_ROWS))
    assert diff.findings[0].code == "DF102"
    assert not diff.comparable


def test_work_within_a_twentieth_of_a_per_cent_is_equal():
    base, new = {"A/a": (10_000, 1), "B/b": (20_000, 1)}, {"A/a": (9_998, 1), "B/b": (19_997, 1)}
    assert compare_traces(run(base), run(new)).work.equal
