"""What is built for a backend: build manifests, and the sources and headers they reach.

Knows SGLang's `setup_rocm.py` / `CMakeLists.txt`, aiter's `optCompilerConfig.json`, and sources
that Python compiles on demand (`load_jit`, `cpp_itfs`, `jit_kernel`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from agent.source.paths import NATIVE_SUFFIXES, is_runtime, suffix
from agent.source.snapshot import Snapshot

_SOURCE = re.compile(r"[\w./+-]*\.(?:cu|cuh|hip|cpp|cc|cxx|c)\b")
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_FOLDER = re.compile(r"\}/([\w./-]+/[\w/-]+)/?'\"")
_JIT_FOLDERS = ("jit_kernel/", "cpp_itfs/", "jit/")
_ROCM = re.compile(r"rocm|hip|aiter|optcompilerconfig", re.IGNORECASE)
_OTHER = re.compile(r"musa|cpu|npu|ascend|xpu|metal|mlx", re.IGNORECASE)
_TRANSLATION_UNITS = frozenset({"cu", "hip", "cpp", "cc", "cxx", "c"})
BACKENDS = ("cuda", "rocm")


class BuildManifests:
    """Which native files of a snapshot are compiled, per backend."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def backends(self, path: str) -> frozenset[str]:
        """Give the backends a native file is built for; empty when no manifest reaches it."""
        return frozenset(backend for backend in BACKENDS if path in self._reached[backend])

    @cached_property
    def _reached(self) -> dict[str, frozenset[str]]:
        return {backend: frozenset(self._reach(set(self._units[backend]))) for backend in BACKENDS}

    @cached_property
    def _units(self) -> dict[str, frozenset[str]]:
        units: dict[str, set[str]] = {backend: set() for backend in BACKENDS}
        for manifest in self._manifests():
            text = self._snapshot.source(manifest)
            if text is None:
                continue
            backend = self._backend_of(manifest)
            found = self._named(manifest, text.text.decode("utf-8", "replace"))
            for one in BACKENDS if backend == "both" else {backend} & set(BACKENDS):
                units[one].update(found)
        for path in self._native:
            if any(f"/{folder}" in f"/{path}" for folder in _JIT_FOLDERS):
                units["cuda"].add(path)
                units["rocm"].add(path)
        return {backend: frozenset(found) for backend, found in units.items()}

    def _manifests(self) -> Iterator[str]:
        for path in self._snapshot.tree:
            name = path.rpartition("/")[2]
            if not is_runtime(path.replace("CMakeLists.txt", "CMakeLists.cmake")):
                continue
            if name in ("CMakeLists.txt", "optCompilerConfig.json") or (
                name.startswith("setup") and name.endswith(".py")
            ):
                yield path

    @staticmethod
    def _backend_of(manifest: str) -> str:
        name = manifest.rpartition("/")[2]
        if _ROCM.search(name):
            return "rocm"
        if name == "CMakeLists.txt" or name.startswith("setup_"):
            return "none" if _OTHER.search(manifest) else "cuda"
        return "both"

    def _named(self, manifest: str, text: str) -> Iterator[str]:
        folder = manifest.rpartition("/")[0]
        kept = re.sub(r"(?m)(?<!\\)#.*$", "", text) if not manifest.endswith(".json") else text
        for match in _SOURCE.finditer(kept):
            yield from self._resolve(match.group().lstrip("/"), folder)
        for match in _FOLDER.finditer(kept) if manifest.endswith(".json") else ():
            ending = f"/{match.group(1).strip('/')}/"
            yield from (
                path
                for path in self._native
                if ending in f"/{path}" and suffix(path) in _TRANSLATION_UNITS
            )

    def _resolve(self, named: str, folder: str) -> Iterator[str]:
        """Find the file a manifest means: beside it, at the root, or by the end of its path."""
        for candidate in (f"{folder}/{named}" if folder else named, named):
            if candidate in self._native_set:
                yield candidate
                return
        ending = f"/{named}"
        if ending.count("/") > 1:
            yield from (
                path
                for path in self._by_name.get(named.rpartition("/")[2], ())
                if path.endswith(ending)
            )

    def _reach(self, units: set[str]) -> set[str]:
        reached, pending = set(units), sorted(units)
        while pending:
            path = pending.pop()
            file = self._snapshot.source(path)
            for match in _INCLUDE.finditer(file.text) if file is not None else ():
                for found in self._included(path, match.group(1).decode("utf-8", "replace")):
                    if found not in reached:
                        reached.add(found)
                        pending.append(found)
        return reached

    def _included(self, path: str, name: str) -> Iterator[str]:
        """Find headers of this checkout that an include may mean, by path ending."""
        ending = "/" + re.sub(r"^(?:\.\.?/)+", "", name)
        top = path.partition("/")[0]
        for candidate in self._by_name.get(name.rpartition("/")[2], ()):
            if f"/{candidate}".endswith(ending) and candidate.partition("/")[0] == top:
                yield candidate

    @cached_property
    def _native(self) -> tuple[str, ...]:
        return tuple(
            path
            for path, entry in self._snapshot.tree.items()
            if suffix(path) in NATIVE_SUFFIXES and entry.mode.startswith("100") and is_runtime(path)
        )

    @cached_property
    def _native_set(self) -> frozenset[str]:
        return frozenset(self._native)

    @cached_property
    def _by_name(self) -> dict[str, tuple[str, ...]]:
        named: dict[str, list[str]] = {}
        for path in self._native:
            named.setdefault(path.rpartition("/")[2], []).append(path)
        return {name: tuple(paths) for name, paths in named.items()}
