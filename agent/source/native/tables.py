"""Assembly kernel tables: CSV rows that name a kernel and the code object that holds it.

Columns are found by the header, the architecture by the folder (`hsa/gfx942/...`). Rows that are
commented out, and lines that are no rows, are never evidence.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from agent.core.names import canonical_name

_ARCH = re.compile(r"(?:^|/)(gfx[0-9a-f]{3,5})(?:/|$)")
_MAX_ROWS = 50_000
_KERNEL_COLUMNS = ("knl_name", "kernel_name", "knlname", "kernelname")
_CODE_COLUMNS = ("co_name", "co", "coname")


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row: `line` is 1-based; `symbol` is the mangled name, `name` the demangled one."""

    line: int
    symbol: str
    name: str
    code_object: str


@dataclass(frozen=True, slots=True)
class KernelTableFile:
    """One CSV file: its rows, and the lines that look like rows but are commented out."""

    rows: tuple[TableRow, ...]
    commented: tuple[int, ...]


@lru_cache(maxsize=512)
def table_rows(text: bytes) -> KernelTableFile | None:
    """Read a table; None when its header names no kernel column."""
    lines = text.decode("utf-8-sig", "replace").split("\n")[:_MAX_ROWS]
    header_line = next(
        (i for i, line in enumerate(lines) if line.strip() and not _comment(line)), -1
    )
    if header_line < 0:
        return None
    header = [cell.strip().lower() for cell in _cells(lines[header_line])]
    kernel = next((header.index(name) for name in _KERNEL_COLUMNS if name in header), -1)
    code = next((header.index(name) for name in _CODE_COLUMNS if name in header), -1)
    if kernel < 0:
        return None
    rows, commented = [], []
    for number, line in enumerate(lines[header_line + 1 :], header_line + 2):
        if _comment(line):
            commented.append(number)
            continue
        cells = _cells(line)
        if len(cells) <= max(kernel, code) or not cells[kernel].strip():
            continue
        symbol = cells[kernel].strip()
        held = cells[code].strip() if code >= 0 else ""
        rows.append(TableRow(number, symbol, canonical_name(symbol), held))
    return KernelTableFile(tuple(rows), tuple(commented))


def table_arch(path: str) -> str:
    """Give the architecture a table or code object is for; "" when its path does not say."""
    found = _ARCH.search(path)
    return found.group(1) if found else ""


def code_object_paths(table_path: str, row: TableRow, paths: Iterable[str]) -> tuple[str, ...]:
    """Give the paths of the code objects a row may mean: beside its table, else below it."""
    folder = table_path.rpartition("/")[0]
    beside = f"{folder}/{row.code_object}" if folder else row.code_object
    known = [path for path in paths if path.startswith(f"{folder}/" if folder else "")]
    if beside in known:
        return (beside,)
    return tuple(sorted(path for path in known if path.endswith(f"/{row.code_object}")))


def _comment(line: str) -> bool:
    return line.lstrip(" \t\"'").startswith(("#", "//", ";"))


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r")]), [])
    except csv.Error:
        return []
