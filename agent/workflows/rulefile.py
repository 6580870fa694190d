"""Which rule file a command uses: the one named, the one found upwards, or the built-in one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent.bundled import bundled_folder
from agent.kept import KeptFolder, digest_of_files
from agent.ruleset.files import (
    BUILTIN_FILE,
    find_rule_file,
    is_shipped,
    read_rule_text,
)

if TYPE_CHECKING:
    from agent.core.rules import RuleSet


def rules_in_force(named: Path | None = None, *, kept: KeptFolder | None = None) -> RuleSet:
    """Load the rules a command works with.

    A file without a fault is kept as it was parsed, if `kept` says where.

    Raises:
        RuleFileError: the file cannot be used; it carries all findings.
    """
    path = rule_path(named)
    text, source, shipped = read_rule_text(path), shown_path(path), is_shipped(path)
    if kept is None:
        return _parse(text, source, shipped=shipped)
    from agent.ruleset.stored import read_rules, write_rules

    name = _kept_name(text, source, shipped=shipped)
    ruleset = read_rules(kept.get(name) or b"")
    if ruleset is None:
        ruleset = _parse(text, source, shipped=shipped)
        kept.put(name, write_rules(ruleset))
    return ruleset


def _parse(text: str, source: str, *, shipped: bool) -> RuleSet:
    from agent.ruleset.codec import parse_rules

    return parse_rules(text, source=source, shipped=shipped)


def _kept_name(text: str, source: str, *, shipped: bool) -> str:
    """Name what a text means to this very code, beside the rule files it may extend."""
    import hashlib

    package = Path(__file__).parent.parent
    code = [path for part in ("core", "ruleset") for path in sorted((package / part).glob("*.py"))]
    meant_by = digest_of_files([*code, *sorted(bundled_folder("rules").glob("*.toml"))])
    parts = "\0".join((meant_by, source, str(shipped), text))
    return f"{hashlib.sha256(parts.encode()).hexdigest()}.rules"


def rule_path(named: Path | None = None) -> Path:
    """Give the path of the rule file in force."""
    found = named or find_rule_file(Path.cwd())
    return found or bundled_folder("rules") / BUILTIN_FILE


def shown_path(path: Path) -> str:
    """Name a file as the user sees it: relative to the working folder, shipped ones by name."""
    if path.parent == bundled_folder("rules"):
        return f"rules/{path.name}"
    below = path.is_absolute() and path.is_relative_to(Path.cwd())
    return os.path.relpath(path) if below else str(path)
