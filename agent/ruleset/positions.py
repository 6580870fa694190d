"""Where things stand in a TOML text: the line and span of every header and key.

TOML parsers give values without places. This scans the statements of a text that a parser has
already accepted, so it needs no error handling and never guesses: strings, comments and nested
brackets are skipped whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Place = tuple[str | int, ...]
"""A path into the parsed value: `("rule", 3, "evidence", 0, "lines")`."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:\\[\s\S]|[^\\])*?"""(?:"{0,2})'
    r"|'''[\s\S]*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^\s,\]}#][^\n,\]}#]*")
_NESTED = re.compile(r"[^\[\]{}\"'#]+|#[^\n]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Statement:
    """One header or one key with its value; `end` is past the value or the closing bracket.

    `place` is the full path; for `[[rule]]` it ends with the index of this table.
    `value` is where the value starts (equal to `end` for headers).
    """

    kind: Literal["array", "table", "key"]
    place: Place
    line: int
    start: int
    value: int
    end: int


def statements(text: str, *, start: int = 0) -> tuple[Statement, ...]:
    """Give every header and key of a valid TOML text, in order.

    The text must have been accepted by a TOML parser; `start` skips a byte order mark.
    """
    return tuple(_scan(text, start))


def line_table(text: str) -> dict[Place, int]:
    """Map each header, key and array element of a valid TOML text to its line (1-based)."""
    lines: dict[Place, int] = {}
    for statement in statements(text):
        lines.setdefault(statement.place, statement.line)
        if statement.kind == "key" and text.startswith("[", statement.value):
            for index, at in enumerate(_elements(text, statement.value)):
                line = statement.line + text.count("\n", statement.start, at)
                lines.setdefault((*statement.place, index), line)
    return lines


def line_of(lines: Mapping[Place, int], place: Place) -> int:
    """Give the line of a place, or of the nearest place around it; 1 for the whole file."""
    for length in range(len(place), 0, -1):
        if (line := lines.get(place[:length])) is not None:
            return line
    return 1


def _scan(text: str, start: int) -> Iterator[Statement]:
    counts: dict[Place, int] = {}
    header: Place = ()
    at = _after(_BLANK, text, start)
    line, counted = 1, 0
    while at < len(text):
        line, counted = line + text.count("\n", counted, at), at
        if text.startswith("[", at):
            statement, header = _header(text, at, line, counts)
        else:
            statement = _key(text, at, line, header)
        yield statement
        at = _after(_BLANK, text, statement.end)


def _header(text: str, start: int, line: int, counts: dict[Place, int]) -> tuple[Statement, Place]:
    is_array = text.startswith("[[", start)
    keys, end = _dotted(text, start + (2 if is_array else 1))
    end += 2 if is_array else 1
    place: Place = ()
    for key in keys[:-1]:
        place = _inside((*place, key), counts)
    place = (*place, keys[-1])
    if is_array:
        counts[place] = counts.get(place, -1) + 1
        place = (*place, counts[place])
    return Statement("array" if is_array else "table", place, line, start, end, end), place


def _inside(place: Place, counts: dict[Place, int]) -> Place:
    """Step into the newest table of an array of tables."""
    return (*place, counts[place]) if place in counts else place


def _key(text: str, start: int, line: int, header: Place) -> Statement:
    keys, at = _dotted(text, start)
    value = _after(_SPACE, text, at + 1)
    return Statement("key", (*header, *keys), line, start, value, _value_end(text, value))


def _elements(text: str, start: int) -> Iterator[int]:
    """Give where each element of the array at `start` begins."""
    at = _after(_BLANK, text, start + 1)
    while not text.startswith("]", at):
        yield at
        at = _after(_BLANK, text, _value_end(text, at))
        if text.startswith(",", at):
            at = _after(_BLANK, text, at + 1)


def _dotted(text: str, at: int) -> tuple[list[str], int]:
    """Read a dotted key; the position is past it and the blanks behind it."""
    keys: list[str] = []
    while True:
        at = _after(_SPACE, text, at)
        found = _STRING.match(text, at) or _BARE_KEY.match(text, at)
        assert found is not None, "the text was accepted by a TOML parser"  # noqa: S101
        keys.append(_unquoted(found[0]))
        at = _after(_SPACE, text, found.end())
        if not text.startswith(".", at):
            return keys, at
        at += 1


def _unquoted(key: str) -> str:
    if key.startswith("'"):
        return key[1:-1]
    if key.startswith('"'):
        return _ESCAPE.sub(_unescaped, key[1:-1])
    return key


def _unescaped(found: re.Match[str]) -> str:
    if code := found[1] or found[2]:
        return chr(int(code, 16))
    return _ESCAPED.get(found[3], found[3])


def _value_end(text: str, at: int) -> int:
    if not text.startswith(("[", "{"), at):
        found = _STRING.match(text, at) or _BARE_VALUE.match(text, at)
        return at + len(found[0].rstrip()) if found else at
    depth = 0
    while at < len(text):
        if text[at] in "[{":
            depth += 1
        elif text[at] in "]}":
            depth -= 1
            if not depth:
                return at + 1
        elif found := _STRING.match(text, at) or _NESTED.match(text, at):
            at = found.end()
            continue
        at += 1
    return at


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
