"""Does a Python function only load or compile a module, for others to call what is in it?"""

from __future__ import annotations

import re

from agent.source.python.text import py_text
from agent.source.snapshot import whole_word

_MAX_BEFORE = 4_000
_MAX_AFTER = 2_000
_GIVEN = re.compile(rb"^[ \t]*(?:return[ \t]+|(\w+)[ \t]*=[ \t]*)(?:\w+\.)*(\w+)\(", re.MULTILINE)
_BRACKETS = re.compile(rb"[()\[\]{}]")
_CALLEE = re.compile(rb"(\w+)[ \t]*\Z")
_MAX_NAME = 120
_LOADERS = re.compile(rb"(?:^|_)(?:load|compile|build|import|module|function)(?:_|$)")


def loads_module(text: bytes, offset: int) -> bool:
    """Tell whether a text stands in the arguments of a loader whose result is returned.

    That is `return load_jit(...)`, or `module = load_jit(...)` and then `return module`.
    """
    start = max(offset - _MAX_BEFORE, 0)
    given = None
    for match in _GIVEN.finditer(text, start, offset):
        given = match
    if given is None or not _LOADERS.search(given.group(2)) or not _is_open(text, given, offset):
        return False
    if given.group(1) is None:
        return True
    returned = re.compile(rb"^[ \t]*return[ \t]+" + given.group(1) + rb"[ \t]*$", re.MULTILINE)
    return returned.search(text, offset, offset + _MAX_AFTER) is not None


def is_loaded(text: bytes, name: str) -> bool:
    """Tell whether a file asks a loader for a native function by its name, as a string."""
    return any(
        one.how == "string" and _in_loader(text, one.offset)
        for one in py_text(text).mentions(whole_word(name))
    )


def _in_loader(text: bytes, offset: int) -> bool:
    """Tell whether an offset lies within the arguments of a loader, however deep."""
    depth = 0
    for match in reversed(list(_BRACKETS.finditer(text, max(offset - _MAX_BEFORE, 0), offset))):
        if match.group() in b")]}":
            depth += 1
        elif depth:
            depth -= 1
        else:
            callee = _CALLEE.search(text, max(match.start() - _MAX_NAME, 0), match.start())
            if callee is not None and _LOADERS.search(callee.group(1)):
                return True
    return False


def _is_open(text: bytes, call: re.Match[bytes], offset: int) -> bool:
    """Tell whether a call's bracket is still open at an offset."""
    opened = text.count(b"(", call.end() - 1, offset)
    return opened > text.count(b")", call.end() - 1, offset)
