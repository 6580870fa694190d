"""Does a Python function only load or compile a module, for others to call what is in it?"""

from __future__ import annotations

import re

_MAX_BEFORE = 4_000
_MAX_AFTER = 2_000
_GIVEN = re.compile(rb"^[ \t]*(?:return[ \t]+|(\w+)[ \t]*=[ \t]*)(?:\w+\.)*(\w+)\(", re.MULTILINE)
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


def _is_open(text: bytes, call: re.Match[bytes], offset: int) -> bool:
    """Tell whether a call's bracket is still open at an offset."""
    opened = text.count(b"(", call.end() - 1, offset)
    return opened > text.count(b")", call.end() - 1, offset)
