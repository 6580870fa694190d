from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent.errors import ReviewError
from agent.review.commit import Committed, commit_rule_file
from agent.review.repository import check_ready, open_repository
from tests.unit.review.worktrees import AFTER, BEFORE, RULES, git, hook, init, snapshot, with_rules

MESSAGE = "Add rule attention.fwd\n\nCategory: Attention"


def _commit(folder: Path, name: str = RULES, after: bytes = AFTER) -> Committed:
    repository = open_repository(folder / name)
    return commit_rule_file(repository, check_ready(repository), after, MESSAGE)


def _refused(folder: Path, name: str = RULES) -> ReviewError:
    with pytest.raises(ReviewError) as caught:
        _commit(folder, name)
    return caught.value


def test_a_changed_rule_file_becomes_one_commit_of_that_file(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    done = _commit(repo)
    assert git(repo, "rev-parse", "HEAD") == done.commit
    assert git(repo, "show", "--format=", "--name-only", "HEAD") == RULES
    assert git(repo, "log", "-1", "--format=%an|%B") == f"Ada Reviewer|{MESSAGE}"
    assert git(repo, "status", "--porcelain") == ""
    assert done.place == f"{done.commit[:12]} on main"


@pytest.mark.parametrize(
    "name", [RULES, "a dir/[x]*?.toml", ":(top).toml", "-q.toml", "größe.toml"]
)
def test_a_new_rule_file_is_committed_whatever_its_name(tmp_path: Path, name: str) -> None:
    repo = with_rules(tmp_path / "r")
    git(repo, "rm", "-q", RULES)
    git(repo, "commit", "-qm", "no rules")
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / "x.toml").write_text("untracked\n")
    _commit(repo, name)
    assert git(repo, "show", "-z", "--format=", "--name-only", "HEAD").strip("\0") == name
    assert git(repo, "status", "--porcelain") == "?? x.toml"


def test_the_first_commit_of_a_repository_can_be_the_rule_file(tmp_path: Path) -> None:
    repo = init(tmp_path / "r")
    (repo / "staged.txt").write_text("x\n")
    git(repo, "add", "staged.txt")
    _commit(repo)
    assert git(repo, "ls-tree", "-r", "--name-only", "HEAD") == RULES
    assert git(repo, "status", "--porcelain") == "A  staged.txt"


