"""One piece of evidence against one snapshot: is the place there, and what does it hold?

Each item becomes an `Item` with the facts found, or with findings that say why there are none.
What the items prove together is `agent.source.evidence.examine`'s question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.core.names import canonical_name
from agent.core.proposals import Evidence, Finding
from agent.core.source import Definition
from agent.source.definitions import Definitions, same_symbol
from agent.source.evidence.snippets import snippet_problem
from agent.source.names import folded, kernel_ref
from agent.source.native.elf import elf_symbols
from agent.source.native.sites import NativeSite, native_region
from agent.source.native.structure import GlobalHead, native_file
from agent.source.native.tables import TableRow, code_object_paths
from agent.source.paths import is_binary, is_native, is_python, is_runtime, suffix
from agent.source.python.kernels import PyKernel
from agent.source.python.sites import MAX_LINES, Region, line_range_problem, region
from agent.source.python.text import py_text
from agent.source.snapshot import SourceFile

_MAX_INSTANTIATION_LINES = 10
_MAX_DEFINITION = 2_000
"""A definition may be cited whole; an emission is one place."""
_CK = re.compile(rb"(?<!\w)(?:ck|ck_tile)\s*::|\bnamespace\s+(?:ck|ck_tile)\b")
_CK_PATH = re.compile(r"(?:^|[/_.])(?:ck|cktile)(?:[/_.]|$)")


@dataclass
class Item:
    """What one piece of evidence turned out to be."""

    evidence: Evidence
    definitions: Definitions | None = None
    file: SourceFile | None = None
    findings: list[Finding] = field(default_factory=list)
    definition: Definition | None = None
    kernel: PyKernel | None = None
    head: GlobalHead | None = None
    row: TableRow | None = None
    binary_symbol: str = ""
    instantiated: bool = False
    region: Region | None = None
    native_sites: tuple[NativeSite, ...] = ()

    @property
    def located(self) -> bool:
        """Tell whether the place holds what the item says, so far as one item can tell."""
        found = self.definition or self.row or self.binary_symbol or self.instantiated
        return bool(found or (self.region and self.region.sites) or self.native_sites)

    @property
    def place(self) -> str:
        """Give the path and first line that are cited."""
        return f"{self.evidence.path}:{self.evidence.lines[0]}"

    def refuse(self, code: str, message: str, *, hint: str = "") -> None:
        """Add an error at the item's place."""
        self.findings.append(Finding(code, message, "error", self.place, hint))


def read_item(evidence: Evidence, definitions: Definitions, names: Sequence[str]) -> Item:
    """Read one piece of evidence; the commit and repository are already resolved."""
    item = Item(evidence, definitions)
    snapshot = definitions.snapshot
    if evidence.guard and evidence.kind != "emission":
        item.refuse("E_GUARD_MISMATCH", f"no guard stands around a {evidence.kind}; it is of calls")
    if evidence.kind == "binary":
        _read_binary(item, names)
        return item
    found = snapshot.file(evidence.path)
    if isinstance(found, Finding):
        item.findings.append(found)
        return item
    item.file = found
    if not is_runtime(evidence.path) and suffix(evidence.path) != "csv":
        message = f"{evidence.path} is a test, benchmark, example or documentation path"
        item.refuse("E_NON_RUNTIME_PATH", message)
    whole = evidence.kind in ("definition", "template")
    problem = line_range_problem(found, evidence.lines, _MAX_DEFINITION if whole else MAX_LINES)
    if problem is not None:
        item.findings.append(problem)
        return item
    _READERS[evidence.kind](item, names)
    if item.located:
        sites = item.region.sites if item.region is not None else ()
        wrong = snippet_problem(found, evidence, max((site.lines[1] for site in sites), default=0))
        if wrong is not None:
            item.findings.append(wrong)
    return item


