"""The table of trace formats: how each is recognised and which function reads it.

Kineto JSON is the default and not in the table. Formats are tried in order on the first bytes of
the file *after* decompression, so a suffix never decides. A reader is named by import path and
imported only when its format is met.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from agent.core.kernels import RankTrace

HEAD_BYTES = 65_536
"""How much of the decompressed file `TraceFormat.sniff` gets to see."""


class FormatReader(Protocol):
    """What a format's module offers: `path` is the file as stored, `source` how to name it."""

    def __call__(self, path: Path, source: str, *, salvage: bool) -> tuple[RankTrace, ...]:
        """Read one file; `salvage` reads what is whole and counts the rest."""
        ...


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One format.

    Attributes:
        name: as in `TraceInfo.format`.
        sniff: tells from the first decompressed bytes (and the path) whether a file is of it.
        reader: `module:function`, a `FormatReader`; "" for a known format we cannot read.
        export: for those, the command that writes a readable one.
    """

    name: str
    sniff: Callable[[bytes, Path], bool]
    reader: str = ""
    export: str = ""

    def load_reader(self) -> FormatReader:
        """Import the reading function."""
        module, _, function = self.reader.partition(":")
        return cast("FormatReader", getattr(importlib.import_module(module), function))


FORMATS: tuple[TraceFormat, ...] = ()


def find_format(head: bytes, path: Path) -> TraceFormat | None:
    """Give the first format whose sniffer says yes; None means Kineto JSON or nothing we know."""
    return next((known for known in FORMATS if known.sniff(head, path)), None)
