"""`--fail-on`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from agent.compare.gates import Kind, judge_gates, parse_gate
from agent.compare.table import compare_traces
from agent.errors import UsageError
from tests.unit.compare.runs import graph_rank, rules_for, run

RULES = rules_for({"GEMM", "MLA", "CastFromFP8", "Comm (NCCL)"})
BASE = {"GEMM/g": (20, 90_000_000), "MLA/m": (10, 9_000_000), "Unlabelled/u": (10, 1_000_000)}
NEW = {
    "GEMM/g": (20, 90_900_000),
    "MLA/m": (10, 6_000_000),
    "Unlabelled/u": (10, 1_000_000),
    "CastFromFP8/c": (5, 4_100_000),
}


def failed(*expressions: str, base=BASE, new=NEW) -> list[str]:
    diff = compare_traces(run(base, rules=RULES), run(new, rules=RULES))
    gates = [parse_gate(expression, RULES) for expression in expressions]
    return [result.expression for result in judge_gates(gates, diff) if result.failed]


@pytest.mark.parametrize(
    ("expression", "fails"),
    [
        ("total>1%", True),
        ("total>2%", False),
        ("total>=2%", True),
        ("total>1.9ms", True),
        ("total > 2000 us", False),
        ("total>0.001s", True),
        ("GEMM>0.9%", True),
        ("GEMM>1%", False),
        ("GEMM/raw>0.9%", True),
        ("MLA>0%", False),
        ("MLA>-40%", True),
        ("new-category", True),
        ("new-category>3.9%", True),
        ("new-category>5%", False),
        ("new-category>4ms", True),
        ("CastFromFP8>1%", True),
        ("Comm (NCCL)>1%", False),
        ("unlabelled>0.9%", True),
        ("unlabelled>5%", False),
        ("unlabelled>0.5ms", True),
        ("inferred>0%", False),
        ("incomplete", False),
        ("incomparable", False),
    ],
)
def test_a_gate_fails_where_the_figure_exceeds_the_bound(expression, fails):
    """The total rises by 2.000 ms of 100, GEMM by exactly 1 %, MLA falls by a third."""
    assert bool(failed(expression)) is fails


def test_the_expressions_in_the_docs_are_expressions():
    page = Path(__file__).parents[3] / "docs" / "reading-a-diff.md"
    section = page.read_text(encoding="utf-8").partition("## Gates")[2]
    shown = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert {parse_gate(one, RULES).kind for one in shown} == set(get_args(Kind))


def test_a_category_without_time_on_either_side_has_not_grown():
    rules = rules_for({"GEMM", "MLA"})
    both = run({"GEMM/g": (1, 0), "MLA/m": (1, 5)}, rules=rules)
    [result] = judge_gates([parse_gate("GEMM>1%", rules)], compare_traces(both, both))
    assert not result.failed


def test_several_gates_are_judged_each_for_itself():
    assert failed("total>1%", "total>5%", "new-category") == ["total>1%", "new-category"]


def test_total_is_per_pass_unless_raw_is_said():
    new = {name: (count * 9 // 10, time * 95 // 100) for name, (count, time) in BASE.items()}
    assert failed("total>1%", "total/pass>1%", "total/raw>1%", new=new) == [
        "total>1%",
        "total/pass>1%",
    ]


def test_an_increase_that_cannot_be_judged_has_not_passed():
    full = ("GEMM/g", "MLA/m")
    base = run(graph_rank(full, full), rules=RULES)
    new = run(graph_rank(full, ()), rules=RULES)
    gates = [parse_gate(one, RULES) for one in ("total>50%", "GEMM>50%", "incomplete")]
    results = judge_gates(gates, compare_traces(base, new))
    assert [result.failed for result in results] == [True, True, True]
    assert "cannot be judged" in results[0].message


@pytest.mark.parametrize(
    ("expression", "column", "what"),
    [
        ("total 1%", 7, "expected > or >="),
        ("total>", 7, "expected a number"),
        ("total>1", 8, "expected a unit"),
        ("total>1%%", 9, "expected nothing more"),
        ("total<1%", 6, "expected > or >="),
        ("total/foo>1%", 7, "expected pass or raw"),
        ("unlabelled/raw>1%", 11, "only total and categories"),
        ("GEM>1%", 1, 'did you mean "GEMM"?'),
        ("  GEM>1%", 3, 'did you mean "GEMM"?'),
        ("incomplete>1%", 11, "takes no bound"),
        ("", 1, "expected incomplete"),
        ("\x1b[31m>1%", 1, "no such measure"),
        ("total>1e3%", 8, "expected a unit"),
        ("total>\uff11%", 7, "expected a number"),
    ],
)
def test_a_wrong_expression_is_an_error_with_a_caret(expression, column, what):
    with pytest.raises(UsageError) as raised:
        parse_gate(expression, RULES)
    error = raised.value
    assert error.code == "DF003"
    assert what in error.message
    assert f"at column {column} of" in error.message
    shown, caret = error.hint.split("\n")
    assert caret.index("^") - len("      ") >= 0
    assert "\x1b" not in str(error) + shown
