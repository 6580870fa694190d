"""Ledger, impact, targets, aliases and successions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from agent.compare.table import compare_traces
from agent.core.rules import RuleSet
from tests.builders import evidence, signature
from tests.unit.compare.runs import graph_rank, rules_for, run

NAMED = "void at::native::(anonymous namespace)::indexSelect<long>(int)"


def categories(entries) -> list[str]:
    return [str(entry.category) for entry in entries]


def test_the_ledger_keeps_introduced_costs_apart_from_others():
    base = {"A/a": (1, 100), "B/b": (1, 100), "C/c": (1, 100)}
    new = {"A/a": (1, 150), "B/b": (1, 70), "D/d": (1, 40)}
    ledger = compare_traces(run(base), run(new)).ledger
    assert categories(ledger.introduced) == ["D"]
    assert categories(ledger.costs) == ["A"]
    assert categories(ledger.savings) == ["C", "B"]
    assert ledger.net_ns == 40 + 50 - 100 - 30


def test_a_faster_kernel_with_a_tiny_share_has_a_tiny_effect():
    """34 % faster at 0.02 % of the time changes the total by 0.007 %."""
    base = {"MLA/k": (10, 2_000), "GEMM/g": (10, 9_998_000)}
    diff = compare_traces(run(base), run({**base, "MLA/k": (10, 1_320)}))
    impact = next(one for one in diff.impacts if one.category == "MLA")
    assert impact.share == Fraction(2, 10_000)
    assert impact.per_call == Fraction(-34, 100)
    assert impact.effect == Fraction(-68, 1_000_000)


def test_a_difference_from_calls_alone_is_an_effect_of_calls():
    base, new = {"A/a": (10, 1_000), "B/b": (4, 4)}, {"A/a": (20, 2_000), "B/b": (4, 4)}
    impact = impact_of_category(compare_traces(run(base), run(new)), "A")
    assert (impact.per_call, impact.per_call_effect) == (0, 0)
    assert impact.calls_effect == impact.effect == Fraction(1_000, 1_004)
    assert (impact.per_call_ns, impact.calls_ns, impact.net_ns) == (0, 1_000, 1_000)


def test_a_category_with_more_and_shorter_calls_is_not_shown_as_a_saving():
    """65.164 ms in 1,738 calls became 83.588 ms in 3,638: shorter calls, and a cost all the same."""
    base = {"Elementwise/e": (1_738, 65_164_000), "GEMM/g": (2_339, 619_297_000)}
    new = {"Elementwise/e": (3_638, 83_588_000), "GEMM/g": (2_339, 619_297_000)}
    impact = impact_of_category(compare_traces(run(base), run(new)), "Elementwise")
    assert impact.per_call_effect < 0 < impact.calls_effect
    assert impact.effect == Fraction(83_588 - 65_164, 684_461)
    assert impact.calls_changed
    assert impact.net_ns == impact.per_call_ns + impact.calls_ns == 18_424_000


def test_the_two_effects_add_up_to_the_difference_per_pass():
    """Ten passes against nine: calls in the ratio of the work have no effect of their own."""
    diff = compare_traces(
        run({"A/a": (100, 1_000), "B/b": (200, 900), "C/c": (10, 70)}),
        run({"A/a": (90, 1_200), "B/b": (180, 810), "C/c": (31, 77)}),
    )
    assert diff.work.ratio == Fraction(9, 10)
    effects = {str(one.category): one for one in diff.impacts}
    assert (effects["A"].calls_effect, effects["A"].calls_changed) == (0, False)
    assert effects["B"].effect == 0
    assert effects["C"].calls_changed
    assert sum(one.effect for one in diff.impacts) == diff.work.total.per_pass
    entries = {entry.category: entry.delta_ns for entry in diff.ledger_per_pass.entries}
    assert {one.category: one.net_ns for one in diff.impacts if one.net_ns} == entries


def test_impacts_stand_in_the_order_of_the_net_effect():
    base = {"A/a": (100, 100_000), "B/b": (10, 10_000), "C/c": (7, 50_000)}
    new = {"A/a": (1_000, 101_000), "B/b": (10, 15_000), "C/c": (7, 50_000)}
    assert [str(one.category) for one in compare_traces(run(base), run(new)).impacts][:2] == [
        "B",
        "A",
    ]


def impact_of_category(diff, category: str):
    return next(one for one in diff.impacts if one.category == category)


def test_a_category_only_on_one_side_has_its_whole_share_as_effect():
    diff = compare_traces(
        run({"A/a": (1, 100), "B/b": (1, 300)}), run({"A/a": (1, 100), "C/c": (1, 60)})
    )
    effects = {str(one.category): one.effect for one in diff.impacts}
    assert effects == {"A": 0, "B": Fraction(-3, 4), "C": Fraction(60, 400)}


def test_a_target_is_bounded_by_its_time_and_cites_the_rules_evidence():
    rules = rules_for({"A", "Cast"})
    pinned = evidence(path="python/x.py", lines=(7, 8))
    cited = tuple(
        replace(one, evidence=(pinned,)) if one.category == "Cast" else one for one in rules.rules
    )
    rules = replace(rules, rules=cited)
    diff = compare_traces(
        run({"A/a": (1, 9)}, rules=rules), run({"A/a": (1, 9), "Cast/c": (3, 33)}, rules=rules)
    )
    [target] = diff.targets
    assert (target.category, target.bound_ns, target.count) == ("Cast", 33, 3)
    assert target.rules[0].evidence == (pinned,)
    assert target.rules[0].time_ns == 33


def test_a_target_without_evidence_says_so():
    [target] = compare_traces(run({"A/a": (1, 9)}), run({"A/a": (1, 9), "B/b": (1, 1)})).targets
    assert not target.pinned


BESIDE = {"Beside/b": (10, 90_000), "Aside/a": (10, 90_000), "Other/o": (10, 90_000)}
"""Kernels that do not change, so that the sides did equal work."""


def kernel_targets(base, new, **fields):
    diff = compare_traces(run({**BESIDE, **base}, **fields), run({**BESIDE, **new}, **fields))
    return [(one.kind, one.row.name, one.bound_ns, one.cost_ns) for one in diff.kernel_targets]


def test_a_new_kernel_inside_an_existing_category_is_a_target():
    found = kernel_targets({"GEMM/g": (10, 1_000)}, {"GEMM/g": (10, 1_000), "GEMM/n": (3, 5_000)})
    assert found == [("introduced", "GEMM/n", 5_000, 5_000)]


def test_a_grown_kernel_is_a_target_bounded_by_its_growth():
    found = kernel_targets({"GEMM/g": (10, 4_000)}, {"GEMM/g": (40, 9_000)})
    assert found == [("grown", "GEMM/g", 5_000, 5_000)]


def test_a_kernel_in_anothers_place_is_bounded_by_its_time_and_ranked_by_what_it_adds():
    """Removing it saves at most its time; what it may stand for took most of that before."""
    base = {"MLA/old": (9, 120_000), "GEMM/g": (10, 4_000)}
    new = {"MLA/new": (9, 122_000), "GEMM/g": (10, 9_000)}
    assert kernel_targets(base, new) == [
        ("grown", "GEMM/g", 5_000, 5_000),
        ("introduced", "MLA/new", 122_000, 2_000),
    ]


def test_a_kernel_that_renamed_ones_outweigh_is_no_target():
    """Two names gone and two new that pair up in no way, together no dearer than before."""
    base = {"GEMM/a": (7, 30_000), "GEMM/b": (11, 30_000)}
    new = {"GEMM/c": (13, 30_000), "GEMM/d": (17, 25_000)}
    assert kernel_targets(base, new) == []


def test_a_difference_below_a_thousandth_of_the_time_is_no_target():
    assert kernel_targets({"GEMM/g": (10, 4_000)}, {"GEMM/g": (10, 4_200)}) == []


def test_a_kernel_of_an_introduced_category_is_no_target_of_its_own():
    assert kernel_targets({}, {"Cast/c": (9, 9_000)}) == []


def test_growth_of_a_kernel_is_what_unequal_work_does_not_explain():
    """Twice the passes; only what each pass costs more counts, in the new side's time."""
    base = {"A/a": (10, 90_000), "B/b": (20, 90_000), "C/c": (30, 90_000), "D/d": (40, 10_000)}
    new = {"A/a": (20, 180_000), "B/b": (40, 180_000), "C/c": (60, 180_000), "D/d": (80, 26_000)}
    [target] = compare_traces(run(base), run(new)).kernel_targets
    assert (target.row.name, target.bound_ns) == ("D/d", 6_000)


