"""Whether a definition takes as many template arguments as a kernel name shows.

A demangled name spells out every argument, defaults too, so that the numbers are equal in one
version of the source; only a parameter pack stands for any number. A list of names may have
shortened them, so that this warns and does not refuse.
"""

from __future__ import annotations

import re

from agent.source.names import angle_parts
from agent.source.native.structure import GlobalHead, NativeFile

_TEMPLATE = re.compile(r"\btemplate\s*<")
_HIDDEN = re.compile(r"[(,]\s*(?:const\s+)?auto\b")
"""A parameter `auto x` is a template parameter that no `template<...>` shows."""
_LONGEST = 4_000


def arity_agrees(arguments: int | None, file: NativeFile, head: GlobalHead) -> bool:
    """Tell whether a definition can make a name with so many template arguments; None fits any."""
    parameters = None if arguments is None else _parameters(file, head)
    if arguments is None or parameters is None:
        return True
    if any("..." in one for one in parameters):
        return arguments >= len(parameters) - 1
    return arguments == len(parameters)


def _parameters(file: NativeFile, head: GlobalHead) -> tuple[str, ...] | None:
    """Give the template parameters of a function itself, none for a plain one; None if unclear."""
    start = max(head.offset - _LONGEST, 0)
    before = file.code[start : head.offset].decode("latin-1")
    after = file.code[head.offset : head.offset + _LONGEST].decode("latin-1").partition("{")[0]
    declared = before[max(map(before.rfind, ";{}")) + 1 :]
    if head.macro or not head.name or _HIDDEN.search(after):
        return None
    opened = list(_TEMPLATE.finditer(declared))
    if not opened:
        unclear = "template" in declared or declared.count(">") > declared.count("<")
        return None if unclear else ()
    return angle_parts(declared[opened[-1].end() :]) or None
