"""What a change of the rules moves on a trace, and lists of names beside a rule file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import RuleFileError
from agent.ruleset.moves import moved_names
from agent.ruleset.namelist import check_names, read_names
from tests.builders import rule, ruleset, signature, stats, trace

BEFORE = ruleset(rule("g", "GEMM", "gemm"))
AFTER = ruleset(rule("m", "MoEGEMM", "moe_gemm"), rule("g", "GEMM", "gemm"))


def test_only_names_whose_category_changes_are_listed_most_time_first() -> None:
    one = {signature("moe_gemm1"): stats(2, 20), signature("gemm"): stats(9, 900)}
    two = {signature("moe_gemm1"): stats(1, 10), signature("moe_gemm2"): stats(4, 400)}
    moves = moved_names(trace(one, two), BEFORE, AFTER)
    assert [
        (m.name, m.before, m.after, m.rule_before, m.rule_after, m.count, m.time_ns) for m in moves
    ] == [
        ("moe_gemm2", "GEMM", "MoEGEMM", "g", "m", 4, 400),
        ("moe_gemm1", "GEMM", "MoEGEMM", "g", "m", 3, 30),
    ]
    assert moved_names(trace(one), AFTER, AFTER) == ()


def test_signatures_of_one_name_and_op_are_added_up() -> None:
    table = {
        signature("moe_gemm1", op="aten::mm"): stats(1, 1),
        signature("moe_gemm1", op="aten::mm", input_dtypes=("float",)): stats(1, 2),
        signature("moe_gemm1"): stats(1, 4),
    }
    assert [(m.op, m.time_ns) for m in moved_names(trace(table), BEFORE, AFTER)] == [
        ("", 4),
        ("aten::mm", 3),
    ]


TSV = "kernel_name\tcategory\tgrade\nmoe_gemm1\tMoEGEMM\texact\ngemm\tMoEGEMM\tprefix\nx \t GEMM\t\n\nother\tGEMM\t\n"


def test_a_list_of_names_is_compared_with_the_labels() -> None:
    report = check_names(AFTER, TSV.replace("x \t GEMM\t", "gemm \tGEMM\t"))
    assert (report.total, report.right, report.clean) == (4, 2, False)
    assert [(w.name, w.expected, w.got, w.line) for w in report.wrong] == [
        ("gemm", "MoEGEMM", "GEMM", 3)
    ]
    assert report.unlabelled == ("other",)


@pytest.mark.parametrize("change", [("\n", "\r\n"), ("kernel_name", "\ufeffkernel_name")])
def test_line_ends_and_marks_do_not_matter(change: tuple[str, str]) -> None:
    assert check_names(AFTER, TSV.replace(*change)) == check_names(AFTER, TSV)


def test_columns_may_stand_in_any_order_and_names_hold_anything() -> None:
    [name] = read_names("origin\tcategory\tkernel_name\nx\tGEMM\t\"quoted, [x]'\n")
    assert (name.name, name.category, name.line) == ("\"quoted, [x]'", "GEMM", 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("RS040", "n.tsv:1")]),
        ("kernel_name,category\n", [("RS040", "n.tsv:1")]),
        ("name\tcategory\nx\tGEMM\n", [("RS040", "n.tsv:1")]),
        (
            "kernel_name\tcategory\nx\n\tGEMM\ny\t\n",
            [("RS041", f"n.tsv:{line}") for line in (2, 3, 4)],
        ),
        ("kernel_name\tcategory\nx\tGEMM\nx\tMLA\nx\tGEMM\n", [("RS042", "n.tsv:3")]),
    ],
)
def test_a_damaged_list_is_an_error_with_its_lines(
    text: str, expected: list[tuple[str, str]]
) -> None:
    with pytest.raises(RuleFileError) as caught:
        check_names(AFTER, text, source="n.tsv")
    assert [(f.code, f.location) for f in caught.value.findings] == expected


def test_the_list_of_true_names_can_be_read(shared: Path) -> None:
    names = read_names((shared / "truth" / "kernel_names.tsv").read_text(encoding="utf-8"))
    assert len(names) == 299
