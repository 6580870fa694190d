"""Which rule file a command uses: the one named, the one found upwards, or the built-in one."""

from __future__ import annotations

from pathlib import Path

from agent.core.rules import RuleSet


def rules_in_force(named: Path | None, *, folder: Path | None = None) -> RuleSet:
    """Load the rules a command works with.

    Raises:
        RuleFileError: the file cannot be used; it carries all findings.
    """
    from agent.ruleset.codec import find_rule_file, load_rules

    if named is not None:
        return load_rules(named)
    found = find_rule_file(folder or Path.cwd())
    return load_rules(found)
