"""A process killed between the decision and the commit's record: nothing is lost or asked twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from agent.errors import ReviewError
from agent.review.records import Intent
from agent.review.recover import finish
from agent.review.repository import open_repository
from tests.unit.review.worktrees import BEFORE, RULES, git, hook, with_rules

NEW = "[[rule]]\nid = 'attention.x'\n"

COMMIT = """
import json, os, signal, sys
from pathlib import Path
from agent.review import commit
from agent.review.repository import check_ready, open_repository

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

intent = json.loads(sys.argv[2])
os.environ["REVIEWER"] = str(os.getpid())
if sys.argv[3] == "before git":
    commit._commit = die
elif sys.argv[3] == "before the file":
    commit.replace_file = die
elif sys.argv[3] == "after git":
    commit._own_commit = die
repository = open_repository(Path(sys.argv[1]))
commit.commit_rule_file(
    repository, check_ready(repository), intent["after"].encode(), intent["message"]
)
"""


def _killed(repo: Path, intent: Intent, when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMIT, str(repo / intent.name), json.dumps(asdict(intent)), when],
        check=False,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def _intent(*, new_file: bool) -> Intent:
    before = "" if new_file else BEFORE.decode()
    name = "new.toml" if new_file else RULES
    return Intent("id", "attention.x", name, before, before + NEW, "Add rule attention.x", "Ada")


MOMENTS = ["before the file", "before git", "in a hook that rejects", "after git", "in a hook"]


@pytest.mark.parametrize("new_file", [False, True], ids=["changed file", "new file"])
@pytest.mark.parametrize("when", MOMENTS)
def test_an_accepted_change_is_finished_as_reviewed(
    tmp_path: Path, when: str, *, new_file: bool
) -> None:
    repo, intent = with_rules(tmp_path / "r"), _intent(new_file=new_file)
    (repo / "notes.md").write_text("staged\n")
    git(repo, "add", "notes.md")
    if when.startswith("in a hook"):
        hook(repo, "pre-commit", f"kill -9 $REVIEWER; exit {int('rejects' in when)}")
    _killed(repo, intent, when)
    _wait_for_git(repo)
    (repo / ".git" / "hooks" / "pre-commit").unlink(missing_ok=True)
    done = finish(intent, open_repository(repo / intent.name))
    assert done is not None
    assert git(repo, "log", "--format=%s") == "Add rule attention.x\nbase"
    assert git(repo, "rev-parse", "HEAD") == done.commit
    assert git(repo, "show", f"HEAD:{intent.name}") + "\n" == intent.after
    assert git(repo, "status", "--porcelain") == "M  notes.md"


def _wait_for_git(repo: Path) -> None:
    """The killed process' git goes on alone for a moment."""
    for _ in range(200):
        if not (repo / ".git" / "index.lock").exists() and not _running(repo):
            return
        signal.sigtimedwait([], 0.02)
    pytest.fail("git did not end")


def _running(repo: Path) -> bool:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd") == str(repo):
                return True
        except OSError:
            continue
    return False


def test_finishing_twice_commits_once(tmp_path: Path) -> None:
    repo, intent = with_rules(tmp_path / "r"), _intent(new_file=False)
    repository = open_repository(repo / RULES)
    assert finish(intent, repository) == finish(intent, repository)
    assert git(repo, "rev-list", "--count", "HEAD") == "2"


def test_a_rule_that_a_later_commit_still_holds_is_done(tmp_path: Path) -> None:
    repo, intent = with_rules(tmp_path / "r"), _intent(new_file=False)
    (repo / RULES).write_text(intent.after + "# more\n")
    git(repo, "commit", "-qam", "more")
    done = finish(intent, open_repository(repo / RULES))
    assert done is not None
    assert done.commit == git(repo, "rev-parse", "HEAD")


def test_a_rule_file_that_went_on_is_left_alone(tmp_path: Path) -> None:
    repo, intent = with_rules(tmp_path / "r"), _intent(new_file=False)
    (repo / RULES).write_text("another\n")
    git(repo, "commit", "-qam", "another")
    assert finish(intent, open_repository(repo / RULES)) is None
    assert (repo / RULES).read_text() == "another\n"


def test_edits_made_since_are_refused_not_overwritten(tmp_path: Path) -> None:
    repo, intent = with_rules(tmp_path / "r"), _intent(new_file=False)
    (repo / RULES).write_text(intent.after + "# mine\n")
    with pytest.raises(ReviewError) as caught:
        finish(intent, open_repository(repo / RULES))
    assert caught.value.code == "RV003"
    assert (repo / RULES).read_text().endswith("# mine\n")
