"""Patterns: what makes one unsafe, too broad, too narrow or generic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from agent.ruleset.match import Pattern
from agent.ruleset.patterns import check_pattern, is_exact
from agent.ruleset.syntax import literal_runs, plain_text, read_pattern, required_run


def codes(pattern: str) -> set[str]:
    return {finding.code for finding in check_pattern(pattern)}


GOOD = [
    "moe_gemm[12]_",
    "flash_mla_with_kvcache",
    r"(^|::)mla_a8w8_qh16_qseqlen1_gqaratio16$",
    r"(^|::)topksoftmax_4x128x4$",
    r"\bncclDevKernel_",
    r"at::native::float8_copy_kernel_cuda\(at::TensorIteratorBase ?&\)::[\[{]lambda\(c10::BFloat16\)( \(instance [13]\)|#[13])[\]}]",
    r"^Cijk_\w+_MT\d+x\d+x\d+_",
    r"\bRMS_?[nN]orm",
    r"\bbn_(?:fw|bw)_\w+",
    "^_fwd_kernel$",
    "^main_kernel$",
    r"\[lambda\(int\) \(instance 3\)\]_kernel_x",
    r"cudnn::[\w:]*transpose",
    r"wvSpl[t]K_hf",
    r"elementwise_kernel<128, 4, at::native::gpu_kernel_impl<",
    r"[\]^]abcd[^\]]",
    r"a\\1bcde",
    r"[(?=)]abcd",
    r"(?:abcd|efgh){2}",
]


@pytest.mark.parametrize("pattern", GOOD)
def test_nothing_is_wrong_with(pattern: str) -> None:
    assert check_pattern(pattern) == ()


BAD = [
    ("", "E_MATCHES_EMPTY"),
    (".*", "E_MATCHES_EMPTY"),
    ("(abcd)?", "E_MATCHES_EMPTY"),
    ("abcd|", "E_MATCHES_EMPTY"),
    (r"\x41*", "E_MATCHES_EMPTY"),
    ("\x08gemm\x08", "E_NON_ASCII"),
    ("\x1b\\[2Jabcd", "E_NON_ASCII"),
    ("gemm\n", "E_NON_ASCII"),
    ("gémm_kernel_x", "E_NON_ASCII"),
    ("\u202egemm_x", "E_NON_ASCII"),
    ("x" * 401, "E_TOO_LONG"),
    ("(" * 2_000 + "a" + ")" * 2_000, "E_TOO_LONG"),
    ("mla_(a8w8", "E_REGEX_SYNTAX"),
    ("(?!)", "E_REGEX_SYNTAX"),
    ("(?<!_)mla_dec_stage1", "E_REGEX_SYNTAX"),
    ("float8_copy(?!.*#5)", "E_REGEX_SYNTAX"),
    (r"MT(\d+)x\1x64", "E_REGEX_SYNTAX"),
    ("(?i)cijk_", "E_REGEX_SYNTAX"),
    ("moe_gemm|(?i)rmsnorm", "E_REGEX_SYNTAX"),
    ("(?s:a.b)cdef", "E_REGEX_SYNTAX"),
    ("(?P<c>moe)_gemm1", "E_REGEX_SYNTAX"),
    ("(?<c>moe)_gemm1", "E_REGEX_SYNTAX"),
    (r"\p{Lu}gemm", "E_REGEX_SYNTAX"),
    (r"\Qgemm.x\E", "E_REGEX_SYNTAX"),
    ("gemm{1001}", "E_REGEX_SYNTAX"),
    (r"^void (\w+_?)+kernel$", "E_NESTED_QUANTIFIER"),
    ("(x+x+)+yyyy", "E_NESTED_QUANTIFIER"),
    (r"(?:\w+::)*gemm_x", "E_NESTED_QUANTIFIER"),
    (r"(?:\w{1,9}_){2}gemm", "E_NESTED_QUANTIFIER"),
    (r"gemm.{1,1000}z", "E_NESTED_QUANTIFIER"),
    (r"(?:gemm.{20}){20}", "E_NESTED_QUANTIFIER"),
    ("mla|gemm", "E_NO_LITERAL"),
    ("(a|aa)+$", "E_NO_LITERAL"),
    (r"\bfoo\d+", "E_NO_LITERAL"),
    (r"a.b.c.d.e", "E_NO_LITERAL"),
    (r"[a-z]{9}", "E_NO_LITERAL"),
    (r"abc(?:d|\w)", "E_NO_LITERAL"),
    (r"^Cijk_Alik_Bljk_BBS_MT256x208x64_MI16x16x1_SN$", "E_OVERFIT"),
    (r"gemm_BLOCK_SIZE_M_16_x", "E_OVERFIT"),
    (r"nvjet_tst_128x64_64x9", "E_OVERFIT"),
    (r"topksoftmax_4x128x4", "E_OVERFIT"),
    ("copy", "E_GENERIC"),
    ("reduce", "E_GENERIC"),
    ("kernel", "E_GENERIC"),
    ("void ", "E_GENERIC"),
    (r"^_\w*kernel", "E_GENERIC"),
    ("gemm_kernel|main_kernel", "E_GENERIC"),
]


@pytest.mark.parametrize(("pattern", "code"), BAD)
def test_what_is_wrong_is_said(pattern: str, code: str) -> None:
    found = [finding for finding in check_pattern(pattern) if finding.code == code]
    assert found
    assert all(finding.message.isprintable() and len(finding.message) < 600 for finding in found)


def test_a_backspace_asks_whether_a_boundary_was_meant() -> None:
    [finding, *_] = check_pattern("\x08gemm\x08")
    assert finding.code == "E_NON_ASCII"
    assert "did you mean \\b" in finding.hint


def test_all_findings_come_at_once() -> None:
    assert codes("(\\w+)*\x08") == {"E_NON_ASCII", "E_NESTED_QUANTIFIER", "E_NO_LITERAL"}


def test_a_generic_name_spelled_out_is_a_warning() -> None:
    """Its evidence and what else it matches decide, see the gate."""
    for name in ("reduce_segments", "_fwd_kernel"):
        assert [(f.code, f.severity) for f in check_pattern(name)] == [("E_GENERIC", "warning")]


@pytest.mark.parametrize(
    ("pattern", "exact"),
    [
        ("^_fwd_kernel$", True),
        ("(^|::)name$", True),
        ("(?:^|::)name$", True),
        (r"^a::b\(int\)$", True),
        ("^[_]x$", True),
        ("name$", False),
        ("^name", False),
        ("^na.me$", False),
        ("^name|other$", False),
        ("(x|::)name$", False),
        ("^", False),
        ("(", False),
    ],
)
def test_exact(pattern: str, exact: bool) -> None:
    assert is_exact(pattern) is exact


@pytest.mark.parametrize(
    ("pattern", "length"),
    [
        ("abc", 3),
        ("ab?c", 2),
        ("ab*cde", 3),
        ("(?:ab|cde)f", 3),
        ("ab(?:cd|e.)", 3),
        ("(?:ab){3}", 6),
        ("(?:ab)+", 2),
        ("x[abc]y", 3),
        ("x[a-c]y", 1),
        ("[[:alpha:]]ab", 2),
        (r"\x41\.\$", 3),
        (r"\babc\b_d", 5),
        (r"\p{Lu}ab\d", 2),
    ],
)
def test_how_many_literal_characters_a_match_must_hold(pattern: str, length: int) -> None:
    assert required_run(read_pattern(pattern)).longest == length


def test_literal_text_is_read_out_of_a_pattern() -> None:
    assert literal_runs(read_pattern(r"^ab\.c(?:d|ef)+[gh]i$")) == ("ab.c", "d", "ef", "i")
    assert plain_text(read_pattern(r"^a\.b$")) == "a.b"
    assert plain_text(read_pattern(r"^a.b$")) is None


@given(st.text(alphabet="ab(|)?:*+{},012[]^$.\\dwbx-_<>P=!", max_size=25))
def test_any_text_gets_an_answer(pattern: str) -> None:
    found = codes(pattern)
    try:
        Pattern(pattern)
    except re2.error:
        assert "E_REGEX_SYNTAX" in found


@given(
    st.lists(
        st.sampled_from(
            ["ab", "c", "(?:de|f)", "g?", "[hi]", r"\b", "(?:j){2}", "k+", "(?:ab|cd)?"]
        ),
        max_size=6,
    )
)
def test_a_name_shorter_than_the_required_run_is_never_matched(parts: list[str]) -> None:
    pattern = "".join(parts)
    length = required_run(read_pattern(pattern)).longest
    compiled = Pattern(pattern)
    for size in range(length):
        assert not any(
            compiled.search(name[:size]) for name in ("abcdeghjjk", "ffhjjk", "defghijj", "kkkk")
        )


def test_right_proposals_have_good_patterns(shared: Path) -> None:
    for line in (shared / "truth" / "right_proposals.jsonl").read_text().splitlines():
        pattern = json.loads(line)["proposal"]["kernel"]
        assert not [finding for finding in check_pattern(pattern) if finding.severity == "error"]


def test_wrong_proposals_that_fail_for_their_pattern(shared: Path) -> None:
    mine = {"E_REGEX_SYNTAX", "E_MATCHES_EMPTY", "E_NON_ASCII", "E_OVERFIT"}
    wrong = [
        json.loads(line)
        for line in (shared / "truth" / "wrong_proposals.jsonl").read_text().splitlines()
    ]
    expected = [entry for entry in wrong if entry["expected_reject"] in mine]
    assert len(expected) > 5
    for entry in expected:
        assert entry["expected_reject"] in codes(entry["proposal"]["kernel"])


def test_hostile_patterns_of_models(shared: Path) -> None:
    folder = shared / "cases" / "33-hostile-regex"
    expected = json.loads((folder / "expected.json").read_text())["expect"]
    needs_names = {"g7"}
    for entry in json.loads((folder / "proposals.json").read_text()):
        rejected = any(finding.severity == "error" for finding in check_pattern(entry["pattern"]))
        if entry["id"] not in needs_names:
            assert rejected == expected[entry["id"]].startswith("reject"), entry["id"]
