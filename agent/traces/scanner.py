"""The compiled half of the reader: a block of plain events -> columns of integers, or a refusal.

`scan/scan.c` is compiled when the package is built, where there is a C compiler; without it, or
with `LABEL_AGENT_READER=python`, every block is read in Python, with the same result.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from agent.traces.vectors import Vector

LIBRARY: Final = Path(__file__).with_name("_scan.so")
_VERSION: Final = 1
_COLUMNS: Final = {"kernels": 9, "launches": 7, "operators": 9, "rare": 2}
_FRESH_COLUMNS, _FRESH_ROWS = 5, 4
_COUNTS: Final = 8

KERNEL_NAMES, CALLS, OPERATORS, THREADS = range(4)
"""Tables of texts that the scanner numbers, each from 0."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """A text that was met for the first time, and so has the next number of its table.

    `text` is a JSON token or nothing; `types` what an operator has as `Input type`, or nothing.
    """

    table: int
    text: bytes
    types: bytes


@dataclass(frozen=True, slots=True)
class Scan:
    """What a block holds; the columns are overwritten by the next scan.

    Attributes:
        n_events: how many events there are.
        n_frames: how many of them are Python frames.
        phased: whether any of them has a phase.
        kernels: start_ns, duration_ns, name, work, device, stream, correlation, external id.
        launches: start_ns, call, correlation, external id, thread.
        operators: start_ns, duration_ns, what, external id, thread.
        rare: the text of events to be read otherwise: annotations, and those in two halves.
        fresh: texts whose numbers stand in these columns for the first time.
    """

    n_events: int
    n_frames: int
    phased: bool
    kernels: Vector
    launches: Vector
    operators: Vector
    rare: list[bytes]
    fresh: list[Fresh]


class Scanner:
    """Scans the blocks of one file; it numbers texts as it meets them."""

    def __init__(self, library: ctypes.CDLL, categories: Mapping[str, int]) -> None:
        """Take the categories that matter, in lower case, with their kinds.

        Raises:
            MemoryError: there is none left.
        """
        self._library = library
        self._views: dict[str, Vector] = {}
        self._handle = library.scanner_new(int.from_bytes(os.urandom(8), "little"))
        if not self._handle:
            raise MemoryError
        for name, kind in categories.items():
            if not library.scanner_category(self._handle, name.encode(), kind):
                raise MemoryError
        self._views = _views(library, self._handle)

    def __del__(self) -> None:
        """Give back what the library holds."""
        if self._handle:
            self._views.clear()
            self._library.scanner_free(self._handle)

    def scan(self, text: bytes) -> Scan | None:
        """Scan `[event, event, ...]`; None where something in it is not plainly as it should be."""
        if not self._library.scanner_scan(self._handle, text, len(text)):
            return None
        views = self._views
        counts = views["counts"].tolist()
        n_events, n_phased, n_frames, n_kernels, n_launches, n_operators, n_rare, n_fresh = counts
        rare = views["rare"][:, :n_rare].T.tolist()
        return Scan(
            n_events=n_events,
            n_frames=n_frames,
            phased=n_phased > 0,
            kernels=views["kernels"][:8, :n_kernels],
            launches=views["launches"][:5, :n_launches],
            operators=views["operators"][:5, :n_operators],
            rare=[text[start:end] for start, end in rare],
            fresh=[
                Fresh(table, text[at : at + size], text[types_at : types_at + types_size])
                for table, at, size, types_at, types_size in views["fresh"][:, :n_fresh].T.tolist()
            ],
        )


def _views(library: ctypes.CDLL, handle: int) -> dict[str, Vector]:
    """Give the library's columns as arrays over its own memory."""
    n_rows = library.scanner_rows()
    shapes = {name: (width, n_rows) for name, width in _COLUMNS.items()}
    shapes["fresh"] = (_FRESH_COLUMNS, _FRESH_ROWS * n_rows)
    total = sum(width * rows for width, rows in shapes.values()) + _COUNTS
    memory = np.ctypeslib.as_array(library.scanner_columns(handle), shape=(total,))
    views: dict[str, Vector] = {}
    at = 0
    for name, (width, rows) in shapes.items():
        views[name] = memory[at : at + width * rows].reshape(width, rows)
        at += width * rows
    return views | {"counts": memory[at:]}


@cache
def load_library() -> ctypes.CDLL | None:
    """Load what was compiled; None where there is nothing that fits this version."""
    if os.environ.get("LABEL_AGENT_READER") == "python":
        return None
    try:
        library = ctypes.CDLL(os.fspath(LIBRARY))
        library.scanner_version.restype = ctypes.c_int64
        if library.scanner_version() != _VERSION:
            return None
        _declare(library)
    except (OSError, AttributeError):
        return None
    return library


def _declare(library: ctypes.CDLL) -> None:
    handle, number = ctypes.c_void_p, ctypes.c_int64
    library.scanner_rows.restype = number
    library.scanner_new.restype = handle
    library.scanner_new.argtypes = [ctypes.c_uint64]
    library.scanner_free.restype = None
    library.scanner_free.argtypes = [handle]
    library.scanner_category.argtypes = [handle, ctypes.c_char_p, number]
    library.scanner_columns.restype = ctypes.POINTER(number)
    library.scanner_columns.argtypes = [handle]
    library.scanner_scan.argtypes = [handle, ctypes.c_char_p, number]
