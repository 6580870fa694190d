"""A whole review without model and checkout: real git, real journal, real rule files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.proposals import Proposal, Verdict
from agent.core.rules import RuleSet
from agent.errors import JournalError, ReviewError, RuleFileError, UsageError
from agent.review.journal import Journal
from agent.review.records import kept_in
from agent.review.session import Outcome, review
from agent.ruleset.codec import builtin_version
from agent.ruleset.writing import file_text
from agent.workflows.workbench import Workbench, ready_repository
from agent.workflows.workplace import Workplace, open_workplace
from tests.unit.review.fakes import SOURCE, FakeConsole, pin, small_trace, verdict
from tests.unit.review.worktrees import RULES, git, hook, init


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = init(tmp_path / "r")
    (folder / "README").write_text("x\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "base")
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    return folder


def _admits(proposal: Proposal, _ruleset: RuleSet) -> Verdict:
    pinned = tuple(replace(entry, pin=pin()) for entry in proposal.evidence)
    return Verdict(proposal, True, "L3", evidence=pinned, matched=proposal.kernels)


def _held(*names: str, answers: list[str], place: Workplace | None = None) -> tuple[Outcome, ...]:
    """Judge and review as `propose` does; afterwards the journal is closed."""
    place = place or open_workplace()
    with Journal(place.journal) as journal:
        kept = kept_in(journal.records())
        repository, changed = ready_repository(place, journal, kept)
        place = open_workplace() if changed else place
        run = small_trace("_my_stage1", "_my_stage2", "_my_stage3")
        kept = kept_in(journal.records())
        bench = Workbench(
            place, journal, "r1", run, _admits, lambda *_: SOURCE[:3], dict(kept.verdicts)
        )
        judged = [bench.judge(verdict(name).proposal) for name in names]
        wanted = [one for one in judged if not kept.settled(one.proposal.id)]
        return review(wanted, bench.desk(repository), FakeConsole(list(answers)))


def test_two_accepted_rules_are_two_versions_and_two_commits(repo: Path) -> None:
    outcomes = _held("_my_stage1", "_my_stage2", answers=["a", "a"])
    assert [outcome.state for outcome in outcomes] == ["accepted", "accepted"]
    assert git(repo, "log", "--format=%s", "--", RULES).split("\n") == [
        "Add rule attention.my-stage2",
        "Add rule attention.my-stage1",
    ]
    place = open_workplace()
    assert place.path == repo / RULES
    assert [place.ruleset.version, place.name] == [2, RULES]
    assert {"attention.my-stage1", "attention.my-stage2"} <= set(place.ruleset.by_id)
    assert git(repo, "status", "--porcelain") == ""


def test_a_person_is_asked_once(repo: Path) -> None:
    _held("_my_stage1", "_my_stage2", "_my_stage3", answers=["a", "r", "helper", "s"])
    outcomes = _held("_my_stage1", "_my_stage2", "_my_stage3", answers=["a"])
    assert [outcome.rule.id for outcome in outcomes if outcome.rule] == ["attention.my-stage3"]
    kept = kept_in(Journal(repo / ".label-agent/journal.jsonl").records())
    assert kept.decisions["id-_my_stage2"].reason == "helper"
    assert kept.pending == ()


def test_the_same_verdict_is_recorded_once(repo: Path) -> None:
    for _ in range(3):
        _held("_my_stage1", answers=["q"])
    records = Journal(repo / ".label-agent/journal.jsonl").records()
    assert [record.kind for record in records] == ["verdict"]


def test_a_rejecting_hook_keeps_the_proposal(repo: Path) -> None:
    hook(repo, "pre-commit", "exit 1")
    assert [outcome.state for outcome in _held("_my_stage1", answers=["a", "q"])] == ["pending"]
    kept = kept_in(Journal(repo / ".label-agent/journal.jsonl").records())
    assert [one.proposal.id for one in kept.pending] == ["id-_my_stage1"]
    assert kept.unfinished == ()
    assert not (repo / RULES).exists()
    (repo / ".git/hooks/pre-commit").unlink()
    assert [outcome.state for outcome in _held("_my_stage1", answers=["a"])] == ["accepted"]


@pytest.mark.parametrize("moment", ["commit_rule_file", "commit"])
def test_an_accepted_rule_survives_a_crash_without_a_second_question(
    repo: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    pid = os.fork()
    if pid == 0:
        from agent.review import commit
        from agent.workflows import workbench

        module = workbench if moment == "commit_rule_file" else commit
        name = moment if moment == "commit_rule_file" else "_commit"
        setattr(module, name, lambda *_: os._exit(9))
        _held("_my_stage1", answers=["a"])
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert (repo / RULES).exists() == (moment == "commit")
    assert _held("_my_stage1", answers=[]) == ()
    assert git(repo, "log", "--format=%s", "-1") == "Add rule attention.my-stage1"
    assert "attention.my-stage1" in open_workplace().ruleset.by_id
    assert git(repo, "status", "--porcelain") == ""


def test_a_rule_file_that_went_on_after_a_crash_is_asked_about_again(repo: Path) -> None:
    _held("_my_stage1", answers=["a"])
    pid = os.fork()
    if pid == 0:
        from agent.workflows import workbench

        workbench.commit_rule_file = lambda *_: os._exit(9)
        _held("_my_stage2", answers=["a"])
        os._exit(1)
    os.waitpid(pid, 0)
    with (repo / RULES).open("a") as file:
        file.write("# more\n")
    git(repo, "commit", "-qam", "more")
    assert [outcome.state for outcome in _held("_my_stage2", answers=["q"])] == ["pending"]


def test_a_second_review_at_the_same_time_is_refused(repo: Path) -> None:
    with Journal(open_workplace().journal) as journal:
        journal.append("turn", {})
        with pytest.raises(JournalError, match="another label-agent"):
            _held("_my_stage1", answers=["a"])


def test_local_edits_refuse_before_anybody_is_asked(repo: Path) -> None:
    _held("_my_stage1", answers=["a"])
    with (repo / RULES).open("a") as file:
        file.write("# mine\n")
    with pytest.raises(ReviewError) as caught:
        _held("_my_stage2", answers=["a"])
    assert caught.value.code == "RV003"
    assert (repo / RULES).read_text().endswith("# mine\n")


def test_an_edit_during_the_review_is_never_overwritten(repo: Path) -> None:
    _held("_my_stage1", answers=["a"])

    class Editing(FakeConsole):
        def ask(self, prompt: str) -> str | None:
            if self.answers == ["a"]:
                with (repo / RULES).open("a") as file:
                    file.write("# mine\n")
            return super().ask(prompt)

    place = open_workplace()
    with Journal(place.journal) as journal:
        repository, _ = ready_repository(place, journal, kept_in(journal.records()))
        bench = Workbench(place, journal, "r", small_trace(), _admits, lambda *_: ())
        console = Editing(["a"])
        review([verdict("_my_stage2")], bench.desk(repository), console)
    assert "RV003" in console.text
    assert (repo / RULES).read_text().endswith("# mine\n")


def test_outside_a_repository_the_place_is_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = open_workplace()
    assert (place.folder, place.path, place.text) == (tmp_path, tmp_path / RULES, None)


def test_a_named_rule_file_is_the_one_that_changes(repo: Path) -> None:
    own = file_text(version=1, extends=f"builtin@{builtin_version()}")
    (repo / "sub" / "own.toml").write_text(own)
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "own")
    place = open_workplace(Path("own.toml"))
    assert (place.path, place.name) == (repo / "sub/own.toml", "sub/own.toml")
    _held("_my_stage1", answers=["a"], place=place)
    assert git(repo, "show", "--format=", "--name-only", "HEAD") == "sub/own.toml"


def test_the_builtin_file_is_never_changed(repo: Path) -> None:
    from agent.bundled import bundled_folder

    with pytest.raises(UsageError) as caught:
        open_workplace(bundled_folder("rules") / "builtin.toml")
    assert caught.value.code == "RV017"


@pytest.mark.parametrize("text", ["", "schema = 1\n", "not toml", "\x00"])
def test_a_rule_file_that_cannot_be_used_is_an_error(repo: Path, text: str) -> None:
    (repo / RULES).write_text(text)
    with pytest.raises(RuleFileError):
        open_workplace()


def test_kept_paths_are_relative_and_come_back(repo: Path) -> None:
    place = open_workplace()
    assert place.relative("../../traces/*.json") == "../traces/*.json"
    assert place.absolute("../traces/*.json") == "../../traces/*.json"