def test_staged_dirty_partial_and_untracked_work_stays_as_it_is(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    (repo / "app.py").write_text("ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n")
    git(repo, "add", "app.py")
    (repo / "app.py").write_text("ONE\ntwo\nthree\nfour\nfive\nsix\nseven\nEIGHT\n")
    git(repo, "rm", "-q", "--cached", "notes.md")
    (repo / ".env").write_text("secret\n")
    (repo / "planned.py").write_text("x\n")
    git(repo, "add", "-N", "planned.py")
    before = git(repo, "status", "--porcelain=v2"), git(repo, "diff"), git(repo, "diff", "--cached")
    _commit(repo)
    after = git(repo, "status", "--porcelain=v2"), git(repo, "diff"), git(repo, "diff", "--cached")
    assert after == before
    assert git(repo, "show", "--format=", "--name-only", "HEAD") == RULES


def test_unrelated_work_case(shared: Path, tmp_path: Path) -> None:
    """The user's edit of the rule file refuses; undone, only the rule file is committed."""
    repo = tmp_path / "d"
    subprocess.run(
        ["sh", str(shared / "cases/36-git-unrelated-work/setup.sh"), str(repo)], check=True
    )
    assert _refused(repo, "rules/rules.json").code == "RV003"
    assert (repo / "rules/rules.json").read_text() == '["user edit"]\n'
    git(repo, "checkout", "-q", "--", "rules/rules.json")
    reviewed = b'["accepted"]\n'
    _commit(repo, "rules/rules.json", reviewed)
    assert git(repo, "show", "--format=", "--name-only", "HEAD") == "rules/rules.json"
    assert git(repo, "show", "HEAD:rules/rules.json").encode() + b"\n" == reviewed
    assert git(repo, "diff", "--cached", "--name-only") == "notes.md"
    assert git(repo, "diff", "--name-only") == "app.py"
    assert git(repo, "ls-files", "--others") == ".env"


def test_a_detached_head_is_allowed_and_said(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    git(repo, "checkout", "-q", "--detach")
    done = _commit(repo)
    assert done.branch == ""
    assert "detached HEAD" in done.place


def test_a_linked_work_tree_commits_on_its_own_branch(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    done = _commit(tmp_path / "side")
    assert done.branch == "side"
    assert git(repo, "show", "--format=", "--name-only", "side") == RULES
    assert git(tmp_path / "side", "status", "--porcelain") == ""
    assert git(repo, "rev-parse", "main") != done.commit


def test_the_mode_of_the_file_is_kept(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    (repo / RULES).chmod(0o640)
    _commit(repo)
    assert stat.S_IMODE((repo / RULES).stat().st_mode) == 0o640
    assert not list(repo.glob(".*.part"))


def _own_part(repo: Path) -> None:
    (repo / f".{RULES}.part").write_text("left by a killed run")


def _other_commit(repo: Path) -> None:
    git(repo, "config", "core.autocrlf", "input")
    git(repo, "config", "core.fileMode", "false")


@pytest.mark.parametrize("arrange", [_own_part, _other_commit])
def test_what_a_killed_run_or_settings_leave_does_not_matter(tmp_path: Path, arrange) -> None:
    repo = with_rules(tmp_path / "r")
    arrange(repo)
    _commit(repo)
    assert git(repo, "status", "--porcelain") == ""


# Refusals: (arrangement, code, a part of the message)


def _edited(repo: Path) -> None:
    (repo / RULES).write_text("mine\n")


def _staged(repo: Path) -> None:
    _edited(repo)
    git(repo, "add", RULES)


def _staged_then_reverted(repo: Path) -> None:
    _staged(repo)
    (repo / RULES).write_bytes(BEFORE)


def _untracked(repo: Path) -> None:
    git(repo, "rm", "-q", "--cached", RULES)
    git(repo, "commit", "-qm", "untrack")


def _deleted(repo: Path) -> None:
    (repo / RULES).unlink()


def _unstaged_delete(repo: Path) -> None:
    git(repo, "rm", "-q", "--cached", RULES)
    (repo / RULES).unlink()


def _assume_unchanged(repo: Path) -> None:
    git(repo, "update-index", "--assume-unchanged", RULES)
    _edited(repo)


def _symlink(repo: Path) -> None:
    (repo / RULES).rename(repo / "real.toml")
    (repo / RULES).symlink_to("real.toml")


def _folder(repo: Path) -> None:
    (repo / RULES).unlink()
    (repo / RULES).mkdir()


def _merging(repo: Path) -> None:
    git(repo, "checkout", "-qb", "other")
    (repo / "notes.md").write_text("theirs\n")
    git(repo, "commit", "-qam", "theirs")
    git(repo, "checkout", "-q", "main")
    (repo / "notes.md").write_text("ours\n")
    git(repo, "commit", "-qam", "ours")
    git(repo, "merge", "-q", "other", ok=False)


def _rebasing(repo: Path) -> None:
    _merging(repo)
    git(repo, "merge", "--abort")
    git(repo, "rebase", "-q", "other", ok=False)


def _picking(repo: Path) -> None:
    _merging(repo)
    git(repo, "merge", "--abort")
    git(repo, "cherry-pick", "other", ok=False)


def _reverting(repo: Path) -> None:
    (repo / "notes.md").write_text("second\n")
    git(repo, "commit", "-qam", "second")
    (repo / "notes.md").write_text("third\n")
    git(repo, "commit", "-qam", "third")
    git(repo, "revert", "--no-edit", "HEAD~1", ok=False)


def _conflicted(repo: Path) -> None:
    blob = git(repo, "hash-object", "-w", RULES)
    entries = "".join(f"100644 {blob} {stage}\t{RULES}\n" for stage in (1, 2, 3))
    subprocess.run(
        ["git", "update-index", "--index-info"],
        cwd=repo,
        input=f"0 {'0' * 40}\t{RULES}\n{entries}".encode(),
        check=True,
    )


def _no_identity(repo: Path) -> None:
    git(repo, "config", "--unset", "user.name")
    git(repo, "config", "--unset", "user.email")
    git(repo, "config", "user.useConfigOnly", "true")


def _locked(repo: Path) -> None:
    (repo / ".git" / "index.lock").touch()


def _ref_locked(repo: Path) -> None:
    (repo / ".git" / "refs" / "heads" / "main.lock").touch()


def _read_only(repo: Path) -> None:
    (repo / RULES).chmod(0o444)


def _filtered(repo: Path) -> None:
    git(repo, "config", "filter.shout.clean", "sed s/2/3/")
    (repo / ".gitattributes").write_text(f"{RULES} filter=shout\n")


def _hook_rejects(repo: Path) -> None:
    hook(repo, "pre-commit", "echo 'rules need a ticket' >&2; printf '\\033[31mred' >&2; exit 1")


def _hook_is_silent(repo: Path) -> None:
    hook(repo, "commit-msg", "exit 3")


def _hook_formats_and_stages(repo: Path) -> None:
    hook(repo, "pre-commit", f"echo '# formatted' >> {RULES}; git add {RULES}")


def _hook_formats_only(repo: Path) -> None:
    hook(repo, "pre-commit", f"echo '# formatted' >> {RULES}")


def _hook_adds_another(repo: Path) -> None:
    hook(repo, "pre-commit", "echo 1 > generated.txt; git add generated.txt; rm generated.txt")


def _signing_fails(repo: Path) -> None:
    git(repo, "config", "commit.gpgsign", "true")
    git(repo, "config", "gpg.program", "false")


REFUSALS = [
    (_edited, "RV003", "local edits"),
    (_assume_unchanged, "RV003", "local edits"),
    (_staged, "RV003", "staged edits"),
    (_staged_then_reverted, "RV003", "staged edits"),
    (_untracked, "RV003", "not committed yet"),
    (_deleted, "RV003", "deleted"),
    (_unstaged_delete, "RV003", "staged edits"),
    (_symlink, "RV005", "symbolic link"),
    (_folder, "RV005", "not a plain file"),
    (_merging, "RV007", "a merge is under way"),
    (_rebasing, "RV007", "a rebase"),
    (_picking, "RV007", "a cherry-pick"),
    (_reverting, "RV007", "a revert"),
    (_conflicted, "RV007", "merge conflict"),
    (_no_identity, "RV008", "no identity"),
    (_locked, "RV009", "locked"),
    (_ref_locked, "RV013", "main.lock"),
    (_read_only, "RV011", "read-only"),
    (_filtered, "RV012", "filter"),
    (_hook_rejects, "RV013", "a hook rejected the commit: rules need a ticket"),
    (_hook_is_silent, "RV013", "said nothing"),
    (_hook_formats_and_stages, "RV014", "changed the reviewed bytes"),
    (_hook_formats_only, "RV014", "changed the reviewed bytes"),
    (_hook_adds_another, "RV014", "generated.txt"),
    (_signing_fails, "RV013", "could not be signed"),
]


@pytest.mark.parametrize(
    ("arrange", "code", "says"), REFUSALS, ids=[row[0].__name__[1:] for row in REFUSALS]
)
def test_a_refusal_says_why_and_changes_nothing(tmp_path: Path, arrange, code, says) -> None:
    repo = with_rules(tmp_path / "r")
    (repo / "notes.md").write_text("base\nstaged\n")
    if arrange not in {_merging, _rebasing, _picking, _reverting}:
        git(repo, "add", "notes.md")
        (repo / "app.py").write_text("dirty\n")
    else:
        git(repo, "checkout", "-q", "notes.md")
    arrange(repo)
    before = snapshot(repo)
    error = _refused(repo)
    assert (error.code, says in error.message) == (code, True), error.message
    assert error.location
    assert snapshot(repo) == before


@pytest.mark.parametrize("unborn", [False, True], ids=["beside other files", "first commit"])
@pytest.mark.parametrize(
    "arrange", [_hook_rejects, _hook_formats_and_stages, _hook_adds_another, _signing_fails]
)
def test_a_new_file_that_cannot_be_committed_is_gone_again(
    tmp_path: Path, arrange, *, unborn: bool
) -> None:
    repo = init(tmp_path / "r") if unborn else with_rules(tmp_path / "r")
    arrange(repo)
    before = snapshot(repo)
    _refused(repo, "new-rules.toml" if arrange is not _hook_formats_and_stages else RULES)
    assert snapshot(repo) == before


def test_a_folder_without_git_says_so(tmp_path: Path) -> None:
    assert _refused(tmp_path).code == "RV001"
    assert _refused(tmp_path / "missing").code == "RV001"


def test_a_bare_repository_and_the_git_folder_have_no_work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    assert _refused(tmp_path / "bare.git").code == "RV002"
    repo = with_rules(tmp_path / "r")
    assert _refused(repo / ".git").code == "RV002"


def test_a_submodule_is_refused(tmp_path: Path) -> None:
    inner, outer = with_rules(tmp_path / "inner"), with_rules(tmp_path / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    git(outer, "commit", "-qm", "sub")
    assert _refused(outer / "sub").code == "RV006"


def test_an_ignored_new_rule_file_is_refused_but_a_tracked_one_is_not(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    (repo / ".gitignore").write_text("*.toml\n")
    assert _refused(repo, "new.toml").code == "RV010"
    _commit(repo)


def test_the_reviewed_text_must_still_be_there(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    repository = open_repository(repo / RULES)
    with pytest.raises(ReviewError) as caught:
        commit_rule_file(repository, b"another text\n", AFTER, MESSAGE)
    assert caught.value.code == "RV004"
    assert (repo / RULES).read_bytes() == BEFORE


def test_a_signature_is_made_where_the_user_wants_one(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    key = tmp_path / "key"
    made = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=False)
    if made.returncode:
        pytest.skip("ssh-keygen cannot make a key here")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingkey", str(key)),
        ("commit.gpgsign", "true"),
    ):
        git(repo, "config", name, value)
    _commit(repo)
    assert "BEGIN SSH SIGNATURE" in git(repo, "cat-file", "commit", "HEAD")


def test_hooks_run_and_may_add_commits_of_their_own(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    hook(
        repo,
        "post-commit",
        '[ -f bumped ] || { echo 1 > bumped; git add bumped; git commit -qm "bump"; }',
    )
    done = _commit(repo)
    assert git(repo, "log", "--format=%s") == "bump\nAdd rule attention.fwd\nbase"
    assert git(repo, "rev-parse", "HEAD~1") == done.commit


def test_work_staged_by_others_during_a_rejecting_hook_is_kept(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    (repo / "later.txt").write_text("x\n")
    hook(
        repo, "pre-commit", "unset GIT_INDEX_FILE; git --git-dir=.git rm -q --cached app.py; exit 1"
    )
    _refused(repo, "new.toml")
    assert not (repo / "new.toml").exists()
    assert "new.toml" not in git(repo, "ls-files")


def test_crlf_is_committed_as_reviewed_where_git_leaves_it_alone(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r", b"schema = 1\r\nversion = 1\r\n")
    after = b"schema = 1\r\nversion = 2\r\n"
    _commit(repo, after=after)
    blob = subprocess.run(
        ["git", "cat-file", "blob", f"HEAD:{RULES}"], cwd=repo, capture_output=True, check=True
    )
    assert blob.stdout == after


@pytest.mark.parametrize("setting", ["attribute", "autocrlf"])
def test_line_ends_that_git_would_convert_are_refused(tmp_path: Path, setting: str) -> None:
    repo = with_rules(tmp_path / "r")
    if setting == "attribute":
        (repo / ".gitattributes").write_text(f"{RULES} text eol=crlf\n")
    else:
        git(repo, "config", "core.autocrlf", "true")
    (repo / RULES).unlink()
    git(repo, "checkout", "-q", "--", RULES)
    crlf = (repo / RULES).read_bytes()
    assert crlf.endswith(b"\r\n")
    before = snapshot(repo)
    with pytest.raises(ReviewError) as caught:
        _commit(repo, after=crlf.replace(b"version = 1", b"version = 2"))
    assert caught.value.code == "RV012"
    assert "-text" in caught.value.hint
    assert snapshot(repo) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give up rights")
def test_a_folder_without_write_permission_is_refused(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    for path in (repo, *repo.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    repo.chmod(0o555)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == 0 and parent != Path("/") and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)
    program = (
        "import os, sys; from pathlib import Path\n"
        "from agent.errors import ReviewError\n"
        "from agent.review.commit import commit_rule_file\n"
        "from agent.review.repository import check_ready, open_repository\n"
        "import git\n"
        "os.setgid(12345); os.setuid(12345)\n"
        "repository = open_repository(Path(sys.argv[1]))\n"
        "try: commit_rule_file(repository, check_ready(repository), b'x', 'm')\n"
        "except ReviewError as err: sys.exit(err.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(repo / RULES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.strip().endswith("RV011"), done.stderr
    assert (repo / RULES).read_bytes() == BEFORE


def test_ctrl_c_during_a_hook_puts_everything_back(tmp_path: Path) -> None:
    repo = with_rules(tmp_path / "r")
    hook(repo, "pre-commit", "kill -INT $REVIEWER $PPID; sleep 0.5")
    before = snapshot(repo)
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from agent.review.commit import commit_rule_file\n"
        "from agent.review.repository import check_ready, open_repository\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.environ['REVIEWER'] = str(os.getpid())\n"
        "repository = open_repository(Path(sys.argv[1]))\n"
        "try: commit_rule_file(repository, check_ready(repository), b'x', 'm')\n"
        "except KeyboardInterrupt: sys.exit('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(repo / RULES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "interrupted" in done.stderr
    assert snapshot(repo) == before
