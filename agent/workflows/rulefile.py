"""Which rule file a command uses: the one named, the one found upwards, or the built-in one."""

from __future__ import annotations

import os
from pathlib import Path

from agent.bundled import bundled_folder
from agent.core.rules import RuleSet


def rules_in_force(named: Path | None = None) -> RuleSet:
    """Load the rules a command works with.

    Raises:
        RuleFileError: the file cannot be used; it carries all findings.
    """
    from agent.ruleset.codec import parse_rules
    from agent.ruleset.files import is_shipped, read_rule_text

    path = rule_path(named)
    return parse_rules(read_rule_text(path), source=shown_path(path), shipped=is_shipped(path))


def rule_path(named: Path | None = None) -> Path:
    """Give the path of the rule file in force."""
    from agent.ruleset.files import BUILTIN_FILE, find_rule_file

    found = named or find_rule_file(Path.cwd())
    return found or bundled_folder("rules") / BUILTIN_FILE


def shown_path(path: Path) -> str:
    """Name a file as the user sees it: relative to the working folder, shipped ones by name."""
    if path.parent == bundled_folder("rules"):
        return f"rules/{path.name}"
    below = path.is_absolute() and path.is_relative_to(Path.cwd())
    return os.path.relpath(path) if below else str(path)