def test_a_kernel_target_cites_the_rules_evidence():
    rules = rules_for({"GEMM", "Aside", "Beside", "Other"})
    pinned = evidence(path="python/x.py", lines=(7, 8))
    rules = replace(rules, rules=tuple(replace(one, evidence=(pinned,)) for one in rules.rules))
    base, new = {**BESIDE, "GEMM/g": (1, 9)}, {**BESIDE, "GEMM/g": (1, 9), "GEMM/n": (3, 33_000)}
    [target] = compare_traces(run(base, rules=rules), run(new, rules=rules)).kernel_targets
    [cited] = target.rules
    assert (cited.rule_id, cited.time_ns, cited.evidence) == ("rule.GEMM", 33_000, (pinned,))


def test_an_incomplete_capture_names_no_kernel_as_a_cost():
    full = ("GEMM/a", "MLA/b", "MLA/b")
    diff = compare_traces(run(graph_rank(full, ())), run(graph_rank(full, full)))
    assert not diff.conclusive
    assert diff.kernel_targets == ()


@pytest.mark.parametrize(
    ("base", "new"),
    [
        pytest.param("{lambda()#3}::f", "{lambda()#4}::f", id="a renumbered lambda"),
        pytest.param("{lambda(int)#1}", "[lambda(int) (instance 1)]", id="nsys's spelling"),
        pytest.param("f<int, long>(int)", "f<int,long>(int)", id="white space"),
        pytest.param("(anonymous namespace)::f", "<unnamed>::f", id="unnamed"),
        pytest.param("(anonymous namespace)::f", "(unnamed)::f", id="unnamed in parentheses"),
        pytest.param("(anonymous namespace)::f", "_GLOBAL__N__1f_4_k_cu_9::f", id="nvcc's unnamed"),
        pytest.param("_ZN5aiter3fooEi", "aiter::foo(int)", id="mangled on one side"),
        pytest.param("k.kd", "k", id="the suffix of a code object"),
    ],
)
def test_one_kernel_in_two_spellings_is_one_row(base, new):
    rules = rules_for({"A"})
    diff = compare_traces(labelled_a(rules, base), labelled_a(rules, new))
    assert [(alias.base_names, alias.new_names) for alias in diff.aliases] == [((base,), (new,))]
    assert [kernel.status for row in diff.categories for kernel in row.kernels] == ["both"]
    assert diff.categories[0].delta_ns == 0


