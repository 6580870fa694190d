"""Follow a kernel upwards: which functions and operators may lead to its launch.

A call in Python is followed through the imports of its file to the file that defines what is
called; a method of an unknown object by its name alone, where few classes have it. In C++ links
are by name within a checkout. So links say *may*, not *must*: they refuse an emission that has no
way to the kernel, and find candidate sites. What resolves to a package that binds the name itself
means its own, see `agent.source.bindings`. Names that say nothing (`forward`, `run`) are never
followed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.source.bindings import defines_native, registrations
from agent.source.native.calls import pasted
from agent.source.native.structure import native_file
from agent.source.paths import is_python
from agent.source.python.loading import is_loaded, loads_module
from agent.source.python.meaning import Meaning, Meanings
from agent.source.python.text import Mention, decorated_with, in_call, is_binding, py_text
from agent.source.snapshot import Snapshot, SourceFile, whole_word

MAX_DEPTH = 12
MAX_NAMES = 120
MAX_FILES = 60
MAX_LEVELS = 5
"""Python functions between a cited call and the kernel; further away it is no cause."""
MAX_GUESSES = 2
"""Calls on the way whose object can be anything."""
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
_REGISTERS = re.compile(r"PYBIND|^TORCH_LIBRARY|^TVM_FFI|^NB_MODULE")
"""Macros that only give functions away: what uses them calls none."""
_MAKES_OPERATORS = re.compile(rb"custom_op|torch\.library|register_op|Library\(|compile_guard")
_ALIAS = re.compile(
    rb"\busing\s+(?P<type>\w+)\s*=|\bauto\s*&?\s*(?P<value>\w+)\s*=\s*&?\s*(?:\w+::)*$"
)
_EXPORTED = re.compile(rb"\(\s*[\"'](\w+)[\"']\s*,\s*[rRfF]{0,2}[\"']&?(?:\w+::)*$")
_MAX_EXPORT = 200
_MIN_NAME = 4
_MAX_SAME = 24


@dataclass(frozen=True, slots=True)
class Link:
    """One function, operator or macro that may lead to the kernel, and through which name.

    `repo` and `path` are the file that defines it, "" for any; `method` tells that it is one of a
    class. A native one is a C++ name, or the operator registered for one. `levels` counts the
    Python functions on the way, `guesses` the calls of a method of an object that can be anything.
    `makes` tells that its call only gives a compiled module or function, which is called later.
    """

    name: str
    repo: str
    path: str
    via: str
    depth: int
    native: bool = False
    method: bool = False
    levels: int = 0
    guesses: int = 0
    makes: bool = False


@dataclass(frozen=True, slots=True)
class Seed:
    """Where to begin: a name, native or Python, and the file that defines it ("" for any)."""

    name: str
    native: bool
    repo: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """One owner of a mention: what it is called, and whether it is a method of a class."""

    name: str
    native: bool = False
    method: bool = False


class Reach:
    """What may lead to a set of seeds, found breadth-first and only as far as asked."""

    def __init__(self, meanings: Meanings, seeds: Sequence[Seed]) -> None:
        self._meanings = meanings
        self._snapshots = tuple(meanings.snapshots)
        self.links: dict[str, list[Link]] = {}
        self._queue: deque[Link] = deque()
        self._seen: set[tuple[Found, str, str, int]] = set()
        for seed in seeds:
            self._add(Link(seed.name, seed.repo, seed.path, "", 0, seed.native))

    def reaches(
        self, file: SourceFile, receiver: str | None, word: str, name: str, *, once: bool = False
    ) -> bool:
        """Tell whether calling `receiver.word` in a Python file may lead to the seeds.

        `name` is what the word is called where it is defined; `once` that what the call gives is
        not called in turn.
        """
        meaning = self._meanings.of(file, receiver, word)
        if meaning.how == "nothing":
            return False
        tried = 0
        while True:
            links = self.links.get(name, [])
            fitting = (link for link in links[tried:] if not (once and link.makes))
            if any(self._fits(file, meaning, link) for link in fitting):
                return True
            tried = len(links)
            if not self._expand():
                return False

    def leads(self, name: str) -> bool:
        """Tell whether a native function may lead to the seeds."""
        while not any(link.native for link in self.links.get(name, ())) and self._expand():
            pass
        return any(link.native for link in self.links.get(name, ()))

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
        link = self._queue.popleft()
        if link.depth >= MAX_DEPTH:
            return True
        for snapshot in self._snapshots:
            if link.native and link.repo in ("", snapshot.repo):
                self._native_callers(snapshot, link)
            self._python_callers(snapshot, link)
        return True

    def _native_callers(self, snapshot: Snapshot, link: Link) -> None:
        for file in _holding(snapshot, link.name, native=True):
            if link.path not in ("", file.path) and defines_native(file, link.name):
                continue
            if self._is_anothers_here(file, link):
                continue
            for name in native_callers(file, link.name):
                self._add(_above(link, Found(name, native=True), file, 0))
                if file.path.endswith(".jinja"):
                    self._template_users(snapshot, link, file.path.rpartition("/")[2])

    def _template_users(self, snapshot: Snapshot, link: Link, template: str) -> None:
        """Add the functions of Python files that fill a template of native source."""
        for file in _holding(snapshot, template, native=False):
            for one in py_text(file.text).definitions:
                self._add(_above(link, Found(one.name), file, 0))

    def _python_callers(self, snapshot: Snapshot, link: Link) -> None:
        for file in _holding(snapshot, link.name, native=False):
            parsed = py_text(file.text)
            for alias in parsed.imports.aliases(link.name):
                if self._fits(file, self._meanings.of(file, "", alias), link):
                    self._add(replace(link, name=alias, via=link.name, depth=link.depth + 1))
            for mention in parsed.mentions(whole_word(link.name)):
                guesses = self._guesses(file, mention, link)
                if guesses is not None:
                    makes = mention.how == "string" and loads_module(file.text, mention.offset)
                    for found in _callers(file, mention, link):
                        self._add(replace(_above(link, found, file, guesses), makes=makes))
                    if mention.how == "string" and link.native:
                        self._export(file, mention, link)

    def _export(self, file: SourceFile, mention: Mention, link: Link) -> None:
        """Add the name under which a compiled module gives a function: `("name", "Function")`."""
        found = _EXPORTED.search(file.text[max(mention.offset - _MAX_EXPORT, 0) : mention.offset])
        if found is not None:
            name = found.group(1).decode()
            above = _above(link, Found(name, native=True), file, 0)
            self.links.setdefault(name, []).append(above)

    def _guesses(self, file: SourceFile, mention: Mention, link: Link) -> int | None:
        """Count what is guessed in taking a mention for what a link names; None if it is not."""
        match mention.how:
            case "import" | "prose":
                return None
            case "definition":
                binds = link.native and is_binding(file.text, mention.offset)
                return 0 if binds and not self._is_anothers_here(file, link) else None
            case "string":
                asked = in_call(file.text, mention.offset)
                means = asked and not self._is_anothers_here(file, link)
                return 0 if means and (link.native or not link.name.startswith("_")) else None
        meaning = self._meanings.of(file, mention.receiver, link.name)
        if not self._fits(file, meaning, link):
            return None
        return int(meaning.how == "method")

    def _fits(self, file: SourceFile, meaning: Meaning, link: Link) -> bool:
        match meaning.how:
            case "operator":
                bound = link.native or self._registers(link)
                return bound and not self._is_anothers(link, meaning.packages)
            case "known":
                here = (link.repo, link.path) in meaning.homes
                return not link.path or (not link.native and here)
            case "ours":
                return link.native and not self._is_anothers(link, meaning.packages)
            case "method" if link.native:
                here = (link.repo, link.path) == (file.repo, file.path)
                may_be = not is_python(link.path) and not self._is_anothers_here(file, link)
                return (here or may_be) and is_loaded(file.text, link.name)
            case "method":
                near = link.guesses < MAX_GUESSES
                return near and link.method and self._meanings.is_rare_method(link.name)
        return False

    def _is_anothers_here(self, file: SourceFile, link: Link) -> bool:
        """Tell whether what a file belongs to binds a link's name itself, for something else."""
        packages = self._meanings.modules.packages_near((file.repo, file.path))
        return self._is_anothers(link, packages)

    def _is_anothers(self, link: Link, packages: frozenset[str]) -> bool:
        home = (link.repo, link.path)
        return bool(link.path) and self._meanings.bindings.is_anothers(link.name, home, packages)

    def _registers(self, link: Link) -> bool:
        """Tell whether the file of a Python function makes operators of its functions."""
        found = (one.source(link.path) for one in self._snapshots if one.repo == link.repo)
        return any(file is not None and _MAKES_OPERATORS.search(file.text) for file in found)

    def _add(self, link: Link) -> None:
        if link.via and (link.name in _SAYS_NOTHING or len(link.name) < _MIN_NAME):
            return
        if link.levels > MAX_LEVELS or link.guesses > MAX_GUESSES:
            return
        known = self.links.setdefault(link.name, [])
        if len(known) < _MAX_SAME:
            known.append(link)
        key = (Found(link.name, link.native, link.method), link.repo, link.path, link.guesses)
        if key not in self._seen:
            self._seen.add(key)
            self._queue.append(link)


