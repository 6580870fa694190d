"""Lint: everything doubtful about a rule set at once, each with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.proposals import Pin
from agent.core.rules import Rule, RuleSet
from agent.ruleset.codec import load_builtin, parse_rules
from agent.ruleset.lint import lint_rules
from agent.ruleset.overlap import declares
from tests.builders import evidence, rule, ruleset, signature, stats, trace

PIN = Pin("0" * 40, "100644", "b" * 40, "call", "f", (), "c" * 64, "python 0.25")


def good(id: str, category: str, kernel: str, example: str, **fields: object) -> Rule:
    fields.setdefault("counterexamples", ("something else",))
    return rule(id, category, kernel, examples=(example,), **fields)


def found(*rules: Rule, **options: object) -> list[tuple[str, str, int]]:
    placed = [replace(entry, line=index) for index, entry in enumerate(rules, start=1)]
    findings = lint_rules(ruleset(*placed), source="f", **options)  # type: ignore[arg-type]
    return [(f.code, f.severity, int(f.location.removeprefix("f:"))) for f in findings]


MOE = good("a.moe", "MoEGEMM", "moe_gemm", "moe_gemm1_0")
GEMM = good("b.gemm", "GEMM", r"\bgemm_", "gemm_x")


def test_a_clean_set_has_no_findings() -> None:
    assert found(MOE, GEMM) == []
    assert found() == []


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([MOE, MOE], ("RS005", "error", 2), id="duplicate id"),
        pytest.param([replace(MOE, category="Nope")], ("RS006", "error", 1), id="unknown category"),
        pytest.param([replace(MOE, category="Unlabelled")], ("RS006", "error", 1), id="Unlabelled"),
        pytest.param([replace(MOE, examples=("x",))], ("RS008", "error", 1), id="failing example"),
        pytest.param(
            [replace(MOE, counterexamples=("moe_gemm",))],
            ("RS009", "error", 1),
            id="failing counterexample",
        ),
        pytest.param([rule("x", kernel="(")], ("RS020", "error", 1), id="not RE2"),
        pytest.param([rule("x", kernel="gemm\b")], ("RS020", "error", 1), id="a backspace"),
        pytest.param(
            [rule("x", kernel=r"(\w+)*gemm")], ("RS020", "error", 1), id="nested repetition"
        ),
        pytest.param([replace(MOE, op="(?i)aten")], ("RS020", "error", 1), id="an unsafe op"),
        pytest.param([rule("x", kernel=".*")], ("RS021", "error", 1), id="matches everything"),
        pytest.param([rule("x", kernel="moe|gemm_x")], ("RS021", "error", 1), id="too broad"),
        pytest.param([rule("x", kernel="Cijk_MT16x16")], ("RS022", "error", 1), id="too narrow"),
        pytest.param([rule("x", kernel="kernel")], ("RS023", "error", 1), id="generic"),
        pytest.param(
            [good("g", "GEMM", "gemm", "gemm"), MOE],
            ("RS024", "error", 2),
            id="a rule that never decides",
        ),
        pytest.param(
            [good("g", "GEMM", "gemm", "gemm"), MOE],
            ("RS025", "error", 2),
            id="an example another takes",
        ),
        pytest.param(
            [MOE, good("g", "GEMM", "gemm", "x_gemm")],
            ("RS026", "error", 1),
            id="an undeclared overlap",
        ),
        pytest.param(
            [good("b", "GEMM", "b_gemm", "b_gemm"), good("a", "GEMM", "a_gemm", "a_gemm")],
            ("RS027", "note", 2),
            id="an unsorted block",
        ),
        pytest.param(
            [replace(MOE, grade="validated")],
            ("RS028", "error", 1),
            id="validated without evidence",
        ),
        pytest.param(
            [replace(MOE, grade="validated", evidence=(evidence(),))],
            ("RS028", "error", 1),
            id="evidence without a pin",
        ),
        pytest.param(
            [replace(MOE, overrides=("nothing",))],
            ("RS029", "warning", 1),
            id="an override of nothing",
        ),
        pytest.param([replace(MOE, examples=())], ("RS030", "warning", 1), id="no example"),
        pytest.param(
            [replace(MOE, counterexamples=())], ("RS030", "note", 1), id="no counterexample"
        ),
    ],
)
def test_what_is_wrong_is_found(rules: list[Rule], expected: tuple[str, str, int]) -> None:
    assert expected in found(*rules)


class TestNothingIsWrongWith:
    def test_a_declared_overlap(self) -> None:
        moe = replace(MOE, examples=("moe_gemm_x gemm_x",))
        for target in ("b.gemm", "b.*", "GEMM"):
            assert found(replace(moe, overrides=(target,)), GEMM) == []

    def test_an_overlap_within_a_category(self) -> None:
        assert found(MOE, good("z.moe", "MoEGEMM", "moe_", "moe_x")) == []

    def test_a_declared_overlap_with_a_conditional_rule(self) -> None:
        cast = good(
            "cast",
            "CastFromFP8",
            "dcopy_kernel",
            "dcopy_kernel<1>",
            op="^aten::copy_$",
            overrides=("e",),
        )
        assert found(cast, good("e", "Elementwise", "dcopy_kernel", "dcopy_kernel<2>")) == []

    @pytest.mark.parametrize(
        ("mine", "theirs"),
        [
            ({"dtypes_unknown": True}, {"input_dtypes": ("c10::BFloat16", "")}),
            ({"input_dtypes": ("float",)}, {"dtypes_unknown": True}),
            ({"input_dtypes": ("", "float")}, {"input_dtypes": ("c10::Half", "c10::Half")}),
        ],
    )
    def test_rules_whose_dtypes_exclude_each_other(
        self, mine: dict[str, object], theirs: dict[str, object]
    ) -> None:
        cast = good("cast", "CastFromFP8", "dcopy_kernel", "dcopy_kernel<1>", **mine)
        other = good("other", "CastToFP8", "dcopy_kernel", "dcopy_kernel<2>", **theirs)
        assert found(cast, other) == []

    def test_pinned_evidence(self) -> None:
        pinned = evidence(pin=PIN)
        assert found(replace(MOE, grade="validated", evidence=(pinned,))) == []

    def test_a_block_whose_neighbour_has_another_category(self) -> None:
        assert found(GEMM, replace(MOE, id="a")) == []

    def test_an_exact_generic_name_with_evidence(self) -> None:
        exact = good(
            "x",
            "Attention",
            "^_fwd_kernel$",
            "_fwd_kernel",
            grade="validated",
            evidence=(evidence(pin=PIN),),
        )
        assert found(exact) == []


def test_an_inferred_rule_is_warned_about_what_is_a_judgement() -> None:
    broad = good("x", "GEMM", "moe|gemm_x", "moe", grade="inferred")
    assert found(broad) == [("RS021", "warning", 1)]
    assert ("RS021", "error", 1) in found(replace(broad, kernel=".*"))


def test_findings_come_in_the_order_of_the_lines() -> None:
    rules = [rule("x", kernel="kernel"), rule("y", kernel="("), rule("y", "Nope")]
    lines = [line for _, _, line in found(*rules)]
    assert lines == sorted(lines)
    assert set(lines) == {1, 2, 3}


def test_rules_of_an_extended_file_are_not_judged_but_count() -> None:
    shipped = replace(
        rule("e", "Elementwise", "copy", examples=("dcopy_kernel_x",)), source="builtin@1", line=9
    )
    own = replace(
        good("own", "Misc", "dcopy_kernel_x", "dcopy_kernel_x"), source="mine.toml", line=4
    )
    findings = lint_rules(ruleset(own, shipped, extends="builtin@1"))
    assert [(f.code, f.location) for f in findings] == [("RS026", "mine.toml:4")]


class TestOnATrace:
    NAMES = trace({signature("moe_gemm1_0"): stats(2, 20), signature("x_gemm_y"): stats(1, 5)})

    def test_a_rule_that_wins_nothing_says_who_takes_its_names(self) -> None:
        findings = lint_rules(
            ruleset(
                good("g", "GEMM", "gemm", "gemm"),
                rule("m", kernel="moe_gemm"),
                rule("n", kernel="nowhere"),
            ),
            trace=self.NAMES,
        )
        notes = [f.message for f in findings if f.code == "RS031"]
        assert sorted(notes) == [
            'rule "m" wins nothing on this trace: of the names it matches "g" takes 1',
            'rule "n" matches nothing on this trace',
        ]

    def test_an_overlap_on_a_name_of_the_trace_counts(self) -> None:
        rules = (good("m", "MoEGEMM", "gemm1", "gemm1"), good("g", "GEMM", "_gemm", "x_gemm"))
        assert ("RS026", "error", 1) not in found(*rules)
        assert ("RS026", "error", 1) in found(*rules, trace=self.NAMES)


def test_shadowed_rules_of_a_real_list(shared: Path) -> None:
    """The rules and names whose diagnosis was written down by hand."""
    folder = shared / "cases" / "26-rule-order-shadowing"
    rules = json.loads((folder / "rules.json").read_text())
    names = json.loads((folder / "names.json").read_text())
    known = {"RMSNorm2": "RMSNorm", "Cast": "CastToFP8"}
    built = ruleset(*[rule(name, known.get(name, name), pattern) for name, pattern in rules])
    run = trace({signature(name): stats(count, count) for name, count in names})
    findings = {f.message for f in lint_rules(built, trace=run) if f.code == "RS031"}
    assert findings == {
        'rule "MoEGEMM" wins nothing on this trace: of the names it matches "GEMM" takes 2',
        'rule "Comm" wins nothing on this trace: of the names it matches "Cast" takes 2',
        'rule "RMSNorm2" wins nothing on this trace: of the names it matches "Quant" takes 1',
    }


def test_a_hostile_name_is_shown_as_escapes() -> None:
    hostile = "\x1b[2Jmoe_gemm\u202e"
    findings = lint_rules(
        ruleset(good("g", "GEMM", "gemm", "gemm"), good("m", "MoEGEMM", "moe_gemm", hostile))
    )
    assert any("\\x1b[2Jmoe_gemm\\u202e" in finding.message for finding in findings)
    assert all(finding.message.isprintable() for finding in findings)


def test_the_shipped_rules_have_no_errors() -> None:
    findings = lint_rules(load_builtin(), source="rules/builtin.toml")
    assert [f for f in findings if f.severity == "error"] == []


def test_lint_reads_lines_from_a_parsed_file() -> None:
    text = "schema = 1\nversion = 1\n\n[[rule]]\nid = 'x'\ncategory = 'GEMM'\nkernel = 'kernel'\ngrade = 'vendor'\n"
    parsed: RuleSet = parse_rules(text, source="dir/mine.toml")
    assert {f.location for f in lint_rules(parsed)} == {"mine.toml:4"}
    assert {f.location for f in lint_rules(parsed, source="dir/mine.toml")} == {"dir/mine.toml:4"}


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({"dtypes_unknown": True}, {}),
        ({"dtypes_unknown": True}, {"dtypes_unknown": True}),
        ({"dtypes_unknown": True}, {"op": "^aten::copy_$"}),
        ({"input_dtypes": ("float",)}, {"input_dtypes": ("", "float")}),
        ({"input_dtypes": ("float",)}, {}),
    ],
)
def test_rules_whose_dtypes_may_be_the_same_overlap(
    mine: dict[str, object], theirs: dict[str, object]
) -> None:
    cast = good("cast", "CastFromFP8", "dcopy_kernel", "dcopy_kernel<1>", **mine)
    other = good("other", "CastToFP8", "dcopy_kernel", "dcopy_kernel<2>", **theirs)
    assert ("RS026", "error", 1) in found(cast, other)


def test_a_rule_that_overlaps_many_is_told_how_many_after_the_first_five() -> None:
    greedy = good("greedy", "Misc", "some_kernel", "some_kernel_x")
    others = [
        good(f"r{number}", "GEMM", f"some_kernel_{number}", f"some_kernel_{number}")
        for number in range(9)
    ]
    said = [f for f in lint_rules(ruleset(greedy, *others)) if f.code == "RS026"]
    assert len(said) == 6
    assert [f.message for f in said if "more" in f.message] == [
        'rule "greedy" overlaps 4 more rules in this way'
    ]


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (("a.b",), True),
        (("a.*",), True),
        (("GEMM",), True),
        (("a",), False),
        (("*",), False),
        (("b.*", "MLA"), False),
    ],
)
def test_declares(overrides: tuple[str, ...], expected: bool) -> None:
    assert declares(rule("x", overrides=overrides), rule("a.b", "GEMM")) is expected
