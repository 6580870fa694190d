from __future__ import annotations

import unicodedata

import pytest

from agent.core.proposals import Finding, Origin, Verdict
from agent.errors import ReviewError
from agent.review.session import Outcome, count_states, review
from tests.builders import evidence, proposal
from tests.unit.review.fakes import ADA, FakeConsole, FakeDesk, small_trace, verdict

REJECTED = Verdict(proposal(), False, "L1", (Finding("E_STEALS", "takes a name"),))


def _played(*answers: str | None, desk: FakeDesk | None = None, **fields: object):
    desk = desk or FakeDesk()
    console = FakeConsole(list(answers), **fields)  # type: ignore[arg-type]
    (outcome,) = review([verdict()], desk.desk(), console)
    return outcome, desk, console


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(["", "", ""], id="Enter alone, then the end of the input"),
        pytest.param(["  "], id="blanks"),
        pytest.param(["y", "yes", "ok", "aa", "acc", "1", "A A"], id="near misses"),
        pytest.param(["\x1b[A", "\x04", "ａ"], id="control and wide characters"),
        pytest.param([], id="nothing at all"),
        pytest.param(["q", "a"], id="quit, with more typed ahead"),
        pytest.param(["?", "help"], id="only help"),
        pytest.param(["r"], id="the input ends at the reason"),
        pytest.param(["e", "", "", ""], id="edit without an editor, all fields kept"),
    ],
)
def test_nothing_is_accepted_unless_it_is_said(answers: list[str]) -> None:
    outcome, desk, _ = _played(*answers)
    assert outcome.state == "pending"
    assert desk.text is None
    assert desk.decisions == []


@pytest.mark.parametrize("answer", ["a", "A", "accept", " Accept "])
def test_accept_writes_the_diff_that_was_shown(answer: str) -> None:
    outcome, desk, console = _played(answer)
    assert outcome.state == "accepted"
    assert outcome.rule is not None
    assert outcome.rule.id == "attention.my-stage2"
    assert [line[1:] for line in console.lines if line.startswith("+")][1:] == (
        desk.text or ""
    ).splitlines()
    assert [(d.proposal_id, d.action, d.by) for d in desk.decisions] == [
        ("id-_my_stage2", "accept", ADA.author)
    ]
    assert "commit cccccccccccc on main" in console.lines[-1]


@pytest.mark.parametrize("reason", ["is a helper kernel", ""])
def test_a_rejection_keeps_its_reason(reason: str) -> None:
    outcome, desk, console = _played("r", f" {reason} ")
    assert (outcome.state, outcome.reason) == ("rejected", reason)
    assert [(d.action, d.reason) for d in desk.decisions] == [("reject", reason)]
    assert console.prompts[-1] == "reason: "


def test_skip_is_recorded_and_quit_is_not() -> None:
    assert _played("s")[1].decisions[0].action == "skip"
    assert _played("q")[1].decisions == []


def test_quit_leaves_the_rest_pending() -> None:
    desk, console = FakeDesk(), FakeConsole(["a", "q"])
    names = ("_my_stage1", "_my_stage2", "_my_stage3")
    outcomes = review([verdict(name) for name in names], desk.desk(), console)
    assert [outcome.state for outcome in outcomes] == ["accepted", "pending", "pending"]
    assert dict(count_states(outcomes)) == {"accepted": 1, "pending": 2}


def test_the_reviewer_sees_rule_source_moves_and_findings() -> None:
    desk = FakeDesk(gate={"^_my_stage2$": verdict(findings=(Finding("E_NEAR", "look", "note"),))})
    wanted = verdict(origin=Origin("openai", "gpt", "gpt-2"), rationale="because")
    console = FakeConsole()
    desk.gate["^_my_stage2$"] = verdict(
        findings=(Finding("E_NEAR", "look", "note", "a.py:3", "h"),)
    )
    review([wanted], desk.desk(), console)
    text = console.text
    assert "1/1  attention.my-stage2  Attention, admitted at L3" in text
    assert "moves: 1 name, 2 events, 3.000 ms (33.33 % of kernel time)" in text
    assert "Unlabelled -> Attention: 1 name, 2 events, 3.000 ms" in text
    assert "definition: sglang@000000000000 python/kernels.py:10-11" in text
    assert "in Backend.forward" in text
    assert "when +self.fp8" in text
    assert "      9  line 9" in text
    assert ">     10  line 10" in text
    assert ">     11  line 11" in text
    assert "     14  line 14" in text
    assert "line 15" not in text
    assert "note: E_NEAR a.py:3 look" in text
    assert 'its reason: "because"' in text
    assert "proposed by openai:gpt-2" in text