def says_nothing(name: str) -> bool:
    """Tell whether so many functions have a name that no user of it can be told."""
    return name in _SAYS_NOTHING or len(name) < _MIN_NAME


def registers(name: str) -> bool:
    """Tell whether a macro that heads a block only gives functions away: `PYBIND11_MODULE`."""
    return _REGISTERS.search(name) is not None


def native_callers(file: SourceFile, name: str) -> Iterator[str]:
    """Yield the functions, macros, types and registered operators of a file that use a name."""
    parsed = native_file(file.text)
    for used in (name, *pasted(parsed, name)):
        for match in whole_word(used).finditer(parsed.code):
            function, classes = parsed.enclosing(match.start())
            if function and function != name and not registers(function):
                yield function
            if function in _SAYS_NOTHING:
                yield from classes
            elif not function and (alias := _assigned_to(parsed.code, match.start())):
                yield from (alias, *classes)
    yield from _registered_as(file.text, name)


def _assigned_to(code: bytes, offset: int) -> str:
    """Give the `x` of `using x = ...` or `auto x = ...` around an offset; "" for anything else."""
    start = max(code.rfind(mark, 0, offset) for mark in (b";", b"{", b"}")) + 1
    found = _ALIAS.search(code[start:offset])
    return (found.group("type") or found.group("value")).decode() if found is not None else ""


