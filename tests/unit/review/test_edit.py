from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.core.proposal_form import proposal_from, proposal_json
from agent.core.proposals import Finding, Proposal
from agent.review.edit import edit_text, edited, with_change
from tests.builders import evidence, proposal

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


def _formal(**fields: object) -> Proposal:
    found = proposal_from(proposal_json(proposal(**fields)))
    assert isinstance(found, Proposal)
    return found


def test_the_text_comes_back_as_the_same_proposal() -> None:
    wanted = _formal(
        op="^aten::copy_$",
        input_dtypes=("c10::BFloat16", ""),
        overrides=("a", "b"),
        kernels=("it's", 'a "b"\\', "\u202e\x1b\n"),
        rationale="two\nlines",
        evidence=(
            evidence(symbol="f", guard="x == 'y'", snippet="\tk = v\n"),
            evidence(kind="emission"),
        ),
    )
    assert edited(edit_text(wanted)) == wanted


@given(TEXT, TEXT, TEXT)
def test_any_text_comes_back(kernel: str, rationale: str, snippet: str) -> None:
    wanted = _formal(kernel=kernel, rationale=rationale, evidence=(evidence(snippet=snippet),))
    assert edited(edit_text(wanted)) == wanted


def test_an_editor_sees_no_hidden_characters() -> None:
    text = edit_text(proposal(kernel="a\u202eb\x1b"))
    assert r'kernel = "a\U0000202eb\U0000001b"' in text


def test_one_field_can_change_and_is_checked() -> None:
    changed = with_change(_formal(), "kernel", "^new$")
    assert isinstance(changed, Proposal)
    assert (changed.kernel, changed.category) == ("^new$", "Attention")
    assert isinstance(with_change(_formal(), "category", ""), Finding)


def test_edited_text_may_not_set_what_the_gate_sets() -> None:
    found = edited(edit_text(_formal()) + "[evidence.pin]\nblob = 'x'\n")
    assert isinstance(found, Finding)
