"""Change a rule file's text and nothing else in it: every other byte stays as it was.

Edits are splices at places found by `agent.ruleset.positions`; each result is parsed again and must
mean the old file plus the change, else nothing is given back (docs/decisions/0030).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.core.proposals import Evidence, Finding
from agent.core.rules import Rule, RuleId
from agent.errors import RuleFileError
from agent.ruleset.codec import parsed_toml
from agent.ruleset.failure import rule_file_error
from agent.ruleset.positions import Place, Statement, statements
from agent.ruleset.writing import evidence_values, rule_text, toml_string

Splice = tuple[int, int, str]
_BOM = "\ufeff"
_COMMENTS_ABOVE = re.compile(r"(?:^[ \t]*#[^\n]*\n)+\Z", re.MULTILINE)


def with_rule(text: str, rule: Rule, *, before: RuleId | None = None) -> str:
    """Add a rule at the end, or before another of the same file, and raise `version` by one.

    Where `before` is not in this file (it is of the extended one) the end is before it, too.

    Raises:
        RuleFileError: the text is not TOML, or cannot take the rule.
    """
    parsed = parsed_toml(text)
    if any(entry.get("id") == rule.id for entry in _tables(parsed)):
        raise _refused(f'rule id "{rule.id}" is already in the file', code="RS005")
    index = _index(parsed, before) if before is not None else None
    block = rule_text(rule)
    if index is None:
        splice = _appended(text, block)
        index = len(_tables(parsed))
    else:
        at = _block_start(text, _header(text, ("rule", index)).start)
        splice = (at, at, block + "\n")
    changed = _spliced(text, [splice, *_next_version(text)])
    _check_insertion(parsed, parsed_toml(changed), index, parsed_toml(block)["rule"][0])
    return changed


def with_evidence(text: str, evidence: Mapping[RuleId, Sequence[Evidence]]) -> str:
    """Rewrite the evidence of rules, key by key, and raise `version` by one if anything changed.

    Raises:
        RuleFileError: a rule is not in the file, or has another number of evidence items there.
    """
    parsed = parsed_toml(text)
    found = _statements(text)
    splices: list[Splice] = []
    for rule_id, entries in evidence.items():
        index = _index(parsed, rule_id)
        if index is None:
            raise _refused(f'rule "{rule_id}" is not in the file', code="RS013")
        if len(_tables(parsed)[index].get("evidence", [])) != len(entries):
            raise _refused(f'rule "{rule_id}" has another number of evidence items in the file')
        for position, entry in enumerate(entries):
            place = ("rule", index, "evidence", position)
            splices += _evidence_splices(text, found, place, entry)
    return _spliced(text, [*splices, *_next_version(text)]) if splices else text


def with_extends(text: str, extends: str) -> str:
    """Rewrite `extends`, and raise `version` by one.

    Raises:
        RuleFileError: the file extends nothing.
    """
    for statement in _statements(text):
        if statement.place == ("extends",):
            splice = (statement.value, statement.end, toml_string(extends))
            return _spliced(text, [splice, *_next_version(text)])
    raise _refused("the file extends nothing", code="RS010")


def _evidence_splices(
    text: str, found: Sequence[Statement], place: Place, entry: Evidence
) -> Iterable[Splice]:
    wanted = evidence_values(entry)
    keys = {
        str(statement.place[-1]): statement
        for statement in found
        if statement.kind == "key" and statement.place[:-1] == place
    }
    if not keys:
        raise _refused("evidence written as an inline table cannot be rewritten")
    for key, statement in keys.items():
        if key not in wanted:
            yield (_line_start(text, statement.start), _line_end(text, statement.end), "")
        elif not _means(text[statement.value : statement.end], wanted[key]):
            yield (statement.value, statement.end, wanted[key])
    missing = [f"{key} = {value}\n" for key, value in wanted.items() if key not in keys]
    if missing:
        at = _line_end(text, max(statement.end for statement in keys.values()))
        opening = "" if at == 0 or text[at - 1] == "\n" else "\n"
        yield (at, at, opening + "".join(missing))


def _means(written: str, wanted: str) -> bool:
    """Tell whether two TOML values are equal, however they are written."""
    return bool(parsed_toml(f"v = {written}") == parsed_toml(f"v = {wanted}"))


def _spliced(text: str, splices: Iterable[Splice]) -> str:
    """Apply splices that do not overlap; inserted lines take the file's own line end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for start, end, inserted in sorted(splices, reverse=True):
        text = text[:start] + inserted.replace("\n", newline) + text[end:]
    return text


def _appended(text: str, block: str) -> Splice:
    gap = "" if not text.removeprefix(_BOM) else "\n" if text.endswith("\n") else "\n\n"
    return (len(text), len(text), gap + block)


def _next_version(text: str) -> Iterable[Splice]:
    for statement in _statements(text):
        if statement.place == ("version",):
            written = text[statement.value : statement.end]
            number = parsed_toml(f"v = {written}")["v"]
            if type(number) is not int:
                raise _refused("version is not a whole number", code="RS003")
            yield (statement.value, statement.end, str(number + 1))


def _statements(text: str) -> tuple[Statement, ...]:
    """Give the statements with offsets into the text, a byte order mark counted."""
    shift = len(text) - len(text.removeprefix(_BOM))
    return statements(text, start=shift)


def _header(text: str, place: Place) -> Statement:
    for statement in _statements(text):
        if statement.kind == "array" and statement.place == place:
            return statement
    raise _refused("rules written as an inline array cannot be edited; write [[rule]]")


def _block_start(text: str, header: int) -> int:
    """Give where a table with the comments right above it starts."""
    at = _line_start(text, header)
    above = _COMMENTS_ABOVE.search(text, 0, at)
    return above.start() if above else at


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _tables(parsed: Mapping[str, Any]) -> list[dict[str, Any]]:
    rules = parsed.get("rule", [])
    return [entry for entry in rules if isinstance(entry, dict)] if isinstance(rules, list) else []


def _index(parsed: Mapping[str, Any], rule_id: RuleId) -> int | None:
    ids = [entry.get("id") for entry in _tables(parsed)]
    return ids.index(rule_id) if rule_id in ids else None


def _check_insertion(
    old: Mapping[str, Any], new: Mapping[str, Any], index: int, added: Mapping[str, Any]
) -> None:
    """Prove that the new text means the old one plus the rule."""
    rules = list(new.get("rule", []))
    same = _without_rules(new) == _without_rules(old)
    if rules[index : index + 1] != [added] or not same:
        raise _refused(_LAYOUT)
    del rules[index]
    if rules != old.get("rule", []):
        raise _refused(_LAYOUT)


_LAYOUT = "the file's layout does not allow to add a rule; write [[rule]] tables"


def _without_rules(parsed: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parsed.items() if key not in ("rule", "version")}


def _refused(message: str, *, code: str = "RS012") -> RuleFileError:
    return rule_file_error([Finding(code, message)])
