"""Which packages bind an operator's name themselves: what resolves to one of them means its own.

Packages that are built side by side often bind operators of one name, so that the name alone does
not tell whose function a call runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from agent.source.native.structure import native_file
from agent.source.paths import is_python
from agent.source.python.loading import is_loaded
from agent.source.python.modules import Home, Modules
from agent.source.python.text import is_binding, py_text
from agent.source.snapshot import SourceFile, whole_word

_REGISTERED = re.compile(rb"\b(?:def|impl)\(\s*\"(\w+)")


class Bindings:
    """The native names that packages of some checkouts bind for Python."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._known: dict[tuple[str, str], bool] = {}

    def is_anothers(self, name: str, home: Home, packages: frozenset[str]) -> bool:
        """Tell whether `packages` bind a name themselves and none of them is that of a file.

        False where a package is not known, or binds nothing of that name.
        """
        if not packages:
            return False
        own = self._modules.packages_near(home)
        apart = bool(own) and own.isdisjoint(packages)
        return apart and all(self._binds(package, name) for package in packages)

    def _binds(self, package: str, name: str) -> bool:
        key = (package, name)
        if key not in self._known:
            self._known[key] = self._find(package, name)
        return self._known[key]

    def _find(self, package: str, name: str) -> bool:
        """Look for a registration, a name a loader gives, or a function that is asked for."""
        native = list(self._files(package, name, native=True))
        if any(_registers(file, name) for file in native):
            return True
        python = list(self._files(package, name, native=False))
        if any(_renames(file, name) for file in python):
            return True
        defined = any(defines_native(file, name) for file in native)
        return defined and any(_asks_for(file, name) for file in python)

    def _files(self, package: str, name: str, *, native: bool) -> Iterator[SourceFile]:
        """Yield the files of a package, or of what is built beside it, that hold a name."""
        literal = name.encode("utf-8", "replace")
        for snapshot in self._modules.snapshots:
            for file in snapshot.holding(literal, "native" if native else "python"):
                home = (file.repo, file.path)
                if is_python(file.path) != native and package in self._modules.packages_near(home):
                    yield file


def defines_native(file: SourceFile, name: str) -> bool:
    """Tell whether a native file defines a function or macro of that name itself."""
    parsed = native_file(file.text)
    names = {one.name for one in parsed.blocks} | {one.name for one in parsed.macros}
    return name in names or any(one.name == name for one in parsed.heads)


@lru_cache(maxsize=1_024)
def registrations(text: bytes) -> tuple[tuple[str, int], ...]:
    """Give the operators a native text registers, each with the offset after its name."""
    return tuple((one.group(1).decode(), one.end()) for one in _REGISTERED.finditer(text))


def _registers(file: SourceFile, name: str) -> bool:
    return any(operator == name for operator, _ in registrations(file.text))


def _renames(file: SourceFile, name: str) -> bool:
    """Tell whether a module compiled while running gives another function by a name."""
    given = re.compile(
        rb"[\"']" + re.escape(name.encode("utf-8", "replace"))
        + rb"[\"']\s*,\s*[rRfF]{0,2}[\"']&?(?:\w+::)*(\w+)"
    )  # fmt: skip
    others = (one for one in given.findall(file.text) if one.decode() != name)
    return next(others, None) is not None and is_loaded(file.text, name)


def _asks_for(file: SourceFile, name: str) -> bool:
    """Tell whether a Python file has a stub for a native function, or loads it by its name."""
    stubs = (
        one.how == "definition" and is_binding(file.text, one.offset)
        for one in py_text(file.text).mentions(whole_word(name))
    )
    return any(stubs) or is_loaded(file.text, name)
