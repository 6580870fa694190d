"""Is a name that a module defines or imports given another value before anything can use it?

Only assignments that certainly run count: at the top level, outside `if` and `try`, and after the
import or definition. One whose value mentions the name wraps what was there and changes nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agent.source.python.text import py_text
from agent.source.snapshot import whole_word


@lru_cache(maxsize=8_192)
def is_rebound(text: bytes, name: str) -> bool:
    """Tell whether a module defines or imports a name and then gives it another value."""
    at = _assigned_at(text, name)
    if at < 0:
        return False
    parsed = py_text(text)
    defined = (one.start for one in parsed.definitions if one.name == name)
    word = whole_word(name)
    imported = (start for start, end in parsed.imports.spans if word.search(text, start, end))
    first = [*defined, *imported]
    return bool(first) and max(first) < at


def is_attribute_rebound(text: bytes, receiver: str, name: str) -> bool:
    """Tell whether a module gives `receiver.name` another value."""
    return f"{receiver}.{name}".encode() in text and _assigned_at(text, f"{receiver}.{name}") >= 0


def _assigned_at(text: bytes, spelled: str) -> int:
    """Give where the last top-level assignment of a name stands whose value does not mention it."""
    last = -1
    literal = spelled.encode("utf-8", "replace")
    if b"\n" + literal not in text and not text.startswith(literal):
        return last
    word = whole_word(spelled.rpartition(".")[2])
    for match in _assignment(spelled).finditer(text):
        if word.search(match.group(1)) is None and py_text(text).noise_at(match.start()) is None:
            last = match.start()
    return last


@lru_cache(maxsize=2_048)
def _assignment(spelled: str) -> re.Pattern[bytes]:
    return re.compile(
        rb"^" + re.escape(spelled.encode("utf-8", "replace"))
        + rb"[ \t]*(?::[^=\n]+)?=[ \t]*((?:[^=\s].*?)(?=^[^\s)\]}]|\Z))",
        re.MULTILINE | re.DOTALL,
    )  # fmt: skip
