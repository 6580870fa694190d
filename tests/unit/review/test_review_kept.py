"""Kept proposals, reviewed later from the journal alone: real traces, sources and gate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli.proposals import outcomes_json, outcomes_text
from agent.core.proposal_form import proposal_from
from agent.core.proposals import Proposal
from agent.errors import LabelAgentError
from agent.review.journal import Journal
from agent.review.records import RUN, run_record
from agent.workflows.demo import prepare_demo
from agent.workflows.inputs import RunInputs, kept_run, open_inputs
from agent.workflows.review import ReviewOptions, ReviewResult, review_kept
from agent.workflows.workbench import Workbench
from agent.workflows.workplace import open_workplace
from tests.unit.review.fakes import FakeConsole
from tests.unit.review.worktrees import RULES, git

INPUTS = RunInputs(("../traces/fp8",), ("../traces/bf16",), ("../tinyserve",))
ROTATE = "_rotate_pairs_inplace"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo's rule repository with one proposal kept, as after `propose` in a pipe."""
    laid = prepare_demo(tmp_path / "demo")
    monkeypatch.chdir(laid.rules)
    place, opened = open_workplace(), open_inputs(INPUTS)
    run = kept_run(INPUTS, opened.source, place, "")
    with Journal(place.journal) as journal:
        journal.append(RUN, run_record(run))
        bench = Workbench(place, journal, run.id, opened.trace, opened.judge, opened.read)
        assert bench.judge(_proposal(opened)).admitted
    return laid.rules


def _proposal(opened, pattern: str = f"^{ROTATE}$") -> Proposal:
    best = opened.source.shortlist(ROTATE, context=opened.context)[0]
    wanted = {
        "category": "RoPE",
        "kernel": pattern,
        "kernels": [ROTATE],
        "evidence": [
            {
                "kind": entry.kind,
                "repo": entry.repo,
                "commit": entry.commit,
                "path": entry.path,
                "lines": list(entry.lines),
            }
            for entry in best.evidence
        ],
    }
    found = proposal_from(wanted)
    assert isinstance(found, Proposal)
    return found


def _reviewed(*answers: str, **options: bool) -> tuple[ReviewResult, FakeConsole]:
    console = FakeConsole(list(answers))
    options = options or {"interactive": True}
    return review_kept(ReviewOptions(**options), console), console


def test_without_a_way_to_decide_the_proposals_are_listed(folder: Path) -> None:
    before = (folder / ".label-agent/journal.jsonl").read_bytes()
    result = review_kept(ReviewOptions(), FakeConsole(["a"]))
    assert [outcome.state for outcome in result.outcomes] == ["pending"]
    assert "label-agent review" in outcomes_text(result)[-1]
    assert (folder / ".label-agent/journal.jsonl").read_bytes() == before
    assert not (folder / RULES).exists()


def test_a_kept_proposal_is_shown_with_its_source_and_accepted(folder: Path) -> None:
    result, console = _reviewed("a")
    assert [outcome.state for outcome in result.outcomes] == ["accepted"]
    assert f">      8  def {ROTATE}(" in console.text
    assert "rotary_embedding.py:33" in console.text
    assert "Unlabelled -> RoPE: 1 name, 656 events" in console.text
    assert git(folder, "status", "--porcelain") == ""
    message = git(folder, "log", "-1", "--format=%B")
    assert message.startswith("Add rule rope.rotate-pairs-inplace\n\nCategory: RoPE\n")
    assert _reviewed("a")[0].outcomes == ()


def test_accept_validated_needs_no_terminal(folder: Path) -> None:
    result, _ = _reviewed(accept_validated=True)
    document = outcomes_json(result, "review")
    (entry,) = document["proposals"]
    assert (entry["verdict"], entry["decision"]) == ("admitted", "accepted")
    assert entry["rule"]["id"] == "rope.rotate-pairs-inplace"
    assert entry["commit"] == git(folder, "rev-parse", "HEAD")


def test_quitting_keeps_the_proposal(folder: Path) -> None:
    assert _reviewed("q")[0].kept == 1
    assert _reviewed("s")[0].kept == 1
    assert _reviewed("r", "no")[0].kept == 0
    assert _reviewed("a")[0].outcomes == ()


def test_a_source_that_moved_on_is_read_at_the_proposals_commit(folder: Path) -> None:
    serving = folder.parent / "tinyserve"
    path = serving / "python/tinyserve/layers/rotary_embedding.py"
    path.write_text("# rewritten\n")
    git(serving, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qam", "rewrite")
    result, console = _reviewed("a")
    assert [outcome.state for outcome in result.outcomes] == ["accepted"]
    assert f">      8  def {ROTATE}(" in console.text


@pytest.mark.parametrize("gone", ["traces", "tinyserve"])
def test_inputs_that_are_gone_are_named_and_nothing_is_lost(folder: Path, gone: str) -> None:
    (folder.parent / gone).rename(folder.parent / "elsewhere")
    with pytest.raises(LabelAgentError):
        _reviewed("a")
    (folder.parent / "elsewhere").rename(folder.parent / gone)
    assert [outcome.state for outcome in _reviewed("a")[0].outcomes] == ["accepted"]


def test_a_proposal_that_new_rules_overtook_is_refused(folder: Path) -> None:
    (folder / RULES).write_text(
        "schema = 1\nversion = 1\n[[category]]\nid = 'Misc'\ntitle = 'Misc'\n"
        "[[category]]\nid = 'RoPE'\ntitle = 'RoPE'\n"
        f"[[rule]]\nid = 'mine'\ncategory = 'Misc'\nkernel = '^{ROTATE}$'\ngrade = 'vendor'\n"
    )
    git(folder, "add", RULES)
    git(folder, "commit", "-qm", "mine")
    result, console = _reviewed("a")
    assert [outcome.state for outcome in result.outcomes] == ["refused"]
    assert console.prompts == []


def test_edited_in_review_the_real_gate_decides(folder: Path) -> None:
    console = FakeConsole(
        ["e", "", "e", "a"],
        [
            lambda text: text.replace("category = 'RoPE'", "category = 'NoSuch'"),
            lambda text: text.replace(f"'^{ROTATE}$'", f"'^{ROTATE}'"),
        ],
    )
    result = review_kept(ReviewOptions(interactive=True), console)
    assert "E_CATEGORY" in console.text
    assert [outcome.state for outcome in result.outcomes] == ["accepted"]
    assert f"kernel = '^{ROTATE}'" in (folder / RULES).read_text()


def test_the_same_inputs_are_the_same_run(folder: Path) -> None:
    place, opened = open_workplace(), open_inputs(INPUTS)
    first = kept_run(INPUTS, opened.source, place, "")
    assert first == kept_run(INPUTS, opened.source, place, "")
    assert first.id != kept_run(replace(INPUTS, salvage=True), opened.source, place, "").id
    assert first.traces == ("../traces/fp8",)
