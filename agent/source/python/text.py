"""Read Python text lexically: noise, functions by indentation, decorators, aliases.

Used only to follow callers from a kernel upwards, where many files are touched and a link may be
wrong without harm; evidence itself is always checked on the syntax tree.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from agent.source.python.imports import Imports, read_imports

_HASH = ord("#")
_MAX_BEFORE = 1_000
_MAX_CALL = 4_000
_MAX_MENTIONS = 2_000
_NOISE = re.compile(
    rb"#[^\n]*|[rRbBuUfF]{0,2}(?:\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)"
    rb"|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')",
    re.DOTALL,
)
_DEFINITION = re.compile(rb"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)", re.MULTILINE)
_ALIAS = re.compile(rb"([A-Za-z_]\w*)[ \t]*(?::[^=\n]{1,60})?=[ \t]*$")
_KEYWORD = re.compile(rb"(?:async |def |class |@|from |import )")
_BRACKETS = re.compile(rb"[()\[\]{}]")
_STUB = re.compile(
    rb"\w+\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\)){0,6000}\)\s*(?:->[^:\n]+)?:\s*(?:#[^\n]*\s*)*"
    rb"(?:\"\"\".*?\"\"\"\s*|'''.*?'''\s*)?(?:\.\.\.|pass\b|raise\b|(?=\n\S)|\Z)",
    re.DOTALL,
)
_DOTTED = re.compile(rb"(?:[A-Za-z_]\w*[ \t]*\.[ \t]*)+$")


@dataclass(frozen=True, slots=True)
class Mention:
    """One place in Python text that holds a name.

    `how` is call, launch, definition, reference, import, string or prose; `functions` are the
    enclosing functions and classes, innermost first; `alias` is the variable the name is assigned
    to. `receiver` is what stands before its dot: "" for a bare name, None for an expression.
    """

    how: str
    offset: int
    functions: tuple[str, ...]
    alias: str = ""
    receiver: str | None = ""


@dataclass(frozen=True, slots=True)
class Defined:
    """One `def` or `class` with the offsets where it begins and where its block ends."""

    start: int
    end: int
    name: str
    is_class: bool


@dataclass(frozen=True)
class PyText:
    """Noise spans, definitions and imports of one file."""

    text: bytes
    noise: tuple[tuple[int, int], ...]
    definitions: tuple[Defined, ...]
    imports: Imports

    def noise_at(self, offset: int) -> tuple[int, int] | None:
        """Give the string or comment an offset lies in."""
        index = bisect_right(self.noise, (offset, 1 << 60)) - 1
        if index >= 0 and self.noise[index][0] <= offset < self.noise[index][1]:
            return self.noise[index]
        return None

    def around(self, offset: int) -> tuple[str, ...]:
        """Name the functions and classes around an offset, innermost first, by indentation."""
        line = self.text.rfind(b"\n", 0, offset) + 1
        index = bisect_left(self.definitions, line, key=lambda one: one.start)
        return tuple(
            f"class {one.name}" if one.is_class else one.name
            for one in reversed(self.definitions[:index])
            if offset < one.end
        )

    def mentions(self, word: re.Pattern[bytes]) -> Iterator[Mention]:
        """Yield the mentions of a whole word outside comments."""
        for match in islice(word.finditer(self.text), _MAX_MENTIONS):
            start, end = match.span()
            noise = self.noise_at(start)
            if noise is not None:
                if self.text[noise[0] : noise[0] + 1] != b"#":
                    yield self._in_string(match)
                continue
            yield self._in_code(start, end)

    def _in_code(self, start: int, end: int) -> Mention:
        line = max(self.text.rfind(b"\n", 0, start) + 1, start - _MAX_BEFORE)
        before = self.text[line:start]
        after = self.text[end : end + 2].lstrip()[:1]
        if re.search(rb"\b(?:def|class)[ \t]+$", before):
            return Mention("definition", start, self.around(line))
        if self.imports.holds(start):
            return Mention("import", start, self.around(start))
        how = {b"(": "call", b"[": "launch"}.get(after, "reference")
        bare = re.sub(rb"[\w.]*$", b"", before)
        alias = _ALIAS.search(bare)
        named = alias.group(1).decode() if alias else ""
        return Mention(how, start, self.around(start), named, _receiver(before))

    def _in_string(self, match: re.Match[bytes]) -> Mention:
        exact = self.text[match.start() - 1 : match.start()] in b"\"'" and (
            self.text[match.end() : match.end() + 1] in b"\"'"
        )
        templated = self.text[match.end() : match.end() + 2] in (b"::", b"<{", b"<%", b"<T")
        templated = templated or self.text[match.end() : match.end() + 1] == b"<"
        how = "string" if exact or templated else "prose"
        return Mention(how, match.start(), self.around(match.start()))


@lru_cache(maxsize=256)
def py_text(text: bytes) -> PyText:
    """Read one file; any bytes are accepted."""
    noise = tuple(match.span() for match in _NOISE.finditer(text))
    code = _without(text, noise)
    return PyText(text, noise, tuple(_definitions(code)), read_imports(code))


def _without(text: bytes, noise: Sequence[tuple[int, int]]) -> bytes:
    """Blank comments, and write strings as words of the same length on one line."""
    parts: list[bytes] = []
    done = 0
    for start, end in noise:
        mark = b" " if text[start] == _HASH else b"x"
        parts += (text[done:start], mark * (end - start))
        done = end
    return b"".join((*parts, text[done:]))


def _definitions(code: bytes) -> Iterator[Defined]:
    """Yield the definitions in order; each ends where the next statement is indented no deeper."""
    for match in _DEFINITION.finditer(code):
        end = _block_end(code, match.end(), len(match.group(1)))
        yield Defined(match.start(), end, match.group(3).decode(), match.group(2) == b"class")


def _block_end(code: bytes, start: int, indent: int) -> int:
    """Give the offset of the next statement after `start` that is indented no deeper."""
    for match in _outdented(indent).finditer(code, start):
        if _KEYWORD.match(code, match.end()) or not _is_open(code, start, match.start()):
            return match.start() + 1
    return len(code)


@lru_cache(maxsize=64)
def _outdented(indent: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n[ \t]{0,%d}(?=[^\s)\]}])" % indent)


def _is_open(code: bytes, start: int, end: int) -> bool:
    """Tell whether more brackets open than close between two offsets."""
    opened = sum(code.count(mark, start, end) for mark in (b"(", b"[", b"{"))
    return opened > sum(code.count(mark, start, end) for mark in (b")", b"]", b"}"))


def _receiver(before: bytes) -> str | None:
    """Read what stands before the dot at the end of a text; "" when there is no dot."""
    if not before.rstrip().endswith(b"."):
        return ""
    found = _DOTTED.search(before)
    if found is None or before[: found.start()].rstrip().endswith((b")", b"]", b"}", b".")):
        return None
    return re.sub(r"\s", "", found.group().decode()).rstrip(".")


def decorated_with(text: bytes, name: str) -> tuple[str, ...]:
    """Name the functions whose decorator holds `"name"` as a whole string."""
    pattern = re.compile(
        rb"^[ \t]*@[\w.]+\((?:[^()]|\([^()]*\)){0,300}?[\"']"
        + re.escape(name.encode())
        + rb"[\"'](?:[^()]|\([^()]*\)){0,300}?\)[ \t]*\r?\n(?:[ \t]*@[^\n]*\n)*"
        + rb"[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)",
        re.MULTILINE,
    )
    return tuple(found.decode() for found in pattern.findall(text))


def is_binding(text: bytes, offset: int) -> bool:
    """Tell whether the `def` whose name stands at an offset binds a native function.

    That is a decorated stub: nothing but `...`, `pass` or a docstring below its head.
    """
    line = text.rfind(b"\n", 0, offset) + 1
    above = text[:line].rstrip()
    if above[-1:] != b")" and not above[above.rfind(b"\n") + 1 :].lstrip().startswith(b"@"):
        return False
    return _STUB.match(text, offset) is not None


def in_call(text: bytes, offset: int) -> bool:
    """Tell whether an offset lies within the arguments of a call, however deep."""
    depth = 0
    code = text[max(offset - _MAX_CALL, 0) : offset]
    for match in reversed(list(_BRACKETS.finditer(code))):
        if match.group() in b")]}":
            depth += 1
        elif depth:
            depth -= 1
        elif match.group() == b"(" and re.search(rb"\w\s*$", code[: match.start()]):
            return True
    return False
