"""What the imports of a Python file bind, read lexically: every alternative of a name is kept.

A file that imports one name from several packages, by platform or in `try`, means any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FROM = re.compile(
    rb"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n\\;]*(?:\\\r?\n[^\n\\;]*)*)",
    re.MULTILINE,
)
_IMPORT = re.compile(rb"^[ \t]*import[ \t]+([\w., \t]+)", re.MULTILINE)
_COMMENT = re.compile(rb"#[^\n]*")
_BOUND = re.compile(r"([\w.]+|\*)(?:\s+as\s+(\w+))?")

Bound = tuple[str, str]
"""(module, name in it); the name is "" where the module itself is bound."""


@dataclass(frozen=True, slots=True)
class Imports:
    """The names a file binds by importing, the modules it takes whole, and where it says so."""

    names: dict[str, tuple[Bound, ...]]
    stars: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    def aliases(self, name: str) -> tuple[str, ...]:
        """Give the other names under which something of that name is bound."""
        return tuple(
            alias
            for alias, bound in self.names.items()
            if alias != name and any(original == name for _, original in bound)
        )

    def holds(self, offset: int) -> bool:
        """Tell whether an offset lies in an import statement."""
        return any(start <= offset < end for start, end in self.spans)


def read_imports(code: bytes) -> Imports:
    """Read the imports of a text whose strings are blanked."""
    names: dict[str, dict[Bound, None]] = {}
    stars: list[str] = []
    spans = []
    for match in _FROM.finditer(code):
        spans.append(match.span())
        module = match.group(1).decode()
        for name, alias in _bound(match.group(2)):
            if name == "*":
                stars.append(module)
            else:
                names.setdefault(alias or name, {})[module, name] = None
    for match in _IMPORT.finditer(code):
        spans.append(match.span())
        for module, alias in _bound(match.group(1)):
            whole = module if alias else module.partition(".")[0]
            names.setdefault(alias or whole, {})[whole, ""] = None
    bound = {name: tuple(found) for name, found in names.items()}
    return Imports(bound, tuple(stars), tuple(spans))


def _bound(text: bytes) -> Iterator[tuple[str, str]]:
    plain = _COMMENT.sub(b"", text).decode("utf-8", "replace").strip("() \t\r\n")
    for part in plain.replace("\\", " ").split(","):
        found = _BOUND.match(part.strip())
        if found is not None:
            yield found.group(1), found.group(2) or ""
