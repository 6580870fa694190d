"""Reports as text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from agent.compare.parts import own_findings
from agent.compare.table import TraceDiff, compare_traces
from agent.core.kernels import ClippedTotal
from agent.render.columns import Column, cell_width, cut_middle, name_lines, table, wrapped
from agent.render.diff_markdown import diff_markdown
from agent.render.diff_tables import diff_github
from agent.render.diff_text import diff_text
from agent.render.documents import diff_document
from agent.render.html import diff_html
from agent.render.label_report import label_markdown, label_text
from agent.render.phrases import parts_rows
from tests.builders import evidence
from tests.unit.compare.runs import graph_rank, rank, rules_for, run
from tests.unit.render.pairs import HOSTILE, by_rank, hostile, incomplete, one_run, plain, wide


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("make", [plain, hostile, incomplete, wide, by_rank])
def test_a_comparison_fits_any_width(make):
    diff = make()
    for width in (40, 47, 59, 60, 61, 72, 80, 100, 132, 200):
        assert max(map(cell_width, diff_text(diff, width=width).split("\n"))) <= width


def test_a_run_fits_any_width():
    for width in range(40, 201, 20):
        text = label_text(one_run(), width=width, kernels=3)
        assert max(map(cell_width, text.split("\n"))) <= width


def test_a_narrow_terminal_keeps_what_changed_and_leaves_the_rest_out():
    text = diff_text(plain(), width=40)
    assert "category     new ms  diff ms  per pass" in text
    assert "residual 0 ns" in text


@pytest.mark.parametrize("base", [{}, {"A/a": (3, 0)}])
def test_no_change_is_given_in_per_cent_of_nothing(base):
    rules = rules_for({"A"})
    diff = compare_traces(run(base, rules=rules), run({"A/a": (3, 100)}, rules=rules))
    text = words(diff_text(diff))
    assert "+0.000100 ms on a base without time" in text


def test_a_wider_terminal_shows_raw_and_per_pass_changes():
    assert "diff %" not in diff_text(plain(), width=80)
    assert "diff %" in diff_text(plain(), width=132)


def test_what_must_be_said_first_stands_first():
    assert diff_text(plain()).startswith("! DF120 unequal work")
    assert diff_text(incomplete()).startswith("! DF110 incomplete capture on side new")


def test_a_comparison_says_its_result_where_to_look_and_its_rules():
    text = words(diff_text(plain()))
    assert "result: kernel time per pass -0.52 % (raw sums -0.670 ms, -10.47 %)" in text
    assert "residual 0 ns" in text
    assert "CastFromFP8: at most 0.540 ms (9.42 %), introduced category" in text
    assert "sglang@21c4fc6334d1 python/backend.py:7-8, when self.dtype == fp8" in text
    pinned = "as pinned in the rules: sglang@21c4fc6334d1; not checked against what these runs"
    assert text.count(pinned) == 1
    assert (
        "-0.360 ms, GEMM, 400 -> 360 calls, per call 10.00 us -> 10.11 us, rule rule.GEMM" in text
    )
    assert "rules test@1, digest 000000000000" in text
    assert "suggestion: in MLA" in text


def test_an_incomplete_capture_draws_no_conclusion():
    text = words(diff_text(incomplete()))
    assert "result: no conclusion: the capture is incomplete" in text
    assert "differences, not claimed" in text
    assert "impact, not claimed" in text
    assert "savings" not in text


def test_equal_runs_have_nothing_to_list():
    one = run({"GEMM/a": (1, 10)})

    text = diff_text(compare_traces(one, one))
    assert "result: no difference" in text
    assert "ledger: nothing changed" in text


def test_no_kernels_are_listed_with_top_0():
    assert "largest differences" not in diff_text(plain(), top=0)


@pytest.mark.parametrize(
    ("sort", "first"),
    [("time", "GEMM"), ("delta", "MLA"), ("calls", "RMSNorm"), ("name", "CastFromFP8")],
)
def test_categories_stand_in_the_order_asked_for(sort, first):
    lines = diff_text(plain(), sort=sort).split("\n")
    head = next(index for index, line in enumerate(lines) if line.startswith("category"))
    assert lines[head + 1].split()[0] == first


def test_nothing_that_moves_a_cursor_or_reorders_text_gets_through():
    text = diff_text(hostile(), top=100)
    assert not {char for char in text if not (char.isprintable() or char == "\n")}
    for name in HOSTILE[:6]:
        assert name.replace(" ", "").replace("/", "") in text.replace("\n    ", "").replace(" ", "")


def test_a_run_shows_its_sums_coverage_and_unlabelled_kernels():
    text = words(label_text(one_run()))
    assert "decode.json: 6 kernels · sum 0.500000 ms" in text
    assert "GEMM 4 0.400000 80.00 %" in text
    assert (
        "coverage: validated 0.00 % · vendor 80.00 % · inferred 0.00 % · unlabelled 20.00 %" in text
    )
    assert "20.00 %, 0.100000 ms, 2 calls Unlabelled/odd" in text


def timed(busy_ns: int, span_ns: int, **fields):
    return rank({"GEMM/a": (4, 400_000)}, busy_ns=busy_ns, span_ns=span_ns, **fields)


def test_busy_over_several_ranks_is_not_set_against_the_span_of_one():
    """Three ranks of 98 ms busy in 102 ms are not one of 294 ms in 102 ms."""
    ranks = [timed(390_000, 450_000 + n, label=str(n), rank=n) for n in range(3)]
    one, text = run(*ranks), "1.200 ms · busy over 3 ranks 1.170 ms · span of the longest rank"
    for report in (label_text(one), diff_text(compare_traces(one, one)), label_markdown(one)):
        assert f"sum over 3 ranks {text} 0.450 ms" in words(report)
    assert "span is one rank's and not to be set against either" in words(label_text(one))


def test_several_devices_of_one_rank_are_said_to_be_added_up():
    assert "busy over all devices 0.700000 ms · span 0.400000 ms" in words(
        label_text(run(timed(700_000, 400_000)))
    )


def test_the_stages_of_one_rank_are_not_called_ranks():
    stages = [
        timed(1, 2, label=f"0 {stage}", rank=0, stage=stage) for stage in ("DECODE", "EXTEND")
    ]
    report = words(label_text(run(*stages)))
    assert "busy over 2 parts of 1 rank" in report
    assert "2 parts of 1 rank, 0.400000 ms" in report


def test_figures_a_run_does_not_have_are_not_explained():
    assert "busy" not in label_text(one_run())
    report = words(label_text(run(timed(390_000, 450_000))))
    assert "sum 0.400000 ms · busy 0.390000 ms · span 0.450000 ms" in report
    assert (
        "the table adds up to the sum; busy is the union of all kernels, without copies" in report
    )
    assert "ranks" not in report


def test_copies_are_not_said_to_be_in_busy_time():
    """Decision 0001: busy time is of kernels, as the reader measures it."""
    busy = replace(one_run().trace.ranks[0], busy_ns=5, span_ns=9)
    for report in (label_text(run(busy)), diff_html(compare_traces(run(busy), run(busy)))):
        assert "copies included" not in words(report)
        assert "union of " in words(report)


def test_a_run_lists_kernels_with_their_rules_when_asked():
    assert "rule rule.GEMM" not in label_text(one_run())
    text = words(label_text(one_run(), kernels=1))
    assert "GEMM 0.400000 ms, 4 calls, rule rule.GEMM GEMM/a" in text
    assert "Unlabelled 0.100000 ms, 2 calls, no rule Unlabelled/odd" in text
    two = words(label_text(run({"GEMM/a": (1, 9), "GEMM/b": (1, 8)}), kernels=1))
    assert "GEMM, 1 more not shown" in two


def test_a_name_longer_than_three_lines_is_cut_in_its_middle():
    lines = name_lines("a" * 500 + "tail", 60)
    assert len(lines) == 3
    assert "…" in "".join(lines)
    assert lines[-1].endswith("tail")


def test_wide_letters_count_two_cells():
    assert cell_width("核a") == 3
    assert cell_width(cut_middle("核" * 40, 11)) <= 11


def test_columns_align_and_only_the_flexible_one_is_cut():
    columns = [Column("name", "left", flexible=True), Column("n")]
    assert table(columns, [["x" * 40, "1,234"], ["y", "5"]], 20) == [
        "name               n",
        "xxxxxx…xxxxxx  1,234",
        "y                  5",
    ]


def test_a_number_and_its_unit_stay_on_one_line():
    assert not any(line.strip() == "%" for line in wrapped("x " * 30 + "13.88 %", 66))


def test_a_category_with_more_and_shorter_calls_shows_both_effects_and_the_net():
    base = {"Elementwise/e": (100, 1_000_000), "GEMM/g": (50, 3_000_000), "MLA/m": (9, 1_000_000)}
    new = {**base, "Elementwise/e": (300, 1_500_000)}
    report = words(diff_text(compare_traces(run(base), run(new))))
    assert "Elementwise 20.00 % -50.00 % -10.00 % +20.00 % +10.00 %" in report
    assert "calls changed: Elementwise 100 -> 300 (3.00x)" in report
    assert (
        "+10.00 % of the total = -10.00 % (-50.00 % per call x 20.00 % share) + 20.00 %"
        " (100 -> 300 calls), Elementwise" in report
    )


def prefill_beside() -> TraceDiff:
    """41 decode passes became 40; 16 calls of prefill attention stayed, 1.03 % longer each."""
    passes = {"GEMM/g": 41 * 32, "MLA/m": 41 * 16, "RoPE/r": 41 * 24}
    base = {name: (calls, 1_000 * calls) for name, calls in passes.items()}
    new = {name: (calls // 41 * 40, calls // 41 * 40_000) for name, calls in passes.items()}
    attention = {"Attention/a": (16, 4_949_000)}, {"Attention/a": (16, 5_000_000)}
    return compare_traces(run({**base, **attention[0]}), run({**new, **attention[1]}))


def test_a_category_that_does_not_follow_the_work_is_not_read_per_pass_unmarked():
    """16 calls stayed 16 calls: +3.56 % per pass is the work ratio, not the kernel."""
    diff = prefill_beside()
    said = "† calls do not follow the work ratio; read per call: Attention +1.03 %"
    for report in (diff_text(diff), diff_markdown(diff), diff_html(diff)):
        assert said in words(report)
        assert report.count("Attention †") == 1
        assert report.count("†") == 2
    follows = {row["id"]: row["follows_work"] for row in diff_document(diff)["categories"]}
    assert follows == {"GEMM": True, "MLA": True, "RoPE": True, "Attention": False}


def test_calls_that_equal_work_does_not_explain_are_marked_in_json_alone():
    """There is no figure per pass to be misread."""
    base = {"A/a": (100, 900), "B/b": (50, 90), "C/c": (70, 9)}
    diff = compare_traces(run(base), run({**base, "C/c": (7, 9), "D/d": (1, 1)}))
    assert "†" not in diff_text(diff)
    follows = {row["id"]: row["follows_work"] for row in diff_document(diff)["categories"]}
    assert follows == {"A": True, "B": True, "C": False, "D": None}


def test_a_faster_kernel_with_a_tiny_share_reads_as_a_tiny_effect():
    """34 % faster at 0.02 % of the time reads as 0.007 %, with nothing from calls."""
    base = {"MLA/k": (10, 2_000), "GEMM/g": (10, 9_998_000)}
    report = words(diff_text(compare_traces(run(base), run({**base, "MLA/k": (10, 1_320)}))))
    assert "MLA 0.02 % -34.00 % -0.0068 % 0.00 % -0.0068 %" in report
    assert "-0.0068 % of the total = -34.00 % per call x 0.02 % share, MLA" in report
    assert "calls changed" not in report


def regression() -> TraceDiff:
    """A kernel put in place of another, one called more often, one that is new beside them."""
    pinned = evidence(commit="21c4fc6334d1" + "0" * 28, path="python/gemm.py", lines=(9, 9))
    rules = rules_for({"GEMM", "MLA", "RMSNorm"})
    rules = replace(rules, rules=(replace(rules.rules[0], evidence=(pinned,)), *rules.rules[1:]))
    base = {"GEMM/a": (100, 4_000_000), "GEMM/old": (50, 1_000_000), "MLA/m": (10, 500_000)}
    new = {"GEMM/a": (100, 4_000_000), "GEMM/new": (50, 3_000_000), "MLA/m": (90, 900_000)}
    beside = {"RMSNorm/r": (10, 100_000)}
    return compare_traces(run({**base, **beside}, rules=rules), run({**new, **beside}, rules=rules))


def test_a_regression_inside_existing_categories_names_kernels_rules_and_sources():
    for report in (diff_text(regression()), diff_markdown(regression())):
        text = words(report.replace("`", "").replace("**", "").replace("&gt;", ">"))
        assert "GEMM: at most 3.000 ms (37.50 %), introduced kernel, 50 calls, per call" in text
        assert "+2.000 ms over the kernel whose place it may have taken (suggestion)" in text
        assert "sglang@21c4fc6334d1 python/gemm.py:9" in text
        assert "MLA: at most 0.400 ms (5.00 %), grown kernel, 10 -> 90 calls" in text
        assert "rule rule.MLA (vendor)" in text
        assert "no source lines: its rule cites none" in text
        assert "not checked against what these runs executed" in text


def test_no_kernels_are_listed_as_costs_with_top_0():
    assert "introduced kernel" not in diff_text(regression(), top=0)


def seven_grown() -> TraceDiff:
    """Seven kernels of one category of which each takes 1 ms more, or up to 7 ms."""
    kernels = {f"GEMM/k{number}": (10, 10_000_000) for number in range(1, 8)}
    grown = {f"GEMM/k{number}": (10, (10 + number) * 1_000_000) for number in range(1, 8)}
    beside = {"MLA/m": (10, 9), "RoPE/r": (10, 9)}
    return compare_traces(run({**kernels, **beside}), run({**grown, **beside}))


def test_kernels_that_cost_more_are_not_left_out_in_silence():
    diff = seven_grown()
    for report, top in ((diff_text, 3), (diff_markdown, 5), (diff_github, 5)):
        shown = report(diff, top=top)
        left = sum(range(1, 8 - top))
        said = f"{7 - top} more kernels cost +{left}.000 ms (--top 7 shows every one)"
        assert shown.count(", grown kernel, ") == top
        assert said in words(shown)
        whole = report(diff, top=7)
        assert whole.count(", grown kernel, ") == 7
        assert "more kernel" not in whole


def test_one_name_one_call_and_one_kernel_are_not_in_the_plural():
    base = {"A/(anonymous namespace)::k": (1, 900), "B/b": (1, 90)}
    new = {"A/<unnamed>::k": (1, 950), "B/b": (1, 90), "B/c": (1, 30)}
    diff = compare_traces(run(base), run(new))
    for report in (diff_text(diff), diff_markdown(diff), diff_html(diff), label_text(run(base))):
        assert re.search(r"(?<![\d,])1 (?:names|calls|kernels)\b", words(report)) is None
    assert "1 name matched after normalisation" in words(diff_text(diff))


def test_a_spread_of_repeated_runs_says_what_it_is_over():
    sides = [[run({"A/a": (1, at + time)}) for time in range(4)] for at in (100, 200)]
    (base, *bases), (new, *news) = sides
    said = words(diff_text(compare_traces(base, new, repeats=(bases, news))))
    assert "noise: spread over runs, 4 against 4: 1 of 1 differences stand outside it" in said


def test_a_report_without_source_lines_says_nothing_of_them():
    one = run({"GEMM/a": (1, 10)})
    assert "as pinned" not in diff_text(compare_traces(one, one))


def test_a_run_says_what_to_do_about_what_it_found():
    full = ("GEMM/a", "MLA/b")
    text = words(label_text(run(graph_rank(full, ()))))
    assert "! DF110 incomplete capture on this run" in text
    assert "hint: capture again, with graphs off or another profiler version" in text


def test_what_the_parts_share_is_said_once():
    report = diff_text(by_rank())
    whole, parts = report.split("=== part by part")
    for said in ("rules ", "coverage: ", "ledger", "where to look", "impact", "noise: "):
        assert said in whole
        assert said not in parts
    assert parts.count("category") == 8
    assert max(map(cell_width, report.splitlines())) <= 80


def test_the_part_that_differs_says_in_what():
    """Comm is a fifth of a rank's time: 900 us became 1,500 in one rank, 890 in the others."""
    _, *parts = diff_text(by_rank()).split("=== rank ")
    assert "Comm +18.75 % (+2.07 %), Cast +2.19 % (+0.27 %)" in " ".join(parts[3].split())
    assert [part for part in parts if "those of the whole, within" in part] == []
    assert all(
        "Comm -0.31 % (+2.07 %)" in " ".join(part.split()) for part in parts if part[0] != "3"
    )


