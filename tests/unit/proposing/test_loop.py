"""The loop asks within its limits, hands rejections back, and never asks twice."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agent.core.proposals import Finding, Proposal, Verdict
from agent.errors import ModelUnavailable, ReplyFormatError
from agent.proposing.budget import Limits
from agent.proposing.loop import first_request, propose_families
from agent.proposing.providers.base import Reply
from agent.proposing.recorder import Recorder, replies_in
from agent.review.journal import Record
from agent.ruleset.match import label_trace
from tests.builders import rule, ruleset, signature, stats, trace
from tests.unit.proposing.fakes import (
    SCALE,
    MemorySource,
    ScriptedModel,
    admit,
    asking,
    dossiers,
    submit,
)

ABSTAIN = {"do": "abstain", "reason": "not sure"}
LOOK = {"do": "find_definition", "name": SCALE}
OTHER = "_norm_cols_inplace"
GOLDEN = Path(__file__).parents[2] / "golden" / "prompts" / "case.txt"


def _run(*replies: object, names: tuple[str, ...] = (SCALE,), **fields: object):
    model, source = ScriptedModel(list(replies)), MemorySource()
    shared = asking(model, source, **fields)
    return list(propose_families(dossiers(source, *names), shared)), model, source


def _reject(proposal: Proposal) -> Verdict:
    finding = Finding("E_STEALS", "it takes others", hint="anchor the pattern")
    return Verdict(proposal, admitted=False, level="L0", findings=(finding,))


def test_a_numbered_candidate_becomes_its_evidence_and_its_pattern() -> None:
    (asked,), _, _ = _run(submit())
    proposal = asked.verdict.proposal
    assert asked.answer == "admitted"
    assert proposal.kernel == f"^{SCALE}$"
    assert [one.kind for one in proposal.evidence] == ["definition", "emission"]
    assert proposal.kernels == (SCALE,)


def test_the_origin_says_who_was_asked_and_who_answered() -> None:
    (asked,), _, _ = _run(submit())
    origin = asked.verdict.proposal.origin
    assert (origin.provider, origin.model, origin.model_returned) == (
        "openai",
        "scripted",
        "scripted-1",
    )
    assert (origin.host, origin.fingerprint, origin.prompt) == ("127.0.0.1", "fp", "family@2")
    assert len(origin.prompt_digest) == 64


def test_results_of_a_question_are_in_the_next_request() -> None:
    (asked,), model, _ = _run({"do": "test_pattern", "kernel": f"^{SCALE}$"}, ABSTAIN)
    assert asked.answer == "abstained"
    assert "| matches 1 of the 1 names" in model.asked[1].messages[-1].text
    assert asked.turns == 2
    assert asked.usage.total == 220


def test_rejections_go_back_twice_and_then_the_family_is_rejected() -> None:
    (asked,), model, _ = _run(submit(), submit(kernel="_scale_rows"), submit(), judge=_reject)
    assert (asked.answer, len(model.asked)) == ("rejected", 3)
    assert (
        "| E_STEALS: it takes others (hint: anchor the pattern)" in model.asked[1].messages[-1].text
    )
    assert asked.verdict is not None


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({}, ""),
        ({"op": "scale_rows"}, "no launch of the family has this op: leave both empty"),
        (
            {"op": "^aten::copy_$", "input_dtypes": ["bf16", "fp8"]},
            "no launch of the family has this op with these input_dtypes: leave both empty",
        ),
    ],
    ids=["no condition", "an op", "an op and dtypes"],
)
def test_conditions_that_no_launch_meets_are_named_in_the_feedback(
    stated: dict[str, object], said: str
) -> None:
    """A small model filled `op` with a Python function, three times over."""
    finding = Finding("E_NO_KERNEL_MATCHED", "no kernel of the trace matches")

    def judge(proposal: Proposal) -> Verdict:
        return Verdict(proposal, admitted=False, level="L0", findings=(finding,))

    _, model, _ = _run(submit(**stated), ABSTAIN, judge=judge)
    told = model.asked[1].messages[-1].text
    assert "| E_NO_KERNEL_MATCHED: no kernel of the trace matches" in told
    assert ("leave both empty" in told) == bool(said)
    assert said in told


def test_a_repeated_proposal_is_judged_once() -> None:
    judged: list[str] = []

    def judge(proposal: Proposal) -> Verdict:
        judged.append(proposal.id)
        return _reject(proposal)

    _run(submit(), submit(), submit(), judge=judge)
    assert len(judged) == 1


def test_an_unusable_reply_gets_one_repair_turn_that_quotes_the_reason() -> None:
    (asked,), model, _ = _run("not json", submit())
    assert asked.answer == "admitted"
    assert "| not one JSON value" in model.asked[1].messages[-1].text


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "{}",
        Reply("x", finish="length"),
        Reply("", finish="refusal"),
        submit(candidates=[7]),
        ReplyFormatError("ML020", "no completion"),
    ],
    ids=["empty", "schema", "cut off", "refused", "no such candidate", "no completion"],
)
def test_two_unusable_replies_end_that_family_alone(bad: object) -> None:
    asked, _, _ = _run(bad, bad, submit(), names=(SCALE, OTHER))
    assert [one.answer for one in asked] == ["failed", "admitted"]


def test_a_family_ends_after_its_turns() -> None:
    looks = [{**LOOK, "name": f"{SCALE}_{number}"} for number in range(9)]
    (asked,), model, _ = _run(*looks, limits=Limits(turns=3))
    assert (asked.answer, len(model.asked)) == ("failed", 3)


def test_a_question_asked_again_and_again_ends_its_family_after_one_reminder() -> None:
    """A small model asked for one search twelve times over."""
    (asked,), model, source = _run(*[LOOK] * 12, limits=Limits(turns=12))
    assert (asked.answer, len(model.asked)) == ("failed", 3)
    assert source.questions.count(f"define {SCALE}") == 1
    assert "| that was asked before and its result stands above" in model.asked[2].messages[-1].text


def test_a_reminder_is_enough_for_a_model_that_goes_on() -> None:
    (asked,), _, _ = _run(LOOK, LOOK, submit())
    assert asked.answer == "admitted"


def test_nobody_is_asked_about_a_vendor_library() -> None:
    asked, model, _ = _run(submit(), names=("Cijk_Alik_Bljk_BBS_BH_MT128x128x64", SCALE))
    assert {one.family.vendor: one.answer for one in asked} == {
        True: "abstained",
        False: "admitted",
    }
    assert len(model.asked) == 1


def test_without_candidates_a_rule_needs_evidence_that_a_look_found() -> None:
    (dossier,) = dossiers(MemorySource())
    model = ScriptedModel([submit(candidates=[], kernel="^x_y_z_w$"), ABSTAIN])
    bare = replace(dossier, candidates=())
    (asked,) = propose_families([bare], asking(model, MemorySource()))
    assert asked.answer == "abstained"
    assert "abstain" in model.asked[0].messages[-1].text
    assert "| give evidence that a look found, or abstain" in model.asked[1].messages[-1].text


def test_a_model_that_cannot_be_reached_ends_the_asking() -> None:
    asked, model, _ = _run(ModelUnavailable("ML016", "no answer"), names=(SCALE, OTHER))
    assert [one.answer for one in asked] == ["unasked", "unasked"]
    assert len(model.asked) == 1


def test_a_request_refused_in_the_middle_ends_its_family_alone() -> None:
    refused = ModelUnavailable("ML013", "too long")
    asked, _, _ = _run(LOOK, refused, submit(), names=(SCALE, OTHER))
    assert [one.answer for one in asked] == ["failed", "admitted"]


@pytest.mark.parametrize(
    "limits",
    [Limits(calls=1), Limits(tokens=50), Limits(deadline_s=2.5)],
    ids=["calls", "tokens", "deadline"],
)
def test_no_call_is_made_once_a_limit_is_reached(limits: Limits) -> None:
    ticks = count()
    asked, model, _ = _run(
        LOOK, submit(), names=(SCALE, OTHER), limits=limits, clock=lambda: float(next(ticks))
    )
    assert [one.answer for one in asked] == ["unasked", "unasked"]
    assert len(model.asked) == 1
    assert "PR003" in asked[0].reason


class _Cut(BaseException):
    """The process ends here."""


def test_what_the_journal_holds_is_not_asked_again() -> None:
    records: list[Record] = []

    def append(kind: str, data: Any) -> None:
        records.append(Record(len(records) + 1, kind, data))

    with pytest.raises(_Cut):
        _run(LOOK, _Cut(), recorder=Recorder(append))
    assert len(records) == 1
    (asked,), model, _ = _run(submit(), recorder=Recorder(append, known=replies_in(records)))
    assert (asked.answer, len(model.asked), asked.turns) == ("admitted", 1, 1)
    (again,), idle, _ = _run(recorder=Recorder(append, known=replies_in(records)))
    assert (again.verdict, len(idle.asked), again.usage.total) == (asked.verdict, 0, 0)


def test_a_reply_is_in_the_journal_before_it_is_judged() -> None:
    order: list[str] = []

    def judge(proposal: Proposal) -> Verdict:
        order.append("judge")
        return Verdict(proposal, admitted=True, level="L3")

    _run(submit(), judge=judge, recorder=Recorder(lambda kind, _: order.append(kind)))
    assert order == ["turn", "judge"]


def test_names_only_sends_no_source_and_reads_none() -> None:
    (asked,), model, source = _run(
        {"do": "read_source", "repo": "serve", "path": "layers/rms_norm.py", "first": 1, "last": 3},
        submit(),
        names_only=True,
    )
    assert (asked.answer, source.questions) == ("admitted", [])
    sent = "\n".join(message.text for request in model.asked for message in request.messages)
    assert "@triton.jit" not in sent
    assert "RmsNorm.forward" not in sent


def test_the_case_of_a_family_is_as_it_was_reviewed_golden() -> None:
    """A change of a prompt or of how a case is written shows here: `make golden` rewrites it."""
    shared = asking(ScriptedModel([]), MemorySource())
    request = first_request(dossiers(MemorySource())[0], shared)
    text = "".join(f"===== {one.role}\n{one.text}" for one in request.messages)
    if os.environ.get("LABEL_AGENT_GOLDEN") == "write":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_a_category_that_the_family_has_already_is_not_judged() -> None:
    rules = ruleset(rule("elementwise.words", "Elementwise", SCALE))
    run = label_trace(trace({signature(SCALE): stats()}), rules)
    (one,) = dossiers(MemorySource())
    member = replace(one.family.members[0], label=next(iter(run.labels.values())))
    held = replace(one, family=replace(one.family, members=(member,)))
    model = ScriptedModel([submit(category="Elementwise"), submit()])
    (asked,) = propose_families([held], asking(model, MemorySource(), judge=admit))
    assert "the family is Elementwise already" in model.asked[1].messages[-1].text
    assert asked.verdict.proposal.overrides == ("elementwise.words",)
