"""The comparison on made cases with known answers, on the article's pair and on real pairs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.compare.strangers import stranger_findings
from agent.compare.table import TraceDiff, compare_traces
from agent.core.kernels import Trace
from agent.core.rules import LabelledTrace, RuleSet
from agent.render.diff_text import diff_text
from agent.render.label_report import label_text
from agent.ruleset.codec import load_builtin
from agent.ruleset.match import label_trace
from agent.traces.reader import read_trace
from tests.builders import rule, ruleset

pytestmark = pytest.mark.shared
RANKS = 2


def case_rules(shared: Path) -> RuleSet:
    """The rules of the cases: a pattern, or an op with its destination and source types."""
    rules = []
    for number, (category, match) in enumerate(
        json.loads((shared / "cases" / "RULES.json").read_text())["rules"]
    ):
        if isinstance(match, str):
            rules.append(rule(f"r{number}", category, match))
        else:
            dtypes = (match["dst"], match["src"])
            rules.append(
                rule(f"r{number}", category, ".", op=f"^{match['op']}$", input_dtypes=dtypes)
            )
    return ruleset(*rules)


def case(shared: Path, number: str) -> Path:
    return next((shared / "cases").glob(f"{number}-*"))


def labelled(shared: Path, *paths: Path) -> LabelledTrace:
    return label_trace(read_trace(list(paths)), case_rules(shared))


def diff_of(shared: Path, number: str) -> tuple[TraceDiff, dict]:
    folder = case(shared, number)
    expected = json.loads((folder / "expected.json").read_text())["expect"]
    sides = [labelled(shared, folder / name) for name in ("a.json", "b.json")]
    return compare_traces(*sides), expected


def words(text: str) -> str:
    """Undo the line breaks of a report."""
    return " ".join(text.split())


def test_a_lossy_replay_is_an_incomplete_capture_and_no_saving(shared):
    diff, expected = diff_of(shared, "19")
    text = words(diff_text(diff))
    for must in ("incomplete capture on side new", "delta is not trustworthy"):
        assert must in text
    assert text.index("incomplete capture") < text.index("-50.00 %")
    assert "no conclusion" in text
    assert "savings" not in text
    assert not diff.ledger.savings
    assert diff.base.kernel_ns == expected["a.json"]["kernel"]["time_ns"]
    assert diff.new.kernel_ns == expected["b.json"]["kernel"]["time_ns"]


def test_unequal_steps_turn_the_sign(shared):
    diff, expected = diff_of(shared, "21")
    raw, per_step = expected["raw"], expected["per_step"]
    assert diff.delta_ns == raw["delta_ns"]
    assert diff.work.existing.raw_ns == raw["existing_delta_ns"]
    assert diff.work.passes == (10, 9)
    assert round(float(100 * diff.work.total.raw), 1) == raw["delta_pct"]
    assert float(100 * diff.work.total.per_pass) == per_step["delta_pct"]
    assert float(100 * diff.work.existing.per_pass) == per_step["existing_delta_pct"]
    assert diff.work.total.equal_ns / 10 == per_step["delta_ns"]
    text = words(diff_text(diff))
    assert "every shared category has 0.9x the calls (10 against 9 steps)" in text
    assert "have the opposite sign" in text
    assert text.index("unequal work") < text.index("-4.60 %")


def test_spellings_of_one_kernel_are_matched_and_listed(shared):
    diff, expected = diff_of(shared, "24")
    assert [row.category for row in diff.categories] == ["Elementwise", "Unlabelled"]
    for row, name in zip(diff.categories, ("Elementwise", "Others"), strict=True):
        sides = expected["diff_by_category"][name]
        assert [row.base.count, row.base.time_ns] == sides["a"]
        assert [row.new.count, row.new.time_ns] == sides["b"]
    found = {(alias.base_names[0], name) for alias in diff.aliases for name in alias.new_names}
    assert found >= {tuple(pair) for pair in expected["diff_by_name"]["alias_pairs"]}
    assert "3 names matched after normalisation" in words(diff_text(diff))


def test_corrupt_durations_show_both_totals(shared):
    expected = json.loads((case(shared, "11") / "expected.json").read_text())["expect"]
    one = labelled(shared, case(shared, "11") / "trace.json")
    text = words(label_text(one))
    assert f"{expected['time_ns_as_recorded_non_negative']} ns as recorded" in text
    assert f"{expected['time_ns_clipped_to_next_on_stream']} ns clipped" in text
    assert "unreliable" in text


def test_concurrent_streams_keep_sum_and_busy_apart(shared):
    text = words(label_text(labelled(shared, case(shared, "13") / "trace.json")))
    assert "sum 0.280000 ms · busy 0.180000 ms" in text
    assert "64.29 %" in text
    assert "35.71 %" in text


def test_replayed_kernels_are_labelled_by_name_and_their_share_is_said(shared):
    text = words(label_text(labelled(shared, case(shared, "18") / "trace.json")))
    assert "graph replay: 2 launches, 90.00 % of the time" in text
    assert "has no launching op" in text


def test_names_with_brackets_appear_verbatim(shared):
    path = case(shared, "39") / "trace.json"
    text = label_text(labelled(shared, path), top=10)
    for event in json.loads(path.read_text())["traceEvents"]:
        assert event["name"] in text


@pytest.fixture(scope="module")
def article(shared, tmp_path_factory) -> tuple[TraceDiff, dict]:
    """The article's pair, two of its eight ranks, through the reader and the built-in rules."""
    folder, table = tmp_path_factory.mktemp("pair"), shared / "blog_table.json"
    script = shared / "made" / "blog_pair.py"
    command = [sys.executable, str(script), str(table), str(folder), "--ranks", str(RANKS)]
    subprocess.run(command, check=True)
    rules = load_builtin()
    sides = [label_trace(read_trace([folder / side]), rules) for side in ("bf16", "fp8")]
    return compare_traces(*sides), json.loads(table.read_text())


