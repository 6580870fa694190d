"""Write the reviewed rule file and commit it alone, or leave everything as it was.

The bytes reviewed are the bytes committed: what git's filters or a hook would change is refused or
undone. Hooks and signing are the user's own and are respected; what else is staged, edited or
untracked stays as it is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from agent.errors import ReviewError
from agent.review.replace import read_file, remove_file, replace_file
from agent.review.repository import Reply, RuleRepository, check_ready


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that was made; `branch` is "" on a detached HEAD."""

    commit: str
    branch: str

    @property
    def place(self) -> str:
        """Say in words where the commit is."""
        where = f"on {self.branch}" if self.branch else "on a detached HEAD, on no branch"
        return f"{self.commit[:12]} {where}"


@dataclass(frozen=True, slots=True)
class _Before:
    """What is put back after a failure."""

    head: str
    content: bytes | None
    index: bytes | None
    entries: tuple[str, ...]
    """Everything staged except the rule file."""


def commit_rule_file(
    repository: RuleRepository, before: bytes | None, after: bytes, message: str
) -> Committed:
    """Replace the rule file's reviewed bytes `before` by `after` and commit that file alone.

    `before` is None for a new file. Ctrl-C waits for git to end, then takes effect.

    Raises:
        ReviewError: refused, or failed; rule file, index and HEAD are as they were.
    """
    with _interrupt_deferred():
        if check_ready(repository) != before:
            hint = "run review again to see the change against the new text"
            what = "the rule file changed while it was reviewed"
            raise ReviewError("RV004", what, location=str(repository.path), hint=hint)
        state = _state(repository, before)
        try:
            return _write_and_commit(repository, state, after, message)
        except BaseException as err:
            _put_back(repository, state, err)
            raise


def _write_and_commit(
    repository: RuleRepository, state: _Before, after: bytes, message: str
) -> Committed:
    try:
        replace_file(repository.path, after)
    except OSError as err:
        hint = "nothing was changed"
        what = f"cannot write the rule file: {err.strerror}"
        raise ReviewError("RV011", what, location=str(repository.path), hint=hint) from err
    reviewed = repository.blob_of(repository.path, filtered=False)
    _refuse_filters(repository, reviewed)
    if state.content is None:
        repository.ask("add", "--intent-to-add", "--", repository.pathspec)
    reply = _commit(repository, message)
    if reply.status:
        raise _not_made(repository, reply)
    commit = _own_commit(repository, state)
    _refuse_changed(repository, commit, reviewed, after)
    return Committed(commit, repository.branch())


def _commit(repository: RuleRepository, message: str) -> Reply:
    reply = repository.git.commit(
        "-q",
        "-m",
        message,
        "--only",
        "--",
        repository.pathspec,
        with_extended_output=True,
        with_exceptions=False,
    )
    return Reply(*reply)


def _refuse_filters(repository: RuleRepository, reviewed: str) -> None:
    """Refuse where line-end conversion or a filter would commit other bytes than those reviewed."""
    if repository.blob_of(repository.path, filtered=True) != reviewed:
        raise ReviewError(
            "RV012",
            "git would change the reviewed bytes on commit (line ends or a filter)",
            location=str(repository.path),
            hint=f'write "{repository.name} -text -filter -ident" into .gitattributes',
        )


def _refuse_changed(repository: RuleRepository, commit: str, reviewed: str, after: bytes) -> None:
    listed = repository.ask(
        "diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "-z", commit
    )
    others = sorted({name for name in listed.split("\0") if name} - {repository.name})
    hint = "let the hook leave the commit alone, or skip it for this file"
    if others:
        what = f'a hook put other files into the commit: "{others[0]}"; it was undone'
        raise ReviewError("RV014", what, location=str(repository.root), hint=hint)
    if repository.blob_at(commit) != reviewed or read_file(repository.path) != after:
        what = "a hook changed the reviewed bytes; the commit was undone"
        raise ReviewError("RV014", what, location=str(repository.path), hint=hint)


