"""Read Python text lexically: noise, functions by indentation, decorators, aliases.

Used only to follow callers from a kernel upwards, where many files are touched and a link may be
wrong without harm; evidence itself is always checked on the syntax tree.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

_MAX_BEFORE = 1_000
_MAX_MENTIONS = 2_000
_NOISE = re.compile(
    rb"#[^\n]*|[rRbBuUfF]{0,2}(?:\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)"
    rb"|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')",
    re.DOTALL,
)
_DEFINITION = re.compile(rb"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)", re.MULTILINE)
_ALIAS = re.compile(rb"([A-Za-z_]\w*)[ \t]*(?::[^=\n]{1,60})?=[ \t]*$")
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import\b[^\n]*$|^[ \t]*from\b[^\n]*$")


@dataclass(frozen=True, slots=True)
class Mention:
    """One place in Python text that holds a name.

    `how` is call, launch, definition, reference, import or string; `functions` are the enclosing
    functions and classes, innermost first; `alias` is the variable the name is assigned to.
    """

    how: str
    offset: int
    functions: tuple[str, ...]
    alias: str = ""


@dataclass(frozen=True)
class PyText:
    """Noise spans and definitions of one file."""

    text: bytes
    noise: tuple[tuple[int, int], ...]
    definitions: tuple[tuple[int, int, bytes, str], ...]

    def noise_at(self, offset: int) -> tuple[int, int] | None:
        """Give the string or comment an offset lies in."""
        index = bisect_right(self.noise, (offset, 1 << 60)) - 1
        if index >= 0 and self.noise[index][0] <= offset < self.noise[index][1]:
            return self.noise[index]
        return None

    def around(self, offset: int) -> tuple[str, ...]:
        """Name the functions and classes around an offset, innermost first, by indentation."""
        line = self.text.rfind(b"\n", 0, offset) + 1
        before = self.text[line : min(offset, line + _MAX_BEFORE)]
        indent = len(before) - len(before.lstrip(b" \t"))
        found: list[str] = []
        index = bisect_right(self.definitions, (offset, 1 << 60)) - 1
        for start, depth, kind, name in reversed(self.definitions[: index + 1]):
            if depth < indent and start < line:
                found.append(name if kind == b"def" else f"class {name}")
                indent = depth
            if not indent:
                break
        return tuple(found)

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
        if _IMPORT.match(self.text[line : self.text.find(b"\n", end, end + _MAX_BEFORE)]):
            return Mention("import", start, self.around(start))
        how = {b"(": "call", b"[": "launch"}.get(after, "reference")
        bare = re.sub(rb"[\w.]*$", b"", before)
        alias = _ALIAS.search(bare)
        return Mention(how, start, self.around(start), alias.group(1).decode() if alias else "")

    def _in_string(self, match: re.Match[bytes]) -> Mention:
        exact = self.text[match.start() - 1 : match.start()] in b"\"'" and (
            self.text[match.end() : match.end() + 1] in b"\"'"
        )
        templated = self.text[match.end() : match.end() + 2] in (b"::", b"<{", b"<%", b"<T")
        templated = templated or self.text[match.end() : match.end() + 1] == b"<"
        how = "string" if exact or templated else "prose"
        return Mention(how, match.start(), self.around(match.start()))


@lru_cache(maxsize=1_024)
def py_text(text: bytes) -> PyText:
    """Read one file; any bytes are accepted."""
    noise = tuple(match.span() for match in _NOISE.finditer(text))
    draft = PyText(text, noise, ())
    definitions = tuple(
        (match.start(), len(match.group(1)), match.group(2), match.group(3).decode())
        for match in _DEFINITION.finditer(text)
        if draft.noise_at(match.start(3)) is None
    )
    return PyText(text, noise, definitions)


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
