"""Finish what was accepted when the process ended between the decision and the commit's record."""

from __future__ import annotations

from agent.review.commit import Committed, commit_rule_file
from agent.review.records import Intent
from agent.review.replace import read_file, remove_file, replace_file
from agent.review.repository import RuleRepository


def finish(intent: Intent, repository: RuleRepository) -> Committed | None:
    """Commit an accepted change exactly as reviewed, if that never happened.

    None where the rule file has gone on without it: somebody has to look again.

    Raises:
        ReviewError: the commit is refused or fails; the rule file is as before the change.
    """
    before = intent.before.encode() if intent.before else None
    after = intent.after.encode()
    committed = repository.content_at(repository.head())
    if committed == after or _holds(committed, intent.rule_id):
        return Committed(repository.last_change(), repository.branch())
    if committed != before:
        return None
    if read_file(repository.path) == after:
        _take_back(repository, before)
    return commit_rule_file(repository, before, after, intent.message)


def _take_back(repository: RuleRepository, before: bytes | None) -> None:
    """Undo the half that was done: the file was written, and a new one maybe announced to git."""
    if before is not None:
        replace_file(repository.path, before)
        return
    remove_file(repository.path)
    if repository.staged():
        repository.ask("rm", "--cached", "-q", "--force", "--", repository.pathspec)


def _holds(committed: bytes | None, rule_id: str) -> bool:
    """Tell whether a later version of the committed file still has the rule."""
    quoted = (f"id = '{rule_id}'".encode(), f'id = "{rule_id}"'.encode())
    return committed is not None and any(line.strip() in quoted for line in committed.splitlines())