def _read_definition(item: Item, names: Sequence[str]) -> None:
    path = item.evidence.path
    if is_python(path):
        _python_definition(item, names)
    elif is_native(path):
        _native_definition(item, names)
    else:
        item.refuse("E_KIND", f"{path} is no source of kernels; a table row is kind `table`")
    if item.definition is not None:
        _check_symbol(item)


def _python_definition(item: Item, names: Sequence[str]) -> None:
    file, definitions = item.file, item.definitions
    if file is None or definitions is None:
        return
    first, last = item.evidence.lines
    held = [
        kernel
        for kernel in definitions.kernels(file)
        if first <= kernel.line <= last or first <= kernel.function.line <= last
    ]
    outside = [one for one in held if first < one.function.first and first < one.line]
    if not held or outside or last > max(one.function.last for one in held):
        _no_definition(item, names)
        return
    fitting = [one for one in held if any(one.accepts(canonical_name(name)) for name in names)]
    if len(held) > 1 and len({one.function.qualname for one in fitting or held}) > 1:
        item.refuse("E_NO_MATCHING_NODE", "several kernels are defined on these lines")
        return
    item.kernel = (fitting or held)[0]
    item.definition = definitions.definition(file, item.kernel)


def _native_definition(item: Item, names: Sequence[str]) -> None:
    file, definitions = item.file, item.definitions
    if file is None or definitions is None:
        return
    first, last = item.evidence.lines
    held = [
        head
        for head in native_file(file.text).heads
        if first <= head.line <= last and head.begins <= first
    ]
    if len(held) != 1:
        if held:
            item.refuse("E_NO_MATCHING_NODE", "several kernels are defined on these lines")
        else:
            _no_definition(item, names)
        return
    head = held[0]
    if not head.name:
        item.refuse("E_NO_MATCHING_NODE", "the name of this `__global__` is a macro parameter")
    elif not head.body:
        item.refuse("E_NO_MATCHING_NODE", "this is a declaration without a body")
    elif last > native_file(file.text).last_line(head):
        item.refuse("E_NO_MATCHING_NODE", f"the lines reach past the end of {head.name}")
    else:
        item.head = head
        item.definition = definitions.head_definition(file, head)


def _no_definition(item: Item, names: Sequence[str]) -> None:
    """Say what the lines hold instead of a definition: a string, a comment, or other code."""
    file = item.file
    if file is None:
        return
    kind = _noise_kind(file, item.evidence.lines, [kernel_ref(name).base for name in names])
    if kind:
        code = "E_IN_COMMENT" if kind == "comment" else "E_IN_STRING"
        item.refuse(code, f"the name stands in a {kind} on these lines, nothing is defined there")
    else:
        what = "jit-decorated `def`" if is_python(file.path) else "`__global__` function"
        item.refuse("E_NO_MATCHING_NODE", f"no {what} is named on these lines")


def _noise_kind(file: SourceFile, lines: tuple[int, int], bases: Sequence[str]) -> str:
    """Tell whether the kernel's name, or all text, of some lines is string or comment."""
    parsed = native_file(file.text) if not is_python(file.path) else None
    start, end = file.span(*lines)
    text = file.text[start:end]
    if parsed is None:
        noise = py_text(file.text).noise_at
        offsets = _name_offsets(text, bases) or [len(text) - len(text.lstrip())]
        kinds = {_python_noise(file.text, noise(start + offset)) for offset in offsets}
    else:
        known = [base for base in bases if base] or [
            head.name for head in parsed.heads if head.name
        ]
        offsets = _name_offsets(text, known)
        if not offsets:
            return "comment" if text.strip() and not parsed.code[start:end].strip() else ""
        kinds = {parsed.noise_at(start + offset) for offset in offsets}
    return next(iter(kinds)) if len(kinds) == 1 else ""


def _python_noise(text: bytes, span: tuple[int, int] | None) -> str:
    if span is None:
        return ""
    return "comment" if text[span[0] : span[0] + 1] == b"#" else "string"


