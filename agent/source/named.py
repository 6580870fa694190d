"""List the kernels of a snapshot whose name holds a literal: what a pattern takes along."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.core.source import Definition
from agent.source.definitions import Definitions
from agent.source.native.structure import native_file
from agent.source.native.tables import table_rows
from agent.source.paths import is_python

_MAX_FILES = 40
_JIT = re.compile(rb"\bjit\b|\.kernel\b|repr=")


def definitions_like(bundle: Definitions, literal: str) -> Iterator[Definition]:
    """Yield runtime definitions and table rows whose printed name holds the literal."""
    if not literal:
        return
    wanted = literal.encode("utf-8", "replace")
    word = literal.rpartition("::")[2]
    if word:
        yield from _code(bundle, word)
    for path, file in bundle.tables().items():
        if wanted.rpartition(b"::")[2] not in file.text:
            continue
        table = table_rows(file.text)
        for row in table.rows if table is not None else ():
            if literal in row.name or literal in row.symbol:
                yield bundle.row_definition(path, row)


def _code(bundle: Definitions, word: str) -> Iterator[Definition]:
    literal = word.encode("utf-8", "replace")
    defining = re.compile(
        rb"\bdef[ \t]+\w*" + re.escape(literal) + rb"\w*[ \t]*\(|[\"']\w*" + re.escape(literal)
    )
    count = 0
    for file in bundle.snapshot.holding(literal, "python", "native"):
        if is_python(file.path):
            if not (_JIT.search(file.text) and defining.search(file.text)):
                continue
            count += 1
            for kernel in bundle.kernels(file):
                if word in kernel.shown:
                    yield bundle.definition(file, kernel)
        elif b"__global__" in file.text:
            count += 1
            for head in native_file(file.text).heads:
                if word in head.name and head.body:
                    yield bundle.head_definition(file, head)
        if count > _MAX_FILES:
            return
