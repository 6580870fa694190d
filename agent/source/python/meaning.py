"""What a name that is called or passed on in a Python file can mean.

Imports decide where there are any; what an object is cannot be told from the text, so that its
methods are told by their names alone, and only where few classes have one of that name.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import Literal

from agent.source.bindings import Bindings
from agent.source.python.modules import Home, Modules, defines
from agent.source.python.rebinding import is_attribute_rebound, is_rebound
from agent.source.python.text import py_text
from agent.source.snapshot import Snapshot, SourceFile

How = Literal["known", "ours", "operator", "method", "nothing"]
_OWN_OPERATORS = frozenset(
    {"aten", "prims", "prim", "c10d", "c10d_functional", "_c10d_functional", "inductor",
     "quantized", "mkldnn", "profiler", "rngprims", "symm_mem", "higher_order"}
)  # fmt: skip
"""Namespaces of operators that PyTorch registers itself."""
_BASICS = (str, bytes, list, dict, set, int, io.TextIOWrapper, io.BytesIO, Thread, Path)
_EVERYDAY = frozenset(name for kind in _BASICS for name in dir(kind))
"""Methods of objects that are in every program: a file's `write` tells of no kernel."""
MAX_CLASSES = 3
"""Files whose classes may share a method's name before the name alone tells nothing."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name means at one place.

    `how`: `known`, one of `homes`; `ours`, of a module of a checkout, but no text of it defines the
    name; `operator`, of `torch.ops`; `method`, of an object that can be anything; else `nothing`
    that a checkout holds. `packages` are those of the checkouts which what is `ours`, or the
    namespace of an operator, is of; empty where that is not known.
    """

    how: How
    homes: frozenset[Home] = frozenset()
    packages: frozenset[str] = frozenset()


NOTHING = Meaning("nothing")


@dataclass
class Meanings:
    """Reads names in the files of some checkouts."""

    snapshots: Sequence[Snapshot]
    modules: Modules = field(init=False)
    bindings: Bindings = field(init=False)
    _classes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the modules."""
        self.modules = Modules(self.snapshots)
        self.bindings = Bindings(self.modules)

    def of(self, file: SourceFile, receiver: str | None, name: str) -> Meaning:
        """Tell what `receiver.name` means; "" for a bare name, None for an expression's."""
        here = (file.repo, file.path)
        if receiver is None:
            return Meaning("method")
        if not receiver:
            return self._bare(file, name)
        head, *middle = receiver.split(".")
        if head in ("self", "cls"):
            own = not middle and defines(file.text, name)
            return Meaning("known", frozenset({here})) if own else Meaning("method")
        if head == "torch" and middle[:1] == ["ops"]:
            return self._operator("".join(middle[1:2]))
        bound = py_text(file.text).imports.names.get(head, ())
        if not bound:
            return self._of_class(file, head, name) or Meaning("method")
        if is_attribute_rebound(file.text, receiver, name):
            bound = ()
        return _either([self._through(here, one, middle, name) for one in bound])

    def _operator(self, namespace: str) -> Meaning:
        if namespace in _OWN_OPERATORS:
            return NOTHING
        return Meaning("operator", packages=self.modules.roots & {namespace})

    def is_rare_method(self, name: str) -> bool:
        """Tell whether so few files define a method of that name that it tells something."""
        if name not in self._classes:
            head = f"def {name}(".encode("utf-8", "replace")
            self._classes[name] = sum(
                1
                for snapshot in self.snapshots
                for file in snapshot.holding(head, "python")
                if re.search(rb"^[ \t]+(?:async[ \t]+)?" + re.escape(head), file.text, re.MULTILINE)
            )
        return name not in _EVERYDAY and 0 < self._classes[name] <= MAX_CLASSES

    def _bare(self, file: SourceFile, name: str) -> Meaning:
        here = (file.repo, file.path)
        if is_rebound(file.text, name):
            return NOTHING
        bound = py_text(file.text).imports.names.get(name, ())
        found = [self._through(here, one, [], "") for one in bound]
        if defines(file.text, name):
            own = Meaning("known", frozenset({here}))
            if not found or _defined_last(file.text, name):
                return own
            found.append(own)
        if not found:
            stars = py_text(file.text).imports.stars
            given = [self.modules.given(star, name, here) for star in stars]
            found = [Meaning("known", one.homes) for one in given if one.homes]
        return _either(found)

    def _of_class(self, file: SourceFile, head: str, name: str) -> Meaning | None:
        """Read `Class.name` where the class stands in the same file."""
        if head[:1].isupper() and defines(file.text, head) and defines(file.text, name):
            return Meaning("known", frozenset({(file.repo, file.path)}))
        return None

    def _through(
        self, here: Home, bound: tuple[str, str], middle: Sequence[str], name: str
    ) -> Meaning:
        """Follow one import; `name` is "" where the imported name itself is meant."""
        module, original = bound
        parts = [*([original] if original else []), *middle, *([name] if name else [])]
        if not parts:
            return NOTHING
        ours = False
        for index in range(len(parts)):
            dots = "" if module.endswith(".") or not index else "."
            owner = module + dots + ".".join(parts[:index])
            given = self.modules.given(owner, parts[index], here)
            ours = ours or given.ours
            if given.homes:
                return Meaning("known", given.homes)
        return Meaning("ours", packages=self._package(module, here)) if ours else NOTHING

    def _package(self, module: str, here: Home) -> frozenset[str]:
        """Name the package a module is of, as a file names it; empty for none of a checkout."""
        top = module.partition(".")[0] or self.modules.package_of(here)
        return self.modules.roots & {top}


@lru_cache(maxsize=4_096)
def _defined_last(text: bytes, name: str) -> bool:
    """Tell whether a module defines a name after, and whatever becomes of, its imports of it."""
    word = re.escape(name.encode("utf-8", "replace"))
    found = list(
        re.finditer(rb"^(?:async )?(?:def|class)[ \t]+" + word + rb"\b", text, re.MULTILINE)
    )
    statements = (text[start:end] for start, end in py_text(text).imports.spans)
    named = [one for one in statements if re.search(rb"\b" + word + rb"\b", one)]
    last = max((text.rfind(one) for one in named), default=-1)
    return bool(found) and found[-1].start() > last and not any(one[:1].isspace() for one in named)


def _either(found: Sequence[Meaning]) -> Meaning:
    """Join the alternatives: what is known of any of them."""
    homes = frozenset().union(*(one.homes for one in found)) if found else frozenset()
    if homes:
        return Meaning("known", homes)
    if any(one.how == "ours" for one in found):
        return Meaning("ours", packages=_all_packages(found))
    return next((one for one in found if one.how == "method"), NOTHING)


def _all_packages(found: Sequence[Meaning]) -> frozenset[str]:
    """Name the packages of what is ours; empty where that of any of it is not known."""
    packages = [one.packages for one in found if one.how == "ours"]
    return frozenset().union(*packages) if all(packages) else frozenset()