NAMES = {"Others": "Unlabelled", "Comm (NCCL)": "Comm"}


def test_every_row_of_the_article_is_met(article):
    diff, table = article
    rows = {str(row.category): row for row in diff.categories}
    for name, new_count, new_ms, base_count, base_ms, diff_ms in table["rows"]:
        row = rows.pop(NAMES.get(name, name))
        assert (row.new.count, row.base.count) == (new_count * RANKS // 8, base_count * RANKS // 8)
        for time_ns, printed in (
            (row.new.time_ns, new_ms),
            (row.base.time_ns, base_ms),
            (row.delta_ns, diff_ms),
        ):
            assert abs(time_ns * 8 / RANKS / 1e6 - printed) <= 1
    assert not rows


def test_the_articles_ledger_is_met(article):
    diff, table = article
    printed = table["printed_totals_ms"]
    for time_ns, key in (
        (diff.ledger.net_ns, "diff"),
        (diff.ledger.introduced_ns, "new_only"),
        (diff.ledger.existing_ns, "existing_diff"),
    ):
        assert abs(time_ns * 8 / RANKS / 1e6 - printed[key]) <= 2
    assert {entry.category for entry in diff.ledger.introduced} == {"CastFromFP8", "CastToFP8"}


def test_the_articles_windows_hold_unequal_work(article):
    diff, _ = article
    work = diff.work
    assert (work.equal, work.passes, work.source) == (False, (107, 106), "passes")
    assert round(float(100 * work.total.raw), 2) == 0.08
    assert round(float(100 * work.total.per_pass), 2) == 1.02
    assert round(float(100 * work.existing.raw), 2) == -0.63
    assert round(float(100 * work.existing.per_pass), 2) == 0.31
    assert (work.total.flips, work.existing.flips) == (False, True)
    assert diff_text(diff).startswith("! DF120 unequal work")


def test_the_articles_mla_kernels_are_suggested_as_a_succession(article):
    diff, table = article
    [pair] = [pair for pair in diff.replacements if pair.old.category == "MLA"]
    assert pair.old.name == table["mla_kernel"]["bf16"]
    assert table["mla_kernel"]["fp8"] in pair.new.name
    impact = pair.impact(diff.against)
    assert round(float(100 * impact.per_call), 1) == -34.2
    assert round(float(100 * impact.effect), 3) == -0.008


REAL = {
    "sglang_dense_decode": (
        "sglang_dense_decode_mi300.json.gz",
        "sglang_dense_decode_b300.json.gz",
    ),
    "qwen": ("qwen15_h100.json.gz", "qwen15_mi300.json.gz"),
    "flux": ("flux_aiter_mi300.json.gz", "flux_aiter_sage_mi300.json.gz"),
    "dsv3": ("lightllm_dsv3_decode_h200", "sglang_dsv3_decode_h200"),
}


@pytest.fixture(scope="module")
def real(shared) -> dict[str, TraceDiff]:
    rules = load_builtin()
    sides = {
        name: label_trace(read_trace([shared / "traces" / name]), rules)
        for pair in REAL.values()
        for name in pair
    }
    return {key: compare_traces(sides[base], sides[new]) for key, (base, new) in REAL.items()}


@pytest.mark.parametrize("pair", ["sglang_dense_decode", "qwen"])
def test_two_vendors_are_not_comparable_and_that_is_said_first(real, pair):
    assert real[pair].findings[0].code == "DF101"
    assert diff_text(real[pair]).startswith("! DF101 not comparable: GPUs of different vendors")


@pytest.mark.parametrize("pair", ["flux", "dsv3", "sglang_dense_decode"])
def test_real_pairs_of_equal_passes_are_equal_work(real, pair):
    """One image, one decode step, one step: told by calls or by annotations."""
    assert real[pair].work.equal


def test_a_real_pair_of_one_machine_is_conclusive(real):
    diff = real["flux"]
    assert diff.conclusive
    assert {entry.category for entry in diff.ledger.introduced} >= {"Quant"}


def test_a_real_regression_inside_existing_categories_names_its_kernels(real):
    """Reductions, fills and abs kernels came with sage attention, in categories already there."""
    targets = real["flux"].kernel_targets
    assert [one.row.category for one in targets[:2]] == ["ReduceOP", "ReduceOP"]
    assert {"Elementwise"} < {one.row.category for one in targets}
    assert all(one.rules for one in targets)
    assert real["dsv3"].kernel_targets[0].kind == "grown"


def test_real_ranks_are_not_strangers_and_two_real_models_are(shared):
    """Three ranks of one run; an image model and a language model of one GPU type."""
    folder = shared / "traces"
    assert stranger_findings(read_trace([folder / "sglang_dsv3_decode_h200"])) == ()
    names = ("flux_aiter_mi300.json.gz", "vllm_gptoss_piecewise_mi300.json.gz")
    ranks = [read_trace([folder / name]).ranks[0] for name in names]
    assert [one.code for one in stranger_findings(Trace("both", tuple(ranks)))] == ["DF107"]


def test_three_real_ranks_have_a_spread_but_cannot_tell(real):
    noise = real["dsv3"].noise
    assert (noise.unit, noise.n_base, noise.n_new, noise.can_tell) == ("ranks", 3, 3, False)