def _name_offsets(text: bytes, bases: Sequence[str]) -> list[int]:
    return [
        match.start()
        for base in bases
        for match in re.finditer(re.escape(base.encode("utf-8", "replace")), text)
    ]


def _read_table(item: Item, names: Sequence[str]) -> None:
    definitions, path = item.definitions, item.evidence.path
    table = definitions.table(path) if definitions is not None else None
    if table is None or definitions is None:
        item.refuse("E_KIND", f"{path} is no table with a kernel name column")
        return
    first, last = item.evidence.lines
    rows = [row for row in table.rows if first <= row.line <= last]
    if len(rows) != 1:
        if any(first <= line <= last for line in table.commented):
            item.refuse("E_IN_COMMENT", "the row is commented out")
        else:
            item.refuse("E_NO_MATCHING_NODE", "not exactly one table row is on these lines")
        return
    row = rows[0]
    if names and not any(same_symbol(kernel_ref(name), row) for name in names):
        item.refuse("E_NAME_MISMATCH", f"the row names {row.name!r}, not the kernel")
        return
    if item.evidence.symbol not in ("", row.symbol, row.name, kernel_ref(row.symbol).base):
        item.refuse("E_SYMBOL", f"the row names {row.symbol!r}, not {item.evidence.symbol!r}")
        return
    item.row = row
    item.definition = definitions.row_definition(path, row)
    _check_code_object(item, row)


def _check_code_object(item: Item, row: TableRow) -> None:
    """Read the code object a row names and look for its symbol."""
    definitions = item.definitions
    if definitions is None:
        return
    snapshot = definitions.snapshot
    paths = code_object_paths(item.evidence.path, row, snapshot.tree)
    if not paths:
        item.refuse("E_BINARY_MISSING", f"the code object {row.code_object!r} is not in the tree")
        return
    for path in paths:
        content = snapshot.binary(path)
        if isinstance(content, Finding):
            item.findings.append(content)
            return
        symbols = elf_symbols(content)
        if symbols is None:
            item.refuse("E_BINARY", f"{path} is not a sound ELF file")
            return
        if row.symbol in symbols:
            item.binary_symbol = row.symbol
            return
    item.refuse("E_SYMBOL_MISSING", f"{paths[0]} does not hold the symbol {row.symbol!r}")


def _read_binary(item: Item, names: Sequence[str]) -> None:
    definitions, path = item.definitions, item.evidence.path
    if definitions is None:
        return
    content = definitions.snapshot.binary(path)
    if isinstance(content, Finding):
        item.findings.append(content)
        return
    if item.evidence.snippet:
        item.refuse("E_SNIPPET", f"{path} is binary and has no lines to quote")
    symbols = elf_symbols(content) if is_binary(path) or content[:4] == b"\x7fELF" else None
    if symbols is None:
        item.refuse("E_BINARY" if is_binary(path) else "E_KIND", f"{path} is not a sound ELF file")
        return
    wanted = item.evidence.symbol
    held = [one for one in symbols if not wanted or wanted in (one, canonical_name(one))]
    fitting = [
        one
        for one in held
        if any(
            kernel_ref(name).base == kernel_ref(one).base
            and kernel_ref(name).spaces in ((), kernel_ref(one).spaces)
            for name in names
        )
    ]
    if not fitting:
        item.refuse("E_SYMBOL_MISSING", f"{path} does not hold the kernel's symbol")
        return
    item.binary_symbol = min(fitting, key=lambda one: (one.endswith(".kd"), one))


