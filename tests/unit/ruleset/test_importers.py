"""Importing the rules of other tools: order, choice, mapping, and what cannot be a rule."""

from __future__ import annotations

import json

import pytest

from agent.core.rules import RuleSet
from agent.errors import RuleFileError, UsageError
from agent.ruleset.codec import parse_rules
from agent.ruleset.importers import import_csv, import_gputrc2graph
from agent.ruleset.lint import lint_rules
from agent.ruleset.match import Matcher
from agent.ruleset.writing import file_text
from tests.builders import signature

# The shape and habits of the published files, not their content.
LLAMA = {
    "fused_experts_kernel|bmm_|GemmGrouped": "moe_gemm",
    "gemm|nvjet": "gemm",
    "moe|sigmoid": "moe",
    "ncclDevKernel|cross_device": "nccl_and_custom_ar",
    "_norm_|Norm": "norm",
    "SoftMax": "softmax",
    "elementwise": "elementwise",
    "triton": "triton_kernel",
    "CUDA mem": "non-gpu-H_D_memops",
    ".*": "misc",
}
FILE = json.dumps({"vllm": {"llama": LLAMA, "ds": {"gemm": "gemm", ".*": "misc"}}})


def labels(ruleset: RuleSet, *names: str) -> list[str]:
    matcher = Matcher(ruleset)
    return [matcher.label(signature(name)).category for name in names]


def test_order_decides_as_in_the_file() -> None:
    ruleset = parse_rules(import_gputrc2graph(FILE, engine="vllm", model="llama").text)
    names = (
        "void bmm_gemm_kernel()",
        "nvjet_tst",
        "moe_sum",
        "xNorm",
        "[CUDA memcpy DtoD]",
        "other",
    )
    assert labels(ruleset, *names) == ["MoEGEMM", "GEMM", "moe", "norm", "Memcpy", "Unlabelled"]


def test_the_only_engine_needs_no_choice_and_several_models_do() -> None:
    with pytest.raises(UsageError) as caught:
        import_gputrc2graph(FILE)
    assert (caught.value.message, caught.value.hint) == (
        "several models",
        "--model takes one of: ds, llama",
    )
    with pytest.raises(UsageError, match='no engine "trt"'):
        import_gputrc2graph(FILE, engine="trt")
    assert len(import_gputrc2graph(json.dumps({"e": {"m": {"abcd": "x"}}})).rules) == 1


def test_categories_are_mapped_or_declared() -> None:
    imported = import_gputrc2graph(FILE, model="llama", categories={"softmax": "ReduceOP"})
    assert imported.mapped["gemm"] == "GEMM"
    assert imported.mapped["nccl_and_custom_ar"] == "Comm"
    assert imported.mapped["softmax"] == "ReduceOP"
    assert imported.declared == ("moe", "norm", "triton_kernel")
    assert set(imported.declared) <= parse_rules(imported.text).category_ids


def test_the_catch_all_is_left_out_and_said() -> None:
    [finding] = import_gputrc2graph(FILE, model="llama").findings
    assert (finding.code, finding.severity) == ("RS052", "note")
    assert "Unlabelled" in finding.message


def test_what_cannot_be_a_rule_is_reported_one_by_one() -> None:
    table = {
        "(?<!x)gemm": "a",
        "": "b",
        "(?i)norm": "c",
        "good_kernel": "d",
        "x|": "e",
        "(\\w+)+": "f",
        "(": "g",
        "abcd": "",
    }
    imported = import_gputrc2graph(json.dumps({"e": {"m": table}}))
    assert [rule.kernel for rule in imported.rules] == ["good_kernel"]
    assert [finding.message.split('"')[1] for finding in imported.findings] == [
        key for key in table if key != "good_kernel"
    ]
    assert all(finding.code == "RS052" for finding in imported.findings)


def test_a_pattern_given_twice_counts_as_in_python() -> None:
    text = '{"e": {"m": {"abcd": "one", "efgh": "two", "abcd": "three"}}}'
    rules = import_gputrc2graph(text).rules
    assert [(rule.kernel, rule.category) for rule in rules] == [("abcd", "three"), ("efgh", "two")]


def test_the_result_passes_lint_and_round_trips() -> None:
    for model in ("llama", "ds"):
        imported = import_gputrc2graph(FILE, model=model)
        ruleset = parse_rules(imported.text)
        assert not [finding for finding in lint_rules(ruleset) if finding.severity == "error"]
        declared = [c for c in ruleset.categories if c.id in imported.declared]
        assert file_text(version=1, categories=declared, rules=ruleset.rules) == imported.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[]",
        "{}",
        "3",
        '{"e": 1}',
        '{"e": {}}',
        '{"e": {"m": []}}',
        '{"e": {"m": {"a": 1}}}',
        "[" * 99_999,
    ],
)
def test_json_of_another_form_is_an_error(text: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        import_gputrc2graph(text)
    assert caught.value.code == "RS050"


@pytest.mark.parametrize("category", ["a b", "", "Unlabelled", "<b>"])
def test_a_mapping_to_no_category_is_an_error(category: str) -> None:
    with pytest.raises(UsageError):
        import_gputrc2graph(FILE, model="ds", categories={"gemm": category})


CSV = 'category,pattern\nGEMM,Cijk_\nnorm,"a,b""c"\r\n\nGEMM,(?i)x\nno name!,efgh\n'


def test_csv_keeps_order_and_quotes() -> None:
    imported = import_csv(CSV)
    assert [(rule.category, rule.kernel) for rule in imported.rules] == [
        ("GEMM", "Cijk_"),
        ("norm", 'a,b"c'),
        ("no_name", "efgh"),
    ]
    assert [finding.location for finding in imported.findings] == ["rules.csv:5"]
    assert len(parse_rules(imported.text).rules) == 3


def test_csv_columns_may_stand_in_any_order() -> None:
    assert import_csv("Pattern,note,Category\nabcd,x,GEMM\n").rules[0].kernel == "abcd"


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("", "rules.csv:1"),
        ("category\nx\n", "rules.csv:1"),
        ("category,pattern\nGEMM\n", "rules.csv:2"),
        ("category,pattern\nGEMM,a,b\nGEMM\n", "rules.csv:2"),
        ('category,pattern\nGEMM,"abc', "rules.csv:2"),
    ],
)
def test_csv_of_another_form_is_an_error(text: str, location: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        import_csv(text)
    assert (caught.value.code, caught.value.location) == ("RS050", location)