def _above(link: Link, found: Found, file: SourceFile, guesses: int) -> Link:
    return Link(
        found.name, file.repo, file.path, link.name, link.depth + 1, found.native, found.method,
        link.levels + (not found.native), link.guesses + guesses,
    )  # fmt: skip


def _callers(file: SourceFile, mention: Mention, link: Link) -> Iterator[Found]:
    """Yield what uses a name by one mention: its owners, decorated functions, aliases."""
    match mention.how:
        case "definition":
            yield Found(link.name)
            return
        case "string":
            yield from map(Found, decorated_with(file.text, link.name))
            if link.native:
                yield from _owners(file.text, mention.functions)
            return
    yield from _owners(file.text, mention.functions)
    if mention.alias and not mention.functions:
        yield Found(mention.alias)
    if mention.how == "reference" and not mention.functions:
        yield from map(Found, _registered_strings(file.text, mention.offset))


def _is_autograd(text: bytes, name: str) -> bool:
    head = rb"class[ \t]+" + re.escape(name.removeprefix("class ").encode()) + rb"\([^)]*Function\b"
    return re.search(head, text) is not None


def _owners(text: bytes, functions: tuple[str, ...]) -> Iterator[Found]:
    """Yield the function a mention belongs to; an outer one when the inner says nothing.

    A class stands for its `forward` only when it is an autograd function, called by `apply`.
    """
    for index, name in enumerate(functions):
        if not name.startswith("class "):
            method = "".join(functions[index + 1 : index + 2]).startswith("class ")
            yield Found(name, method=method)
            if name not in _SAYS_NOTHING and not name.startswith("_"):
                return
        elif index and functions[index - 1] in _SAYS_NOTHING and _is_autograd(text, name):
            yield Found(name.removeprefix("class "))


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


def _registered_as(text: bytes, name: str) -> Iterator[str]:
    """Yield the operators that bind a native function: `def("operator", ..., &function)`."""
    bound = re.compile(
        rb"[^;]{0,400}?&\s*(?:\w+::)*" + re.escape(name.encode("utf-8", "replace")) + rb"\b"
    )
    end = 0
    for operator, offset in registrations(text):
        if offset >= end and (found := bound.match(text, offset)) is not None:
            end = found.end()
            yield operator
