"""Where a review works: the rule file that will change, its text now, and the journal's folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from agent.bundled import bundled_folder
from agent.core.rules import RuleSet
from agent.errors import ReviewError, UsageError
from agent.review.journal import journal_path
from agent.review.repository import work_tree_of
from agent.ruleset.codec import load_builtin, parse_rules
from agent.ruleset.files import RULE_FILE, find_rule_file, read_rule_text


@dataclass(frozen=True)
class Workplace:
    """The rule file in force; `text` is None where it is still to be made.

    Attributes:
        folder: the top of the git work tree around the working folder, else that folder; the
            journal lies below it.
        path: the rule file that accepted rules go into.
    """

    folder: Path
    path: Path
    text: str | None
    ruleset: RuleSet

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return journal_path(self.folder)

    @property
    def name(self) -> str:
        """The rule file as results call it: relative to `folder` where it lies below."""
        try:
            return self.path.relative_to(self.folder).as_posix()
        except ValueError:
            return self.path.name

    def elsewhere(self) -> str:
        """Say where is written when that is not the working folder; "" when it is."""
        here = Path.cwd()
        if self.folder == here and self.path.parent == here:
            return ""
        new = " (new)" if self.text is None else ""
        rules = f"accepted rules go into {self.path}{new}, committed with git there"
        return f"{rules}; proposals are kept in {self.journal}"

    def with_text(self, text: str) -> Workplace:
        """Give the place after the rule file changed."""
        return replace(self, text=text, ruleset=parse_rules(text, source=self.name))

    def relative(self, path: str) -> str:
        """Give a path the user typed as the journal keeps it."""
        return os.path.relpath(path, self.folder)

    def absolute(self, kept: str) -> str:
        """Give a path the journal keeps, as seen from the working folder."""
        return os.path.relpath(self.folder / kept)


def open_workplace(named: Path | None = None) -> Workplace:
    """Find the rule file to change: the one named, the one found upwards, else a new one.

    A new one goes to the top of the git work tree around the working folder.

    Raises:
        RuleFileError: the rule file cannot be used.
        UsageError: the built-in file is named; it is never written.
    """
    here = Path.cwd()
    folder = _top(here)
    found = named if named is not None else find_rule_file(here)
    if found is None:
        return Workplace(folder, folder / RULE_FILE, None, load_builtin())
    path = found.parent.resolve() / found.name
    if path.resolve().is_relative_to(bundled_folder("rules").resolve()):
        raise UsageError(
            "RV017",
            "the built-in rules are never changed",
            location=str(found),
            hint=f"leave --rules out: accepted rules go into a {RULE_FILE} that extends them",
        )
    return Workplace(folder, path, None, load_builtin()).with_text(read_rule_text(path))


def _top(here: Path) -> Path:
    try:
        return work_tree_of(here) or here
    except ReviewError:
        return here
