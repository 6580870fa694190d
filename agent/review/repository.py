"""The git repository that holds the rule file, and whether a commit there can go well.

Everything that would make a commit fail or take more than the rule file is found before a person
is asked to review: one refusal, one code, one hint.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.rules import Acceptance
from agent.errors import ReviewError

if TYPE_CHECKING:
    from git.cmd import Git

_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or git am",
    "sequencer": "a sequence of picks",
}
_IDENT = re.compile(r"(?P<author>.*<.*>) (?P<seconds>\d+) (?P<zone>[+-]\d{4})")
_SAID_LINES = 12


@dataclass(frozen=True, slots=True)
class Reply:
    """What one git command said."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Give the end of its complaint in one line."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        return " / ".join(lines[-_SAID_LINES:])


@dataclass(frozen=True)
class RuleRepository:
    """The work tree around one rule file.

    Attributes:
        root: the top of the work tree.
        name: the rule file relative to `root`, with `/`.
    """

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The rule file."""
        return self.root / self.name

    @property
    def pathspec(self) -> str:
        """The rule file for git's command line: no character of the name is magic."""
        return f":(top,literal){self.name}"

    @cached_property
    def git(self) -> Git:
        """GitPython's runner: the user's own git with the user's own configuration."""
        return runner(self.root)

    def run(self, *arguments: str) -> Reply:
        """Run one git command at the root; a failure is in the reply."""
        return _run(self.git, arguments)

    def ask(self, *arguments: str) -> str:
        """Give what a git command answers.

        Raises:
            ReviewError: it failed (`RV015`).
        """
        reply = self.run(*arguments)
        if reply.status:
            raise _git_failed(reply, str(self.root))
        return reply.out

    def git_path(self, name: str) -> Path:
        """Give where git keeps one of its own files; right in linked work trees, too."""
        return self.root / self.ask("rev-parse", "--git-path", name)

    def head(self) -> str:
        """Give the commit at HEAD, or "" on a branch without one."""
        return self.run("rev-parse", "-q", "--verify", "HEAD^{commit}").out

    def branch(self) -> str:
        """Give the branch, or "" when HEAD is detached."""
        return self.run("symbolic-ref", "-q", "--short", "HEAD").out

    def blob_at(self, commit: str) -> str:
        """Give the rule file's blob in a commit, or ""."""
        return (
            self.run("rev-parse", "-q", "--verify", f"{commit}:{self.name}").out if commit else ""
        )

    def content_at(self, commit: str) -> bytes | None:
        """Give the rule file's bytes in a commit; None where it is not in it."""
        blob = self.blob_at(commit)
        if not blob:
            return None
        content: bytes = self.git.cat_file(
            "blob", blob, stdout_as_string=False, strip_newline_in_stdout=False
        )
        return content

    def last_change(self) -> str:
        """Give the last commit that changed the rule file, or ""."""
        return self.run("rev-list", "-n1", "HEAD", "--", self.pathspec).out

    def staged(self) -> tuple[str, ...]:
        """Give the rule file's blobs in the index: one, none, or several in a conflict."""
        entries = self.ask("ls-files", "--stage", "-z", "--", self.pathspec)
        return tuple(entry.split(" ", 2)[1] for entry in entries.split("\0") if entry)

    def blob_of(self, path: Path, *, filtered: bool) -> str:
        """Give the blob a file would become at the rule file's place."""
        how = f"--path={self.name}" if filtered else "--no-filters"
        return self.ask("hash-object", how, "--", str(path))

    def acceptance(self) -> Acceptance:
        """Give who accepts, and the day, as git would write them into a commit now.

        Raises:
            ReviewError: git knows no identity (`RV008`).
        """
        for who in ("GIT_COMMITTER_IDENT", "GIT_AUTHOR_IDENT"):
            reply = self.run("var", who)
            if reply.status:
                hint = "git config user.name 'Your Name'; git config user.email you@example.com"
                message = f"git knows no identity to commit with: {reply.said}"
                raise ReviewError("RV008", message, location=str(self.root), hint=hint)
        return _acceptance(reply.out)


def runner(folder: Path) -> Git:
    """Give GitPython's runner in a folder.

    Raises:
        ReviewError: there is no git (`CL005`).
    """
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    from git.cmd import Git

    return Git(str(folder))


def work_tree_of(folder: Path) -> Path | None:
    """Give the top of the work tree around a folder; None when there is none."""
    reply = _run(runner(folder), ("rev-parse", "--show-toplevel"))
    return Path(reply.out) if reply.status == 0 and reply.out else None


def open_repository(rule_file: Path) -> RuleRepository:
    """Find the repository of a rule file, which may not exist yet.

    Raises:
        ReviewError: no repository, no work tree, a submodule, or not a plain file inside it.
    """
    folder = Path(os.path.realpath(rule_file.parent))
    if not folder.is_dir():
        message = "the folder for the rule file does not exist"
        raise ReviewError(
            "RV001", message, location=str(rule_file), hint="make it, in a git repository"
        )
    reply = _run(runner(folder), ("rev-parse", "--is-bare-repository", "--is-inside-work-tree"))
    if reply.status:
        raise _no_repository(reply, folder)
    bare, inside = reply.out.split()
    if bare == "true" or inside != "true":
        message = "accepted rules are committed from a work tree, and this has none"
        raise ReviewError("RV002", message, location=str(folder), hint="work in a clone of it")
    root = Path(os.path.realpath(_run(runner(folder), ("rev-parse", "--show-toplevel")).out))
    _refuse_submodule(root)
    name = (folder / rule_file.name).relative_to(root).as_posix()
    return RuleRepository(root, name)


