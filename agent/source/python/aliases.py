"""What a variable of a Python file may stand for: `k = one if wide else two; k[grid](...)`."""

from __future__ import annotations

import re
from functools import lru_cache

_MAX_NAMES = 24
_MAX_VALUE = 2_000
_MAX_LINES = 12
_HELD = re.compile(rb"^[ \t]*(?:self\.)?(\w+)[ \t]*=[ \t]*\((?:[^()]|\([^()]*\))*\Z", re.MULTILINE)
_DOTTED = re.compile(rb"[A-Za-z_][\w.]{3,}")
_GIVES_ITS_ARGUMENT = re.compile(rb"partial|jit|autotune|\bif\b|^\($")
"""A call gives something else than what it names, but for these."""


@lru_cache(maxsize=4_096)
def assigned_names(text: bytes, variable: str) -> tuple[tuple[str, str], ...]:
    """Give the (object, name) that are assigned to a variable or a field anywhere in a file."""
    found: list[tuple[str, str]] = []
    assigned = (
        re.escape(variable.encode("utf-8", "replace")) + rb"[ \t]*(?::[^=\n]+)?=[ \t]*(?=[^=\n])"
    )
    for match in re.finditer(assigned, text):
        line = text.rfind(b"\n", 0, match.start()) + 1
        if text[line : match.start()].strip() not in (b"", b"self."):
            continue
        value = _statement(text[match.end() : match.end() + _MAX_VALUE])
        first = value.partition(b"\n")[0]
        if b"(" in first and not _GIVES_ITS_ARGUMENT.search(first):
            continue
        for dotted in _DOTTED.findall(value):
            owner, _, word = dotted.decode().rpartition(".")
            found.append((owner, word))
    return tuple(dict.fromkeys(found))[:_MAX_NAMES]


def held_by(text: bytes, offset: int) -> str:
    """Name the variable whose value in brackets an offset lies in: `k = (one if wide else two)`."""
    found = _HELD.search(text, max(offset - _MAX_VALUE, 0), offset)
    return found.group(1).decode() if found is not None else ""


def _statement(text: bytes) -> bytes:
    """Give the lines of a text up to where its first statement ends."""
    lines: list[bytes] = []
    opened = 0
    for line in text.split(b"\n")[:_MAX_LINES]:
        lines.append(line)
        code = line.partition(b"#")[0].rstrip()
        opened += sum(map(code.count, (b"(", b"[", b"{"))) - sum(
            map(code.count, (b")", b"]", b"}"))
        )
        if opened <= 0 and not code.endswith(b"\\"):
            break
    return b"\n".join(lines)