def test_a_part_repeats_no_finding_of_the_whole_and_keeps_its_own():
    whole = compare_traces(
        run({"A/a": (10, 900), "B/b": (20, 90)}, {"A/a": (10, 900), "B/b": (20, 90)}),
        run({"A/a": (10, 900), "B/b": (20, 90)}, {"A/a": (30, 900), "B/b": (60, 90)}),
        by="rank",
    )
    parts = dict(whole.parts)
    assert [one.code for one in own_findings(parts["rank 0"], whole)] == []
    assert "DF120" in {one.code for one in own_findings(parts["rank 1"], whole)}


def test_a_part_that_allows_no_claim_says_why_in_a_word():
    full, good = ("A/a", "B/b", "B/b"), {"A/a": (2, 2_000), "B/b": (4, 4_000)}
    corrupt = rank({"A/a": (2, 90_000), "B/b": (4, 4_000)}, clipped=ClippedTotal(1, 80_000))
    base = (graph_rank(full, full), rank(good), rank(good))
    new = (graph_rank(full, ()), corrupt, rank({**good, "A/a": (2, 2_300)}))
    numbered = [
        [replace(one, label=str(number), rank=number) for number, one in enumerate(side)]
        for side in (base, new)
    ]
    diff = compare_traces(*(run(*side) for side in numbered), by="rank")
    _, rows = parts_rows(diff)
    assert [row[-1] for row in rows] == ["incomplete", "corrupt", "+5.00 %"]
    assert "within 0.1 %" not in diff_text(diff)