def _read_template(item: Item, names: Sequence[str]) -> None:
    file, definitions = item.file, item.definitions
    if file is None or definitions is None or not is_python(file.path):
        item.refuse("E_KIND", "a name template is read from Python source only")
        return
    first, last = item.evidence.lines
    held = [
        kernel
        for kernel in definitions.kernels(file)
        if (first <= kernel.line <= last <= kernel.last)
        or (first >= kernel.function.first and first <= kernel.function.line <= last)
        or (kernel.line <= first <= last <= kernel.last)
        or (kernel.built[0] <= first <= last <= kernel.built[1])
    ]
    if not held:
        _no_definition(item, names)
        return
    fitting = [one for one in held if any(one.accepts(canonical_name(name)) for name in names)]
    kernel = (fitting or held)[0]
    if max((rule.literal_length for rule in kernel.rules), default=0) < 8:
        item.refuse("E_TEMPLATE_TOO_SHORT", "the template has fewer than 8 literal characters")
        return
    item.kernel = kernel
    item.definition = definitions.definition(file, kernel)
    _check_symbol(item)


def _read_instantiation(item: Item, names: Sequence[str]) -> None:
    file = item.file
    if file is None or not is_native(file.path):
        item.refuse("E_KIND", "an instantiation is read from HIP or C++ source only")
        return
    if item.evidence.lines[1] - item.evidence.lines[0] >= _MAX_INSTANTIATION_LINES:
        item.refuse("E_TOO_MANY_LINES", "an instantiation is one expression")
        return
    wanted = [kernel_ref(name).payload or kernel_ref(name).qualified for name in names]
    folds = {folded(name.rpartition("::")[2]) for name in wanted if name} - {""}
    start, end = file.span(*item.evidence.lines)
    words = re.findall(rb"[A-Za-z_]\w*", native_file(file.text).code[start:end])
    if any(folded(word.decode()) in folds for word in words):
        item.instantiated = _speaks_of_ck(file)
        if not item.instantiated:
            item.refuse("E_NAME_MISMATCH", "nothing in this file is of Composable Kernel")
        elif item.evidence.symbol and item.evidence.symbol.encode() not in words:
            item.refuse("E_SYMBOL", f"{item.evidence.symbol!r} does not stand on these lines")
        return
    kind = _noise_kind(file, item.evidence.lines, [name.rpartition("::")[2] for name in wanted])
    code = {"comment": "E_IN_COMMENT", "string": "E_IN_STRING"}.get(kind, "E_NAME_MISMATCH")
    item.refuse(code, "the type of the kernel is not used in code on these lines")


def _speaks_of_ck(file: SourceFile) -> bool:
    """Tell whether a file is about Composable Kernel: other libraries have types of like names."""
    return bool(_CK.search(native_file(file.text).code) or _CK_PATH.search(file.path))


def _read_emission(item: Item, _names: Sequence[str]) -> None:
    file, definitions = item.file, item.definitions
    if file is None or definitions is None:
        return
    if is_python(file.path):
        item.region = region(file, definitions.trees, item.evidence.lines)
        item.findings.extend(item.region.findings)
        symbol = item.evidence.symbol
        if item.region.sites and symbol and symbol != item.region.qualname:
            stands = item.region.qualname
            item.refuse("E_SYMBOL", f"the lines are in {stands!r}, not in {symbol!r}")
    elif is_native(file.path):
        found = native_region(file, item.evidence.lines)
        if isinstance(found, Finding):
            item.findings.append(found)
        else:
            item.native_sites = found
            symbol, stands = item.evidence.symbol, found[0].function
            if symbol and symbol.rpartition("::")[2] != stands:
                item.refuse("E_SYMBOL", f"the lines are in {stands!r}, not in {symbol!r}")
    else:
        item.refuse("E_KIND", f"{file.path} holds no code that launches anything")


def _check_symbol(item: Item) -> None:
    symbol, definition = item.evidence.symbol, item.definition
    if not symbol or definition is None:
        return
    known = {definition.name, definition.qualname, definition.name.rpartition("::")[2]}
    if item.kernel is not None:
        known |= {item.kernel.function.name, item.kernel.function.qualname}
    if symbol not in known:
        item.refuse("E_SYMBOL", f"the lines define {definition.name!r}, not {symbol!r}")


_READERS = {
    "definition": _read_definition,
    "table": _read_table,
    "template": _read_template,
    "instantiation": _read_instantiation,
    "emission": _read_emission,
}