def test_source_that_cannot_be_read_is_said_and_does_not_end_the_review() -> None:
    desk, console = FakeDesk(), FakeConsole(["s"])
    wanted = verdict(evidence=(evidence(path="gone.py"), evidence(kind="binary")))
    (outcome,) = review([wanted], desk.desk(), console)
    assert outcome.state == "skipped"
    assert "cannot be shown: SC002 no such file" in console.text


HOSTILE = "\x1b]0;t\x07\x1b[2J\r\u202eevil\u2066\u200b\ud800[/bold][link=x]"


def test_no_foreign_text_reaches_the_terminal_raw() -> None:
    name, text = "_my_stage2", HOSTILE.replace("\ud800", "")
    run = small_trace(name + HOSTILE, name, HOSTILE)
    wanted = verdict(
        kernel="_my_stage2",
        kernels=(name,),
        rationale=HOSTILE,
        origin=Origin(text, text, text),
        evidence=(evidence(path=text, repo=text, symbol=text),),
    )
    finding = Finding("E_NEAR", HOSTILE, "warning", HOSTILE, HOSTILE)
    desk = FakeDesk(trace=run, gate={"_my_stage2": verdict(findings=(finding,))})
    desk.gate["^bad$"] = Verdict(wanted.proposal, False, "L1", (Finding("E_X", HOSTILE),))
    desk.failures = [ReviewError("RV013", HOSTILE, hint=HOSTILE)]
    console = FakeConsole(
        [HOSTILE, "a", "e", "e", "", "s"], edits=[f"x = '{HOSTILE}", _change("^bad$")]
    )
    desk.read = lambda *_: (HOSTILE,) * 9  # type: ignore[method-assign]
    (outcome,) = review([wanted], desk.desk(), console)
    assert outcome.state == "skipped"
    for text in (*console.lines, *console.prompts):
        bad = {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs"}}
        assert not bad, text
    assert r"\x1b[2J\x0d\u202eevil" in console.text
    assert "[/bold][link=x]" in console.text


def _change(kernel: str):
    return lambda text: text.replace("kernel = '_my_stage2'", f"kernel = '{kernel}'").replace(
        "kernel = '^_my_stage2$'", f"kernel = '{kernel}'"
    )


def test_an_edited_rule_goes_through_the_gate_and_is_shown_again() -> None:
    outcome, desk, console = _played("e", "a", edits=[_change("^_my_stage[12]$")])
    assert outcome.state == "accepted"
    assert [decision.action for decision in desk.decisions] == ["edit", "accept"]
    assert "kernel = '^_my_stage[12]$'" in (desk.text or "")
    assert "1/1 (edited)" in console.text


def test_an_edit_that_the_gate_rejects_is_not_accepted() -> None:
    desk = FakeDesk(gate={"^x$": REJECTED})
    outcome, desk, console = _played("e", "", "s", desk=desk, edits=[_change("^x$")])
    assert outcome.state == "skipped"
    assert "E_STEALS takes a name" in console.text
    assert [decision.action for decision in desk.decisions] == ["skip"]


def test_a_rejected_edit_can_be_edited_again_from_where_it_was() -> None:
    desk = FakeDesk(gate={"^x$": REJECTED})
    again = lambda text: text.replace("'^x$'", "'^_my_stage2'")  # noqa: E731
    outcome, _, console = _played("e", "e", "a", desk=desk, edits=[_change("^x$"), again])
    assert outcome.state == "accepted"
    assert "kernel = '^x$'" in console.offered[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("kernel = ", "not TOML", id="not TOML"),
        pytest.param("kernel = 'a'\nkernel = 'b'", "not TOML", id="a key twice"),
        pytest.param("level = 'L4'", "level", id="a key the proposer may not set"),
        pytest.param("[" * 5000, "not TOML", id="nested"),
    ],
)
def test_an_edit_that_cannot_be_read_says_why(text: str, says: str) -> None:
    outcome, _, console = _played("e", "", "q", edits=[text])
    assert outcome.state == "pending"
    assert says in console.text


@pytest.mark.parametrize("text", ["", "# only comments\n"])
def test_an_emptied_edit_changes_nothing(text: str) -> None:
    _, desk, console = _played("e", "q", edits=[text])
    assert "nothing was changed" in console.text
    assert desk.decisions == []