@pytest.mark.parametrize(
    ("base", "new"),
    [
        pytest.param(["{lambda(x)#1}"], ["{lambda(x)#3}"], id="an ordinal that carries the dtype"),
        pytest.param(
            ["{lambda()#3}", "{lambda()#5}"], ["{lambda()#4}"], id="two candidates for one name"
        ),
        pytest.param(["f<int>"], ["f<long>"], id="another type"),
    ],
)
def test_names_that_may_be_two_kernels_stay_apart(base, new):
    rules = rules_for({"A"})
    diff = compare_traces(labelled_a(rules, *base), labelled_a(rules, *new))
    assert not diff.aliases


@pytest.mark.parametrize(
    ("base", "new"),
    [
        pytest.param(["f<a, b>", "f<a,b>", "old"], ["f<a, b>", "f<a,b>"], id="both on both sides"),
        pytest.param(["old"], ["f<a, b>", "f<a,b>"], id="both on one side alone"),
    ],
)
def test_two_spellings_of_one_side_are_not_matched_with_each_other(base, new):
    rules = rules_for({"A"})
    diff = compare_traces(labelled_a(rules, *base), labelled_a(rules, *new))
    assert {kernel.name for row in diff.categories for kernel in row.kernels} == {*base, *new}


def labelled_a(rules: RuleSet, *names: str):
    from agent.core.rules import CategoryId, Label, LabelledTrace, RuleId
    from tests.builders import stats, trace

    one = trace({signature(name): stats(1, 10) for name in names})
    label = Label(CategoryId("A"), RuleId("rule.A"), "vendor")
    return LabelledTrace(one, rules, dict.fromkeys(one.stats, label))


def test_a_succession_is_suggested_within_category_and_op_only():
    old, new = signature("MLA/old", op="aten::mla"), signature("MLA/new", op="aten::mla")
    other = signature("MLA/other", op="aten::else")
    base = {"GEMM/g": (10, 100), old: (10, 50)}
    diff = compare_traces(run(base), run({"GEMM/g": (10, 100), new: (10, 30), other: (10, 30)}))
    assert [(pair.old.name, pair.new.name) for pair in diff.replacements] == [
        ("MLA/old", "MLA/new")
    ]
    assert diff.replacements[0].impact(diff.against).effect == Fraction(-2, 5) * Fraction(50, 150)


def test_of_several_successors_the_one_of_like_duration_is_suggested():
    rules = rules_for({"G", "H", "I"})
    both = {"H/h": (10, 10**6), "I/i": (10, 10**6)}
    base = run({**both, "G/short": (10, 1_000), "G/long": (10, 90_000)}, rules=rules)
    after = {"G/a": (10, 95_000), "G/b": (10, 1_100), "G/c": (10, 40_000)}
    new = run({**both, **after}, rules=rules)
    pairs = compare_traces(base, new).replacements
    assert [(pair.old.name, pair.new.name) for pair in pairs] == [
        ("G/long", "G/a"),
        ("G/short", "G/b"),
    ]


def test_unlabelled_kernels_are_never_paired():
    diff = compare_traces(run({"Unlabelled/a": (1, 1)}), run({"Unlabelled/b": (1, 1)}))
    assert not diff.replacements