def check_ready(repository: RuleRepository) -> bytes | None:
    """Give the rule file's bytes (None when it is new) if a commit of it alone can go well.

    Raises:
        ReviewError: something stands in the way; its code says what.
    """
    _refuse_odd_file(repository)
    _refuse_unfinished(repository)
    repository.acceptance()
    return _unedited(repository)


def _unedited(repository: RuleRepository) -> bytes | None:
    """Give the bytes if work tree, index and HEAD agree on the rule file."""
    committed, staged = repository.blob_at(repository.head()), repository.staged()
    exists = repository.path.exists()
    if not exists and not staged and not committed:
        _refuse_ignored(repository)
        return None
    where = str(repository.path)
    hint = "commit or undo them first; they would mix with the reviewed change"
    if len(staged) > 1:
        raise ReviewError("RV007", "the rule file has a merge conflict", location=where, hint=hint)
    if staged != ((committed,) if committed else ()):
        raise ReviewError("RV003", "the rule file has staged edits", location=where, hint=hint)
    if not committed:
        message = "the rule file is not committed yet"
        hint = f"git add {repository.name} && git commit first"
        raise ReviewError("RV003", message, location=where, hint=hint)
    if not exists:
        raise ReviewError("RV003", "the rule file was deleted", location=where, hint=hint)
    content = repository.path.read_bytes()
    if repository.blob_of(repository.path, filtered=True) != committed:
        raise ReviewError("RV003", "the rule file has local edits", location=where, hint=hint)
    return content


def _refuse_odd_file(repository: RuleRepository) -> None:
    path = repository.path
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        what = "a symbolic link" if stat.S_ISLNK(mode) else "not a plain file"
        hint = "name the file itself with --rules"
        raise ReviewError("RV005", f"the rule file is {what}", location=str(path), hint=hint)
    if not mode & 0o222 or not os.access(path, os.W_OK):
        hint = "make it writable to accept rules into it"
        raise ReviewError("RV011", "the rule file is read-only", location=str(path), hint=hint)


def _refuse_unfinished(repository: RuleRepository) -> None:
    where = str(repository.root)
    lock = repository.git_path("index.lock")
    if lock.exists():
        hint = "wait for the other git command; if there is none, remove that file"
        message = f"the index is locked by {lock.name}"
        raise ReviewError("RV009", message, location=str(lock), hint=hint)
    for name, what in _UNDER_WAY.items():
        if repository.git_path(name).exists():
            hint = "finish or abort it first"
            raise ReviewError("RV007", f"{what} is under way", location=where, hint=hint)


def _refuse_ignored(repository: RuleRepository) -> None:
    if repository.run("check-ignore", "-q", "--", repository.name).status == 0:
        message = "git ignores the rule file"
        hint = f"take {repository.name} out of the ignore rules, or name another with --rules"
        raise ReviewError("RV010", message, location=str(repository.path), hint=hint)


def _refuse_submodule(root: Path) -> None:
    above = _run(runner(root), ("rev-parse", "--show-superproject-working-tree")).out
    if above:
        message = "the rule file would be committed in a submodule"
        hint = "work in the repository around it, or name a rule file there with --rules"
        raise ReviewError("RV006", message, location=str(root), hint=hint)


def _no_repository(reply: Reply, folder: Path) -> ReviewError:
    if "not a git repository" in reply.err:
        message = "accepted rules are committed with git, and this is not a git repository"
        return ReviewError("RV001", message, location=str(folder), hint="git init, then try again")
    return _git_failed(reply, str(folder))


def _git_failed(reply: Reply, where: str) -> ReviewError:
    return ReviewError("RV015", f"git failed: {reply.said or reply.status}", location=where)


def _run(git: Git, arguments: Sequence[str]) -> Reply:
    from git.exc import GitCommandNotFound

    try:
        reply = git.execute(["git", *arguments], with_extended_output=True, with_exceptions=False)
    except GitCommandNotFound as err:
        raise ReviewError("CL005", "git cannot be run", hint="install git") from err
    return Reply(*reply)


def _acceptance(ident: str) -> Acceptance:
    found = _IDENT.fullmatch(ident)
    if found is None:
        raise ReviewError("RV008", f"git gives an identity that cannot be read: {ident!r}")
    sign = -1 if found["zone"][0] == "-" else 1
    offset = sign * timedelta(hours=int(found["zone"][1:3]), minutes=int(found["zone"][3:5]))
    when = datetime.fromtimestamp(int(found["seconds"]), tz=timezone(offset))
    return Acceptance(found["author"], when.date().isoformat())
