"""CSV that a spreadsheet reads as data: quoted where needed, names never taken for formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from agent.core.text import shown

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(head: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    r"""Write rows with `\n` line ends; text that starts like a formula gets a leading quote."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([_inert(value) if isinstance(value, str) else value for value in row])
    return buffer.getvalue()


def _inert(text: str) -> str:
    visible = shown(text)
    return f"'{visible}" if visible.startswith(_FORMULA) else visible
