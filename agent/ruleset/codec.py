"""Rule file text -> `RuleSet`: everything wrong is found at once, each with its file and line.

Changing a text without disturbing the rest of it is `agent.ruleset.editing`.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from agent.bundled import bundled_folder
from agent.core.proposals import Finding
from agent.core.rules import RuleSet
from agent.ruleset.assemble import Draft, assembled
from agent.ruleset.failure import rule_file_error
from agent.ruleset.files import BUILTIN_FILE, RULE_FILE, is_shipped, read_rule_text
from agent.ruleset.positions import line_table

_BUILTIN = re.compile(r"builtin@([1-9][0-9]{0,8})")
_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_UTF8_BOM = "\ufeff"


def load_rules(path: str | Path | None = None) -> RuleSet:
    """Read a rule file with what it extends; the built-in one when no path is given.

    Raises:
        RuleFileError: the file cannot be read or used; it carries all findings.
    """
    if path is None:
        return load_builtin()
    return parse_rules(read_rule_text(path), source=str(path), shipped=is_shipped(path))


def load_builtin(version: int | None = None) -> RuleSet:
    """Read the shipped rule file, or an earlier version of it that is still shipped.

    Raises:
        RuleFileError: that version is not shipped.
    """
    shipped = _shipped(bundled_folder("rules"), version)
    if shipped is None:
        raise rule_file_error(
            [Finding("RS010", f"builtin@{version} is not shipped", location="builtin")]
        )
    return shipped


def parse_rules(text: str, *, source: str = RULE_FILE, shipped: bool = False) -> RuleSet:
    """Give the rule set of a text; `source` is the file's name in findings and in `Rule.source`.

    `shipped`: the text is one of the package's; its rules are `builtin@N`'s.

    Raises:
        RuleFileError: something is wrong; it carries all findings, in the order of the lines.
    """
    ruleset, findings = checked_rules(text, source=source, shipped=shipped)
    if findings:
        raise rule_file_error(findings)
    return ruleset


def checked_rules(
    text: str, *, source: str = RULE_FILE, shipped: bool = False
) -> tuple[RuleSet, tuple[Finding, ...]]:
    """Give what is usable of a text, and all errors found on the way.

    Raises:
        RuleFileError: the text is not TOML, so nothing of it is usable.
    """
    parsed = parsed_toml(text, source=source)
    lines = line_table(text.removeprefix(_UTF8_BOM))
    draft = Draft(parsed, lines, source, shipped)
    return assembled(draft, base=_extended(parsed, draft))


def parsed_toml(text: str, *, source: str = RULE_FILE) -> dict[str, Any]:
    """Parse TOML; a byte order mark is allowed.

    Raises:
        RuleFileError: with the line, when the text is not TOML.
    """
    try:
        return tomllib.loads(text.removeprefix(_UTF8_BOM))
    except RecursionError:
        raise rule_file_error(
            [Finding("RS002", "not TOML: nested too deeply", location=source)]
        ) from None
    except ValueError as err:
        message = str(err)
        found = _AT_LINE.search(message)
        line = found[1] if found and found[1] else str(text.rstrip().count("\n") + 1)
        what = message[: found.start()] if found else message
        location = f"{source}:{line}"
        finding = Finding("RS002", f"not TOML: {what}", location=location, hint=_TOML_HINT)
        raise rule_file_error([finding]) from err


_TOML_HINT = "write a pattern in single quotes: 'a\\d+' needs no escapes"


def builtin_version() -> int:
    """Give the version of the shipped rule file."""
    return load_builtin().version


def _extended(parsed: dict[str, Any], draft: Draft) -> RuleSet | None:
    """Give the rule set a file extends; None without `extends`, or with a finding."""
    extends = parsed.get("extends", "")
    if not isinstance(extends, str) or not extends:
        return None
    found = _BUILTIN.fullmatch(extends)
    if found is None:
        draft.report("RS010", f'cannot extend "{extends}"', ("extends",), hint=_EXTENDS_HINT)
        return None
    shipped = _shipped(bundled_folder("rules"), int(found[1]))
    if shipped is not None:
        return shipped
    newest = load_builtin()
    hint = f'this release ships builtin@{newest.version}; write extends = "builtin@N" of it'
    draft.report("RS010", f"{extends} is not shipped", ("extends",), hint=hint)
    return newest


_EXTENDS_HINT = 'only a shipped rule file can be extended: extends = "builtin@N"'


@cache
def _shipped(folder: Path, version: int | None) -> RuleSet | None:
    """Give a shipped version, read once a process; earlier ones are named `builtin-N.toml`."""
    if version is None:
        return parse_rules(read_rule_text(folder / BUILTIN_FILE), source=BUILTIN_FILE, shipped=True)
    newest = _shipped(folder, None)
    if newest is not None and newest.version == version:
        return newest
    earlier = folder / f"builtin-{version}.toml"
    if not earlier.is_file():
        return None
    return parse_rules(read_rule_text(earlier), source=earlier.name, shipped=True)