def test_without_an_editor_fields_are_asked_one_by_one() -> None:
    outcome, desk, console = _played("e", r"^_my_stage[0-9]+$", "", "", "a")
    assert outcome.state == "accepted"
    assert r"kernel = '^_my_stage[0-9]+$'" in (desk.text or "")
    assert console.prompts[1].startswith("kernel [")


def test_a_commit_that_fails_leaves_the_choice_open() -> None:
    desk = FakeDesk(failures=[ReviewError("RV013", "a hook rejected", hint="mend it")])
    outcome, desk, console = _played("a", "a", desk=desk)
    assert outcome.state == "accepted"
    assert "RV013 a hook rejected" in console.text
    assert "hint: mend it" in console.text


def test_what_the_gate_no_longer_admits_is_refused_unasked() -> None:
    outcome, _, console = _played("a", desk=FakeDesk(gate={"^_my_stage2$": REJECTED}))
    assert outcome.state == "refused"
    assert console.prompts == []
    assert "no longer admitted" in console.text


def test_a_rule_the_file_cannot_take_stays_pending() -> None:
    desk, console = FakeDesk(), FakeConsole(["a"])
    (outcome,) = review([verdict(category="NoSuch")], desk.desk(), console)
    assert outcome.state == "pending"
    assert "cannot take" in console.text


SHADOWED = (
    "schema = 1\nversion = 1\n\n[[rule]]\nid = 'mla.mine'\ncategory = 'MLA'\nkernel = '^_my_stage'\n"
    "grade = 'vendor'\nexamples = ['_my_stage9']\ncounterexamples = ['x']\n"
)


def test_a_rule_that_breaks_lint_is_not_accepted() -> None:
    desk = FakeDesk(text=SHADOWED)
    outcome, desk, console = _played("a", "r", "shadowed", desk=desk)
    assert outcome.state == "rejected"
    assert desk.text == SHADOWED
    assert 'RS024 label-rules.toml:12 rule "attention.my-stage2" never decides' in console.text
    assert "cannot take it as it is" in console.text
    outcomes, console = _unasked(verdict(), desk=desk)
    assert [one.state for one in outcomes] == ["pending"]
    assert "attention.my-stage2" in outcomes[0].reason


def test_the_last_line_above_the_prompt_says_what_is_decided_on() -> None:
    _, _, console = _played("?", "s")
    expected = (
        "1/1  attention.my-stage2  Attention  moves 1 name, 3.000 ms (33.33 % of kernel time)"
    )
    assert [line for line in console.lines if line.startswith("1/1")][1:] == [expected] * 2
    assert console.lines[-1] == expected


def _unasked(*wanted: Verdict, desk: FakeDesk) -> tuple[tuple[Outcome, ...], FakeConsole]:
    console = FakeConsole(["r", "no"])
    return review(wanted, desk.desk(), console, accept_validated=True), console


def test_accept_validated_asks_nobody_and_shows_every_diff() -> None:
    desk = FakeDesk()
    outcomes, console = _unasked(verdict("_my_stage1"), verdict("_my_stage2"), desk=desk)
    assert [outcome.state for outcome in outcomes] == ["accepted", "accepted"]
    assert console.prompts == []
    assert console.text.count("+++ b/label-rules.toml") == 2
    assert "version = 2" in (desk.text or "")


def test_accept_validated_leaves_conflicts_to_a_person() -> None:
    desk = FakeDesk()
    _unasked(verdict("_my_stage2", kernel="^_my_stage_?[12]$"), desk=desk)
    assert "id = 'attention.my-stage'" in (desk.text or "")
    taking = verdict(
        "_my_stage1", category="MLA", kernel="^_my_stage1$", overrides=("attention.my-stage",)
    )
    outcomes, console = _unasked(taking, desk=desk)
    assert [outcome.state for outcome in outcomes] == ["pending"]
    assert "a person has to look" in console.text
    warned = verdict("_my_stage1", findings=(Finding("E_NEAR", "several sites", "warning"),))
    desk.gate["^_my_stage1$"] = warned
    assert _unasked(warned, desk=desk)[0][0].state == "pending"


def test_accept_validated_stops_at_a_commit_that_fails() -> None:
    desk = FakeDesk(failures=[ReviewError("RV013", "a hook rejected")])
    with pytest.raises(ReviewError):
        _unasked(verdict("_my_stage1"), verdict("_my_stage2"), desk=desk)
    assert desk.text is None
