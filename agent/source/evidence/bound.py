"""Is a host function of a native file bound for Python, or called by one that is?

By name, generously: a mention in another function, in a macro, in a registration or anywhere in
runtime Python counts as a use; its own definition and declarations do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent.source.definitions import Definitions
from agent.source.native.calls import call_around, pasted
from agent.source.native.structure import NativeFile, native_file
from agent.source.paths import is_python
from agent.source.python.text import py_text
from agent.source.reach import registers, says_nothing
from agent.source.snapshot import SourceFile, whole_word

_MAX_ASKED = 40
_MAX_BEFORE = 200
_QUALIFIED = re.compile(rb"(?:\w+\s*::\s*)*$")
_BOUND = ""
"""What uses a name whose user needs no other: a macro, a registration, a type, Python."""


def is_bound(bundles: Sequence[Definitions], file: SourceFile, offset: int) -> bool:
    """Tell whether the function around an offset may run: some chain of uses ends outside C++.

    A template of native source has no function of its own: Python fills it.
    """
    if file.path.endswith(".jinja"):
        return True
    pending = _owners(native_file(file.text), offset)
    asked: set[str] = set()
    while pending:
        name = pending.pop()
        if says_nothing(name) or len(asked) >= _MAX_ASKED:
            return True
        if name in asked:
            continue
        asked.add(name)
        for user in _users(bundles, file.repo, name):
            if user == _BOUND:
                return True
            pending.append(user)
    return False


def _owners(parsed: NativeFile, offset: int) -> list[str]:
    """Name the function around an offset, or its class where the function's name says nothing."""
    function, classes = parsed.enclosing(offset)
    named = [one for one in (function, *classes) if not says_nothing(one)]
    return named or [function]


def _users(bundles: Sequence[Definitions], repo: str, name: str) -> Iterator[str]:
    literal = name.encode("utf-8", "replace")
    for bundle in bundles:
        for file in bundle.snapshot.holding(literal, "python"):
            if is_python(file.path) and _mentioned(file, name):
                yield _BOUND
    for bundle in bundles:
        if bundle.snapshot.repo == repo:
            for file in bundle.snapshot.holding(literal, "native"):
                if not is_python(file.path):
                    yield from _native_users(native_file(file.text), name)


def _mentioned(file: SourceFile, name: str) -> bool:
    return any(one.how != "prose" for one in py_text(file.text).mentions(whole_word(name)))


def _native_users(parsed: NativeFile, name: str) -> Iterator[str]:
    for spelled in (name, *pasted(parsed, name)):
        for match in whole_word(spelled).finditer(parsed.code):
            function, _ = parsed.enclosing(match.start())
            if registers(function) or parsed.macro_at(match.start()) is not None:
                yield _BOUND
            elif function and function != name:
                yield from _owners(parsed, match.start())
            elif not function and _is_given(parsed.code, match.start()):
                yield _BOUND


def _is_given(code: bytes, offset: int) -> bool:
    """Tell whether a name outside all functions is given to something, not declared there."""
    before = code[max(offset - _MAX_BEFORE, 0) : offset]
    before = before[: _QUALIFIED.search(before).start()]  # type: ignore[union-attr] # matches ""
    return before.rstrip().endswith((b"&", b"=", b"<", b",", b":", b"(")) or bool(
        call_around(code, offset)[0]
    )
