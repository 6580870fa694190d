"""Follow a kernel upwards: which function and operator names may lead to its launch.

Links are by name, so they say *may*, not *must*: they are used to refuse an emission that has no
way to the kernel at all, and to find candidate sites. Names that say nothing (`forward`, `run`) are
never followed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent.source.native.structure import native_file
from agent.source.paths import is_python
from agent.source.python.text import decorated_with, py_text
from agent.source.snapshot import Snapshot, SourceFile, whole_word

MAX_DEPTH = 12
MAX_NAMES = 70
MAX_FILES = 60
# fmt: off
_SAYS_NOTHING = frozenset((
    "forward", "__call__", "__init__", "__new__", "apply", "run", "main", "wrapper", "impl",
    "inner",
    "call", "launch", "get", "set", "fn", "f", "func", "function", "kernel", "op", "ops", "compute",
    "wrapped", "decorator", "forward_cuda", "forward_hip", "forward_native", "backward", "grid",
    "lambda", "init", "setup", "load", "get_module", "compile", "warmup", "execute", "process",
    "operator", "dispatch", "launcher", "Launch", "Run", "Kernel", "if", "for", "while", "switch",
    "benchmark", "custom_op", "register", "step", "predict", "reset", "update", "build", "create",
    "constexpr", "static_for", "initialize", "forward_npu", "forward_cpu", "forward_xpu",
    "_forward",
    "invoke", "name", "data", "__torch_function__", "emulate", "stub", "_impl", "get_kernel",
))
# fmt: on
_AUTOGRAD = re.compile(r"(?:Fn|Func|Function|Autograd\w*)$")
_MIN_NAME = 4


@dataclass(frozen=True, slots=True)
class Link:
    """One name that may lead to the kernel: where it was seen and through which name."""

    name: str
    repo: str
    path: str
    via: str
    depth: int


@dataclass(frozen=True, slots=True)
class Seed:
    """Where to begin: a name, native or Python, and the checkout that defines it ("" for any)."""

    name: str
    native: bool
    repo: str = ""


class Reach:
    """The names that may lead to a set of seeds, found breadth-first and only as far as asked."""

    def __init__(self, snapshots: Sequence[Snapshot], seeds: Sequence[Seed]) -> None:
        self._snapshots = tuple(snapshots)
        self.links: dict[str, list[Link]] = {}
        self._queue: deque[tuple[str, bool, int]] = deque()
        self._seen: set[tuple[str, bool]] = set()
        for seed in seeds:
            self._add(seed.name, "", seed.repo, "", 0, native=seed.native)

    def reaches(self, name: str) -> bool:
        """Tell whether a name may lead to the seeds."""
        while name not in self.links and self._expand():
            pass
        return name in self.links

    def all(self) -> dict[str, list[Link]]:
        """Follow everything within the limits and give the links by name."""
        while self._expand():
            pass
        return self.links

    def walk(self) -> Iterator[str]:
        """Yield names nearest first, following callers only as far as they are asked for."""
        given = 0
        more = True
        while more:
            names = list(self.links)[given:]
            yield from names
            given += len(names)
            more = self._expand() or len(self.links) > given

    def chain(self, name: str) -> tuple[str, ...]:
        """Give the names from `name` down to a seed."""
        names = [name]
        while names[-1] in self.links and len(names) <= MAX_DEPTH + 1:
            via = self.links[names[-1]][0].via
            if not via or via in names:
                break
            names.append(via)
        return tuple(names)

    def _expand(self) -> bool:
        if not self._queue or len(self._seen) > MAX_NAMES:
            return False
        name, native, depth = self._queue.popleft()
        if depth >= MAX_DEPTH:
            return True
        for snapshot in self._snapshots:
            if native:
                self._native_callers(snapshot, name, depth)
            self._python_callers(snapshot, name, depth, native=native)
        return True

    def _native_callers(self, snapshot: Snapshot, name: str, depth: int) -> None:
        for file in _holding(snapshot, name, native=True):
            for found in native_callers(file, name):
                self._add(found, name, snapshot.repo, file.path, depth + 1, native=True)

    def _python_callers(self, snapshot: Snapshot, name: str, depth: int, *, native: bool) -> None:
        files = _holding(snapshot, name, native=False)
        for file in files:
            for found in python_callers(file, name, native=native):
                self._add(found, name, snapshot.repo, file.path, depth + 1, native=False)

    def _add(self, name: str, via: str, repo: str, path: str, depth: int, *, native: bool) -> None:
        bare = name.removeprefix("class ")
        if via and (bare in _SAYS_NOTHING or len(bare) < _MIN_NAME):
            return
        link = Link(bare, repo, path, via, depth)
        known = self.links.setdefault(bare, [])
        if len(known) < 12 and link not in known:
            known.append(link)
        if (bare, native) not in self._seen:
            self._seen.add((bare, native))
            self._queue.append((bare, native, depth))


def native_callers(file: SourceFile, name: str) -> Iterator[str]:
    """Yield the functions, macros and registered operators of a native file that use a name."""
    parsed = native_file(file.text)
    for match in whole_word(name).finditer(parsed.code):
        function, classes = parsed.enclosing(match.start())
        if function and function != name:
            yield function
        if function in _SAYS_NOTHING:
            yield from classes
    for match in _registrations(name).finditer(file.text):
        yield match.group(1).decode()


def python_callers(file: SourceFile, name: str, *, native: bool) -> Iterator[str]:
    """Yield the functions, classes and aliases of a Python file that use a name."""
    parsed = py_text(file.text)
    for mention in parsed.mentions(whole_word(name)):
        match mention.how:
            case "definition" | "import" | "prose":
                if mention.how == "definition" and native:
                    yield name
                continue
            case "string":
                if not native and not name.startswith("_"):
                    yield from decorated_with(file.text, name)
                if native:
                    yield from _owners(mention.functions)
                    yield from decorated_with(file.text, name)
                continue
        yield from _owners(mention.functions)
        if mention.alias and not mention.functions:
            yield mention.alias
        if mention.how == "reference" and not mention.functions:
            yield from _registered_strings(file.text, mention.offset)


def _owners(functions: tuple[str, ...]) -> Iterator[str]:
    """Yield the function a mention belongs to; an outer one when the inner says nothing.

    A class stands for its `forward` only when it is an autograd function, called by `apply`.
    """
    for index, name in enumerate(functions):
        if not name.startswith("class "):
            yield name
            if name not in _SAYS_NOTHING and not name.startswith("_"):
                return
        elif index and functions[index - 1] in _SAYS_NOTHING and _AUTOGRAD.search(name):
            yield name


def _registered_strings(text: bytes, offset: int) -> Iterator[str]:
    """Yield identifiers given as strings in the call around a module-level reference."""
    start = text.rfind(b"\n(", 0, offset)
    start = max(text.rfind(b"(", max(offset - 300, 0), offset), start)
    if start < 0:
        return
    end = text.find(b")", offset, offset + 400)
    for found in re.findall(
        rb"[\"']([A-Za-z_]\w{3,})[\"']", text[start : end if end > 0 else offset]
    ):
        yield found.decode()


def _holding(snapshot: Snapshot, name: str, *, native: bool) -> tuple[SourceFile, ...]:
    literal = name.encode("utf-8", "replace")
    found = tuple(
        file
        for file in snapshot.holding(literal, "native" if native else "python")
        if is_python(file.path) != native
    )
    return found if len(found) <= MAX_FILES else ()


@lru_cache(maxsize=1_024)
def _registrations(name: str) -> re.Pattern[bytes]:
    return re.compile(
        rb"\b(?:def|impl)\(\s*\"(\w+)[^;]{0,400}?&\s*(?:\w+::)*" + re.escape(name.encode()) + rb"\b"
    )
