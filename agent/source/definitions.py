"""Find what makes a kernel name in one snapshot: jit functions, `__global__` heads, table rows.

A literal prefilter picks the files, only those are parsed, and a file counts only when the name it
computes equals the kernel's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from agent.core.names import canonical_name
from agent.core.proposals import ParseQuality
from agent.core.source import Definition
from agent.source.names import KernelRef, folded, kernel_ref, origin_of
from agent.source.native.structure import GlobalHead, native_file
from agent.source.native.tables import KernelTableFile, TableRow, table_rows
from agent.source.parse import TreeCache, ancestors
from agent.source.paths import is_python, is_runtime, suffix
from agent.source.python.kernels import PyKernel, kernels_in
from agent.source.python.naming import NameRule
from agent.source.snapshot import Group, Snapshot, SourceFile, whole_word

_ANY: tuple[Group, ...] = ("python", "native", "other")
_LITERAL = re.compile(rb"[\"']([A-Za-z_]\w{3,120})[\"']")
_NAMING = re.compile(rb"[jJ][iI][tT]|\bkernel\b|\.__name__[ \t]*=")
"""What a Python file says that gives a kernel its name: a decorator, or an assignment."""
_JIT_MARKS = (b"triton", b"gluon", b"flyc", b"flir")
_MIN_CK_FOLD = 8


class Definitions:
    """Definitions of one snapshot; results and parsed files are kept."""

    def __init__(self, snapshot: Snapshot, trees: TreeCache) -> None:
        self.snapshot = snapshot
        self.trees = trees
        self._found: dict[str, tuple[Definition, ...]] = {}
        self._kernels: dict[str, tuple[PyKernel, ...]] = {}
        self._quality: dict[tuple[str, int], ParseQuality] = {}

    def find(self, name: str) -> tuple[Definition, ...]:
        """Give every definition that makes a kernel name, runtime code first."""
        known = self._found.get(name)
        if known is None:
            found = set(self._search(kernel_ref(name))) or set(self._bases(kernel_ref(name)))
            ordered = sorted(found, key=lambda one: (not one.runtime, one.path, one.lines))
            known = self._found[name] = tuple(ordered)
        return known

    def kernels(self, file: SourceFile) -> tuple[PyKernel, ...]:
        """Give the kernels a Python file defines."""
        known = self._kernels.get(file.sha)
        if known is None:
            tree = self.trees.tree(file, "python")
            known = kernels_in(tree.root_node, self._wraps_jit) if tree is not None else ()
            self._kernels[file.sha] = known
        return known

    def table(self, path: str) -> KernelTableFile | None:
        """Read a table of kernels; None when the path is none."""
        file = self.snapshot.source(path) if suffix(path) == "csv" else None
        return table_rows(file.text) if file is not None else None

    def head_quality(self, file: SourceFile, head: GlobalHead) -> ParseQuality:
        """Say how well the parser understood a head: clean, recovered, or found lexically only."""
        key = (file.sha, head.offset)
        if key not in self._quality:
            self._quality[key] = self._measure(file, head)
        return self._quality[key]

    def definition(self, file: SourceFile, kernel: PyKernel) -> Definition:
        """Give the value form of a Python kernel."""
        return Definition(
            file.repo,
            file.path,
            (kernel.line, kernel.last),
            kernel.shown,
            kernel.origin,
            kernel.function.qualname,
            runtime=is_runtime(file.path),
        )

    def head_definition(self, file: SourceFile, head: GlobalHead) -> Definition:
        """Give the value form of a `__global__` function."""
        return Definition(
            file.repo,
            file.path,
            (head.line, head.line),
            head.qualified,
            "hip-global",
            head.qualified,
            self.head_quality(file, head),
            is_runtime(file.path),
        )

    def row_definition(self, path: str, row: TableRow) -> Definition:
        """Give the value form of a table row."""
        line = (row.line, row.line)
        return Definition(self.snapshot.repo, path, line, row.name, "aiter-asm", row.symbol)

    def _search(self, ref: KernelRef) -> Iterator[Definition]:
        origin = origin_of(ref.raw)
        if origin in ("external", "aten", "aten-cast", "inductor"):
            return
        if origin == "ck":
            yield from self._instantiations(ref)
        if not ref.cpp:
            yield from self._python(ref)
        yield from self._native(ref)
        yield from self._tables(ref)

    def _bases(self, ref: KernelRef) -> Iterator[Definition]:
        """Yield definitions whose printed base is the name: a report that cut the suffix off."""
        if ref.cpp or origin_of(ref.raw) in ("external", "inductor"):
            return
        for file in self._repr_literals.get(ref.base, ()):
            for kernel in self.kernels(file):
                if kernel.shown == ref.base:
                    yield self.definition(file, kernel)

    def _python(self, ref: KernelRef) -> Iterator[Definition]:
        name = canonical_name(ref.raw)
        seen: set[str] = set()
        for file in self._python_files(name):
            if file.path in seen:
                continue
            seen.add(file.path)
            for kernel in self.kernels(file):
                if kernel.accepts(name) or self._renamed_at_launch(kernel, name):
                    yield self.definition(file, kernel)

    def _python_files(self, name: str) -> Iterator[SourceFile]:
        stems = dict.fromkeys((name, re.sub(r"_\d+$", "", name)))
        for stem in stems:
            text = stem.encode("utf-8", "replace")
            makes = re.compile(rb"(?:\bdef[ \t]+|[\"'}])" + re.escape(text) + rb"(?![\w.])")
            for file in self.snapshot.holding(text, "python", "other"):
                if is_python(file.path) and _NAMING.search(file.text) and makes.search(file.text):
                    yield file
        for literal, files in self._repr_literals.items():
            if name.startswith(literal):
                yield from files
        yield from self._template_files

    @cached_property
    def _repr_literals(self) -> dict[str, tuple[SourceFile, ...]]:
        """Index the string literals of files with `repr=`: a name begins with one of them."""
        found: dict[str, list[SourceFile]] = {}
        for file in self.snapshot.holding(b"repr=", "python"):
            if any(mark in file.text for mark in _JIT_MARKS):
                for literal in set(_LITERAL.findall(file.text)):
                    if len(literal) > 4:
                        found.setdefault(literal.decode(), []).append(file)
        return {literal: tuple(files) for literal, files in found.items()}

    @cached_property
    def _template_files(self) -> tuple[SourceFile, ...]:
        """Give the files that assign computed kernel names."""
        marks = (b"_func.__name__", b".kernel(name=", b".kernel(\n")
        found = {
            file.path: file for mark in marks for file in self.snapshot.holding(mark, "python")
        }
        return tuple(found[path] for path in sorted(found))

    def _renamed_at_launch(self, kernel: PyKernel, name: str) -> bool:
        """Tell whether a launch passes a literal base that `repr=` takes instead of its own."""
        for rule in kernel.rules:
            if not rule.name_key:
                continue
            for other in self._launch_names(rule.name_key):
                if name.startswith(other) and NameRule(other, rule.keys).accepts(name):
                    return True
        return False

    def _launch_names(self, key: str) -> frozenset[str]:
        pattern = re.compile(rb"\b" + re.escape(key.encode()) + rb"\s*=\s*[\"'](\w+)[\"']")
        return frozenset(
            found.decode()
            for file in self.snapshot.holding(key.encode() + b"=", "python")
            for found in pattern.findall(file.text)
        )

    def _native(self, ref: KernelRef) -> Iterator[Definition]:
        found = list(self._heads(ref))
        plain = [(file, head) for file, head in found if not head.spaces]
        whole = ref.declared and not ref.spaces
        for file, head in plain if whole and plain else found:
            yield self.head_definition(file, head)

    def _heads(self, ref: KernelRef) -> Iterator[tuple[SourceFile, GlobalHead]]:
        whole = whole_word(ref.base)
        for file in self.snapshot.holding(ref.base.encode("utf-8", "replace"), "native", "other"):
            if is_python(file.path) or b"__global__" not in file.text:
                continue
            if whole.search(file.text) is None:
                continue
            for head in native_file(file.text).heads:
                if head.name == ref.base and head.body and spaces_agree(ref, head.spaces):
                    yield file, head

    def _tables(self, ref: KernelRef) -> Iterator[Definition]:
        for path, file in self.tables().items():
            if ref.base.encode("utf-8", "replace") not in file.text:
                continue
            table = table_rows(file.text)
            for row in table.rows if table is not None else ():
                if same_symbol(ref, row):
                    yield self.row_definition(path, row)

    def tables(self) -> dict[str, SourceFile]:
        """Give the tables of assembled kernels by path."""
        return self._table_files

    @cached_property
    def _table_files(self) -> dict[str, SourceFile]:
        found = {}
        for path in self.snapshot.tree:
            if suffix(path) == "csv" and "hsa/" in f"/{path}":
                file = self.snapshot.source(path)
                if file is not None:
                    found[path] = file
        return found

    def _instantiations(self, ref: KernelRef) -> Iterator[Definition]:
        """Yield where a Composable Kernel type, or the function that runs it, is used."""
        for file, line in self.instantiations(ref):
            yield Definition(
                file.repo,
                file.path,
                (line, line),
                ref.payload or ref.qualified,
                "ck",
                parse="lexical",
            )

    def instantiations(self, ref: KernelRef) -> Iterator[tuple[SourceFile, int]]:
        """Yield (file, line) of each non-comment use of a Composable Kernel type."""
        wanted = (ref.payload or ref.qualified).rpartition("::")[2]
        fold = folded(wanted)
        if len(fold) < _MIN_CK_FOLD:
            return
        for file in self.snapshot.files("native"):
            for match in _folded_words(file.text, fold):
                yield file, file.line_of(match)
                break

    def _wraps_jit(self, name: str) -> bool:
        """Tell whether a function of that name in runtime code calls `triton.jit`."""
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            return False
        definition = re.compile(
            rb"^[ \t]*def " + name.encode() + rb"\(.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL
        )
        for file in self.snapshot.holding(f"def {name}(".encode(), "python"):
            for match in definition.finditer(file.text):
                if b"triton.jit" in match.group() or b"gluon.jit" in match.group():
                    return True
        return False

    def _measure(self, file: SourceFile, head: GlobalHead) -> ParseQuality:
        tree = self.trees.tree(file, "cuda")
        if tree is None:
            return "lexical"
        chain = ancestors(tree.root_node, head.offset, head.offset + len(head.name))
        kinds = [node.type for node in chain]
        if "ERROR" in kinds or "function_definition" not in kinds:
            return "lexical"
        function = chain[kinds.index("function_definition")]
        declarator = function.child_by_field_name("declarator")
        if declarator is None or head.offset not in range(
            declarator.start_byte, declarator.end_byte
        ):
            return "lexical"
        return "recovered" if tree.root_node.has_error else "clean"


def spaces_agree(ref: KernelRef, spaces: tuple[str, ...]) -> bool:
    """Tell whether a definition's namespaces can be those of a name.

    A name that shows no namespace fits any (reports often cut them); one that shows some must
    show them all, inline ones apart.
    """
    if not ref.spaces:
        return True
    return [space for space in spaces if space] == [space for space in ref.spaces if space]


def same_symbol(ref: KernelRef, row: TableRow) -> bool:
    """Tell whether a row's symbol is the kernel's; a name may have lost its namespace."""
    other = kernel_ref(row.symbol)
    if ref.base != other.base:
        return False
    return not ref.spaces or ref.spaces == other.spaces


@lru_cache(maxsize=1_024)
def _folded_words(text: bytes, fold: str) -> tuple[int, ...]:
    first = fold[:4].encode()
    if first not in text.lower().replace(b"_", b""):
        return ()
    code = native_file(text).code
    return tuple(
        match.start()
        for match in re.finditer(rb"[A-Za-z_]\w*", code)
        if len(match.group()) >= len(fold) and folded(match.group().decode()) == fold
    )
