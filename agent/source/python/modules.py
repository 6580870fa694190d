"""Which file a module is, and which file defines a name that a module gives away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from agent.source.paths import is_python, is_runtime
from agent.source.python.rebinding import is_rebound
from agent.source.python.text import py_text
from agent.source.snapshot import Snapshot, SourceFile

Home = tuple[str, str]
"""(repository, path) of the file that defines something."""

_BUILDS = ("pyproject.toml", "setup.py")
"""Files of a folder that is built by itself."""
_MAX_REEXPORTS = 5


@dataclass(frozen=True, slots=True)
class Given:
    """The files that define a name a module gives away; `ours` when the module is of a checkout.

    A module of a checkout may give names no file of it defines: those are compiled, or made while
    running.
    """

    homes: frozenset[Home] = frozenset()
    ours: bool = False


@dataclass
class Modules:
    """The Python modules of some checkouts."""

    snapshots: Sequence[Snapshot]
    _paths: dict[str, list[tuple[Snapshot, str, tuple[str, ...]]]] = field(default_factory=dict)
    _given: dict[tuple[str, str, str, str], Given] = field(default_factory=dict)
    _packages: set[Home] = field(default_factory=set)
    _near: dict[Home, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the paths by the last part of their module's name."""
        for snapshot in self.snapshots:
            for path in snapshot.tree:
                if not (is_python(path) and is_runtime(path)):
                    continue
                parts = tuple(path.rpartition(".")[0].split("/"))
                if parts[-1] == "__init__":
                    parts = parts[:-1]
                    self._packages.add((snapshot.repo, "/".join(parts)))
                if parts:
                    self._paths.setdefault(parts[-1], []).append((snapshot, path, parts))

    def files(self, module: str, importer: Home) -> tuple[SourceFile, ...]:
        """Give the files a module can be, seen from a file; those of its own checkout first."""
        repo, path = importer
        if module.startswith("."):
            return self._relative(module, repo, path)
        wanted = tuple(module.split("."))
        found = [
            (snapshot, path)
            for snapshot, path, parts in self._paths.get(wanted[-1], ())
            if parts[-len(wanted) :] == wanted and self._is_root(snapshot, parts[: -len(wanted)])
        ]
        own = [one for one in found if one[0].repo == repo] or found
        return tuple(file for snapshot, path in own if (file := snapshot.source(path)) is not None)

    def given(self, module: str, name: str, importer: Home) -> Given:
        """Follow what a module gives under a name to the files that define it."""
        key = (module, name, *importer)
        known = self._given.get(key)
        if known is None:
            known = self._given[key] = self._follow(module, name, importer, 0)
        return known

    def _follow(self, module: str, name: str, importer: Home, depth: int) -> Given:
        files = self.files(module, importer)
        ours = bool(files) or module.startswith(".") or module.partition(".")[0] in self.roots
        homes: set[Home] = set()
        for file in files or self._moved(module, name):
            here = (file.repo, file.path)
            if is_rebound(file.text, name):
                ours = False
            elif defines(file.text, name):
                homes.add(here)
            elif depth < _MAX_REEXPORTS:
                bound = py_text(file.text).imports
                onward = [one for one in bound.names.get(name, ()) if one[1]]
                onward = onward or [(star, name) for star in bound.stars]
                for source, original in onward:
                    homes |= self._follow(source, original, here, depth + 1).homes
        return Given(frozenset(homes), ours)

    def _moved(self, module: str, name: str) -> tuple[SourceFile, ...]:
        """Give the one file of the same package and name that defines what is asked for.

        Packages keep old module names alive while running, where no text shows it.
        """
        top, _, rest = module.partition(".")
        if top not in self.roots or not rest:
            return ()
        found = [
            file
            for snapshot, path, parts in self._paths.get(rest.rpartition(".")[2], ())
            if top in parts and (file := snapshot.source(path)) and defines(file.text, name)
        ]
        return tuple(found) if len(found) == 1 else ()

    def _relative(self, module: str, repo: str, path: str) -> tuple[SourceFile, ...]:
        rest = module.lstrip(".")
        level = len(module) - len(rest)
        folders = path.split("/")[:-level]
        base = "/".join([*folders, *(rest.split(".") if rest else [])])
        for snapshot in self.snapshots:
            if snapshot.repo == repo:
                for candidate in (f"{base}.py", f"{base}/__init__.py"):
                    file = snapshot.source(candidate) if candidate in snapshot.tree else None
                    if file is not None:
                        return (file,)
        return ()

    def package_of(self, home: Home) -> str:
        """Name the outermost package a file lies in; "" when it lies in none."""
        repo, path = home
        folders = path.split("/")[:-1]
        for index in range(len(folders)):
            if (repo, "/".join(folders[: index + 1])) in self._packages:
                return folders[index]
        return ""

    def packages_near(self, home: Home) -> frozenset[str]:
        """Name the packages a file belongs to: its own, or those built with it.

        Those lie in the nearest folder around it that is built by itself and has any, in the whole
        checkout where none is.
        """
        own = self.package_of(home)
        if own:
            return frozenset({own})
        repo, path = home
        folder = path.rpartition("/")[0]
        if (repo, folder) not in self._near:
            self._near[repo, folder] = self._built_with(repo, folder)
        return self._near[repo, folder]

    def _built_with(self, repo: str, folder: str) -> frozenset[str]:
        tree = next((one.tree for one in self.snapshots if one.repo == repo), {})
        while folder:
            if any(f"{folder}/{name}" in tree for name in _BUILDS):
                inside = self._outermost_in(repo, f"{folder}/")
                if inside:
                    return inside
            folder = folder.rpartition("/")[0]
        return self._outermost_in(repo, "")

    def _outermost_in(self, repo: str, folder: str) -> frozenset[str]:
        return frozenset(
            path.rpartition("/")[2]
            for home, path in self._outermost
            if home == repo and path.startswith(folder)
        )

    @cached_property
    def roots(self) -> frozenset[str]:
        """Name the packages that lie in no other package."""
        return frozenset(path.rpartition("/")[2] for _, path in self._outermost)

    @cached_property
    def _outermost(self) -> tuple[Home, ...]:
        return tuple(
            (repo, path)
            for repo, path in sorted(self._packages)
            if not self._in_package(repo, path.split("/")[:-1])
        )

    def _is_root(self, snapshot: Snapshot, above: tuple[str, ...]) -> bool:
        """Tell whether a folder can be on the path where Python looks: it is in no package."""
        return not self._in_package(snapshot.repo, above)

    def _in_package(self, repo: str, folders: Sequence[str]) -> bool:
        return any(
            (repo, "/".join(folders[: index + 1])) in self._packages
            for index in range(len(folders))
        )


@lru_cache(maxsize=8_192)
def defines(text: bytes, name: str) -> bool:
    """Tell whether a Python text defines a function, class or module-level variable."""
    literal = name.encode("utf-8", "replace")
    if literal not in text:
        return False
    word = re.escape(literal)
    head = rb"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+" + word + rb"(?!\w)"
    return re.search(head + rb"|^" + word + rb"[ \t]*[:=]", text, re.MULTILINE) is not None
