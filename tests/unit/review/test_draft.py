from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent.core.proposals import Finding, Origin
from agent.core.rules import RuleId
from agent.errors import RuleFileError
from agent.review.draft import Draft, Moves, draft_rule, unified_diff, what_moves
from agent.ruleset.codec import builtin_version, load_builtin, parse_rules
from agent.ruleset.lint import lint_rules
from agent.ruleset.match import Matcher
from tests.builders import rule, ruleset, signature, stats, trace
from tests.unit.review.fakes import ADA, small_trace, verdict

MINE = (
    "# ours\nschema = 1\nversion = 4\n\n[[category]]\nid = 'Attention'\ntitle = 'A'\n\n"
    "[[rule]]\nid = 'attention.mine'  # kept\ncategory = 'Attention'\nkernel = '^_my_\\w+1'\ngrade = 'vendor'\n"
    "examples = ['_my_stage1']\n"
)


def test_the_first_rule_makes_a_file_of_version_one_that_extends_the_builtin_one() -> None:
    draft = draft_rule(verdict(), ADA, text=None, ruleset=load_builtin(), trace=small_trace())
    assert draft.after.startswith(
        f"schema = 1\nversion = 1\nextends = 'builtin@{builtin_version()}'\n"
    )
    assert draft.before is None
    assert draft.diff[:2] == ("--- /dev/null", "+++ b/label-rules.toml")
    assert all(line.startswith("+") for line in draft.diff[3:])


def test_the_drafted_rule_carries_evidence_origin_and_who_accepted() -> None:
    origin = Origin("openai", "gpt", "gpt-1", prompt="propose@1")
    draft = draft_rule(verdict(origin=origin), ADA, text=None, ruleset=load_builtin())
    written = parse_rules(draft.after).by_id[RuleId("attention.my-stage2")]
    assert written.grade == "validated"
    assert written.evidence[0].pin is not None
    assert written.evidence[0].pin.guards == ("+self.fp8",)
    assert written.proposed_by == origin
    assert written.accepted_by == ADA
    assert written.examples == ("_my_stage2",)


def test_a_persons_own_rule_names_no_model() -> None:
    draft = draft_rule(verdict(), ADA, text=None, ruleset=load_builtin())
    assert draft.rule.proposed_by is None


def test_counterexamples_are_the_nearest_names_that_do_not_match() -> None:
    run = small_trace("_my_stage2", "_my_stage1", "cutlass_gemm", "_my_stage3" + "x" * 500)
    draft = draft_rule(verdict(), ADA, text=None, ruleset=ruleset(), trace=run)
    assert draft.rule.counterexamples == ("_my_stage1",)


def test_examples_of_other_categories_are_counterexamples_too() -> None:
    rules = ruleset(
        rule("mla.x", "MLA", "x", examples=("_my_stage2_rope",)),
        rule("attention.y", "Attention", "y", examples=("_my_stage2_y",)),
    )
    draft = draft_rule(verdict(), ADA, text=None, ruleset=rules)
    assert draft.rule.counterexamples == ("_my_stage2_rope",)


def test_every_other_byte_of_the_file_stays() -> None:
    rules = parse_rules(MINE)
    draft = draft_rule(
        verdict(overrides=("attention.mine",)), ADA, text=MINE, ruleset=rules, trace=small_trace()
    )
    removed = [line for line in draft.diff[2:] if line.startswith("-")]
    assert removed == ["-version = 4"]
    assert parse_rules(draft.after).version == 5
    assert [entry.id for entry in draft.ruleset.rules] == ["attention.my-stage2", "attention.mine"]