def _not_made(repository: RuleRepository, reply: Reply) -> ReviewError:
    said = reply.said or f"git commit ended with status {reply.status} and said nothing"
    if "failed to write commit object" in reply.err or "failed to sign" in reply.err:
        what, hint = "the commit could not be signed", "see commit.gpgsign and user.signingkey"
    elif "fatal:" in reply.err or "error:" in reply.err:
        what, hint = "git did not make the commit", "mend what git says, then run review again"
    else:
        what = "a hook rejected the commit"
        hint = "mend what the hook says, then run review again"
    return ReviewError("RV013", f"{what}: {said}", location=str(repository.root), hint=hint)


def _own_commit(repository: RuleRepository, state: _Before) -> str:
    """Give the commit just made; a hook may have put others on top of it."""
    span = f"{state.head}..HEAD" if state.head else "HEAD"
    made = repository.ask("rev-list", "--reverse", "--first-parent", span).split()
    if not made:
        what = "git made no commit"
        raise ReviewError("RV013", what, location=str(repository.root))
    return made[0]


def _state(repository: RuleRepository, content: bytes | None) -> _Before:
    index = read_file(repository.git_path("index"))
    return _Before(repository.head(), content, index, _other_entries(repository))


def _put_back(repository: RuleRepository, state: _Before, failure: BaseException) -> None:
    """Give HEAD, rule file and index back as they were; what others changed since stays.

    Raises:
        ReviewError: that failed, too (`RV016`).
    """
    try:
        _put_back_head(repository, state)
        _put_back_file(repository, state)
        _put_back_index(repository, state)
    except OSError as err:
        what = f"cannot put everything back as it was: {err.strerror}; first: {failure}"
        hint = f"git status shows it; git checkout -- {repository.name} restores the rule file"
        raise ReviewError("RV016", what, location=str(repository.path), hint=hint) from failure


def _put_back_file(repository: RuleRepository, state: _Before) -> None:
    if read_file(repository.path) == state.content:
        return
    if state.content is None:
        remove_file(repository.path)
    else:
        replace_file(repository.path, state.content)


def _put_back_head(repository: RuleRepository, state: _Before) -> None:
    now = repository.head()
    if now == state.head:
        return
    parents = repository.run("rev-list", "--parents", "-n1", now).out.split()[1:]
    if parents != ([state.head] if state.head else []):
        return
    if state.head:
        repository.run("update-ref", "-m", "label-agent: undo", "HEAD", state.head, now)
    else:
        repository.run("update-ref", "-d", "HEAD", now)


def _put_back_index(repository: RuleRepository, state: _Before) -> None:
    path = repository.git_path("index")
    if read_file(path) == state.index:
        return
    if _other_entries(repository) != state.entries:
        _unstage(repository, state)
        return
    lock = path.with_name(f"{path.name}.lock")
    lock.touch(exist_ok=False)
    try:
        if state.index is None:
            path.unlink(missing_ok=True)
        else:
            replace_file(path, state.index)
    finally:
        lock.unlink(missing_ok=True)


def _unstage(repository: RuleRepository, state: _Before) -> None:
    """Take back the rule file's entry alone: somebody else staged other work meanwhile."""
    if state.content is None:
        repository.run("rm", "--cached", "-q", "--force", "--", repository.pathspec)
    else:
        repository.run("reset", "-q", "--", repository.pathspec)


def _other_entries(repository: RuleRepository) -> tuple[str, ...]:
    listed = repository.run("ls-files", "--stage", "-v", "-z").out.split("\0")
    own = f"\t{repository.name}"
    return tuple(entry for entry in listed if entry and not entry.endswith(own))


@contextmanager
def _interrupt_deferred() -> Iterator[None]:
    """Let Ctrl-C reach git, and only then, with everything settled, this process."""
    ignored = signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None)
    if ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        seen.append(number)

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield
    except BaseException:
        if seen:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, previous)
    if seen:
        raise KeyboardInterrupt
