"""Read the call around a name in C++ text, and the launch behind it, as far as text tells.

Works on text whose comments and strings are blanked.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agent.source.native.structure import NativeFile, after_brackets

_TRAILING_NAME = re.compile(rb"([A-Za-z_]\w*)(?:<[^<>();]*>)?$")
_MAX_CHAIN = 6


def is_launch(code: bytes, end: int) -> bool:
    """Tell whether `<<<` follows an identifier that ends at `end`, template arguments apart."""
    return launch_offset(code, end) >= 0


def launch_offset(code: bytes, end: int) -> int:
    """Give the offset of the `<<<` that launches the identifier that ends at `end`, or -1."""
    rest = code[end : end + 1_500]
    position = _after_space(rest, 0)
    if rest[position : position + 3] != b"<<<" and rest[position : position + 1] == b"<":
        position = after_brackets(rest, position, b"<", b">")
        position = len(rest) - len(rest[position:].lstrip(b" \t\r\n\\)"))
    return end + position if rest[position : position + 3] == b"<<<" else -1


def call_around(code: bytes, offset: int) -> tuple[str, int]:
    """Name the call or macro whose argument list directly holds an offset, and where it stands.

    A chain, `Launch(grid).with(x)(kernel)`, is named by its first call. No call is ("", -1).
    """
    opening = _opening(code, offset)
    while opening >= 0:
        found = _call_head(code, opening)
        if found[0]:
            return found
        opening = _opening(code, opening)
    return "", -1


def pasted(file: NativeFile, name: str) -> tuple[str, ...]:
    """Give the names that macros of a file make `name` of: `stem`, where one has `x##_tail`."""
    return tuple(
        name.removesuffix(tail)
        for tail in _tails(file.code)
        if name.endswith(tail) and len(name) > len(tail)
    )


@lru_cache(maxsize=512)
def _tails(code: bytes) -> tuple[str, ...]:
    found = re.findall(rb"\b[A-Za-z]\w*\s*##\s*(_\w+)", code)
    return tuple(dict.fromkeys(tail.decode() for tail in found))


def _call_head(code: bytes, opening: int) -> tuple[str, int]:
    """Name the call that a `(` belongs to; ("", -1) for brackets of an expression."""
    for _ in range(_MAX_CHAIN):
        head = code[max(opening - 120, 0) : opening].rstrip()
        end = max(opening - 120, 0) + len(head)
        if head.endswith(b")"):
            opening = _opening(code, end - 1)
            continue
        if (found := _TRAILING_NAME.search(head)) is None:
            return "", -1
        start = end - len(found.group(1))
        before = code[max(start - 120, 0) : start].rstrip()
        if found.group(1).endswith(b"_cast"):
            return "", -1
        if not before.endswith(b"."):
            return found.group(1).decode(), start
        before = before[:-1].rstrip()
        if not before.endswith(b")"):
            return found.group(1).decode(), start
        opening = _opening(code, max(start - 120, 0) + len(before) - 1)
    return "", -1


def _opening(code: bytes, offset: int) -> int:
    """Give the offset of the bracket around an offset within its statement, or -1."""
    depth = 0
    for index in range(offset - 1, max(offset - 2_000, -1), -1):
        char = code[index : index + 1]
        if char in b")]":
            depth += 1
        elif char in b"([":
            if not depth:
                return index
            depth -= 1
        elif char in b";{}":
            return -1
    return -1


def _after_space(text: bytes, start: int) -> int:
    return len(text) - len(text[start:].lstrip())