@pytest.mark.parametrize("before", [None, MINE, MINE + "# no line end", MINE.replace("\n", "\r\n")])
def test_the_diff_is_one_that_git_applies(tmp_path: Path, before: str | None) -> None:
    """What is reviewed is the change: git makes the new bytes out of the old and the diff."""
    rules = load_builtin() if before is None else parse_rules(before)
    draft = draft_rule(verdict(), ADA, text=before, ruleset=rules)
    if before is not None:
        (tmp_path / "label-rules.toml").write_bytes(before.encode())
    patch = "\n".join(draft.diff) + "\n"
    subprocess.run(
        ["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True, capture_output=True
    )
    assert (tmp_path / "label-rules.toml").read_bytes() == draft.after.encode()


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff(MINE, MINE, "x") == ()


def test_what_moves_counts_names_events_and_time_by_category() -> None:
    old = ruleset(rule("elementwise.any", "Elementwise", "copy"))
    new = ruleset(rule("cast.x", "CastFromFP8", "copy_a"), *old.rules)
    run = trace(
        {
            signature("copy_a"): stats(2, 10),
            signature("copy_a", op="aten::to"): stats(1, 5),
            signature("copy_b"): stats(1, 100),
        },
        {signature("copy_a"): stats(4, 20)},
    )
    moves = what_moves(run, old, new)
    (move,) = moves.moves
    assert (move.category_from, move.category_to) == ("Elementwise", "CastFromFP8")
    assert (move.names, move.count, move.time_ns, move.rules) == (1, 7, 35, ("elementwise.any",))
    assert moves.kernels == (("copy_a", 7, 35),)
    assert (moves.names, moves.count, moves.time_ns, moves.total_ns) == (1, 7, 35, 135)


def test_moves_agree_with_labels_counted_one_by_one() -> None:
    run = small_trace("_my_stage2", "_my_stage1", "ncclDevKernel_Generic_4()", "x_my_stage2")
    old = load_builtin()
    draft = draft_rule(verdict(kernel="_my_stage"), ADA, text=None, ruleset=old, trace=run)
    before, after = Matcher(old), Matcher(draft.ruleset)
    changed = [s for s in run.stats if before.label(s).category != after.label(s).category]
    assert draft.moves.count == sum(run.stats[s].count for s in changed) == 6
    assert draft.moves.time_ns == sum(run.stats[s].time_ns for s in changed)


def test_without_a_trace_nothing_is_known_to_move() -> None:
    assert what_moves(None, load_builtin(), load_builtin()) == Moves()


@pytest.mark.parametrize(
    "fields",
    [
        {"admitted": False, "findings": (Finding("E_X", "no"),)},
        {"level": "L2"},
    ],
)
def test_only_an_admitted_validated_verdict_is_drafted(fields) -> None:
    with pytest.raises(ValueError, match="admitted"):
        draft_rule(verdict(**fields), ADA, text=None, ruleset=load_builtin())


def test_a_rule_the_file_cannot_take_is_a_rule_file_error() -> None:
    with pytest.raises(RuleFileError):
        draft_rule(verdict(category="NoSuch"), ADA, text=None, ruleset=load_builtin())


def test_ids_do_not_collide_with_any_rule_in_force() -> None:
    first = draft_rule(verdict(), ADA, text=None, ruleset=load_builtin())
    wanted = verdict("x_my_stage2", kernel="_my_stage2$")
    again = draft_rule(wanted, ADA, text=first.after, ruleset=first.ruleset)
    assert [first.rule.id, again.rule.id] == ["attention.my-stage2", "attention.my-stage2-2"]


def test_names_that_are_not_unicode_are_no_examples() -> None:
    wanted = verdict(kernel="my_stage2", kernels=("my_stage2\ud800", "my_stage2"))
    run = small_trace("my_stage2\ud800", "my_stage2", "my_stage_x\ud800")
    draft = draft_rule(wanted, ADA, text=None, ruleset=ruleset(), trace=run)
    assert draft.rule.examples == ("my_stage2",)
    assert draft.rule.counterexamples == ()


COPY = (
    "void at::native::elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel_impl<"
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const"
    "::{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&, "
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const"
    "::{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1} const&)::{lambda(int, bool)#1}>"
    "(int, {lambda(int, bool)#1})"
)
BFLOAT16, FP8 = "c10::BFloat16", "c10::Float8_e4m3fnuz"


def read_cast() -> Draft:
    """A cast that was told by its absence from the baseline, as the gate admits it."""
    wanted = verdict(
        COPY,
        "CastFromFP8",
        kernel=r"gpu_kernel_impl<.*direct_copy_kernel_cuda.*lambda\(c10::BFloat16\)",
        overrides=("elementwise.aten",),
        dtypes_unknown=True,
    )
    return draft_rule(wanted, ADA, text=None, ruleset=load_builtin())


def test_a_cast_told_by_absence_takes_no_copy_whose_dtypes_are_known() -> None:
    matcher = Matcher(read_cast().ruleset)
    known = {
        dtypes: matcher.label(signature(COPY, op="aten::copy_", input_dtypes=dtypes)).category
        for dtypes in ((BFLOAT16, "float"), (FP8, BFLOAT16), (BFLOAT16, FP8))
    }
    assert list(known.values()) == ["Elementwise", "CastToFP8", "CastFromFP8"]
    assert matcher.label(signature(COPY, replayed=True)).rule_id == read_cast().rule.id


def test_a_cast_told_by_absence_leaves_the_rule_file_clean() -> None:
    draft = read_cast()
    assert draft.rule.overrides == ("elementwise.aten", "elementwise.words")
    found = lint_rules(parse_rules(draft.after))
    assert [finding for finding in found if finding.severity == "error"] == []


def test_nothing_is_overridden_for_a_rule_that_declares_nothing() -> None:
    wanted = verdict("_add_my_kernel", kernel="^_add_my_kernel$")
    with pytest.raises(RuleFileError) as caught:
        draft_rule(wanted, ADA, text=None, ruleset=load_builtin())
    assert {finding.code for finding in caught.value.findings} == {"RS026"}


def test_what_was_wrong_with_the_file_before_is_no_reason_to_refuse() -> None:
    broken = MINE.replace("_my_\\w+1", "kernel")
    broken = broken.replace("'_my_stage1'", "'kernel_1'")
    assert any(one.severity == "error" for one in lint_rules(parse_rules(broken)))
    assert draft_rule(verdict(), ADA, text=broken, ruleset=parse_rules(broken)).rule.examples
