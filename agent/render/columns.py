"""Plain text tables and lists that fit a width; foreign names are made fit to be shown here.

Width counts terminal cells. Nothing is markup: the text is printed as it is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from unicodedata import combining, east_asian_width

from agent.core.proposals import Finding
from agent.core.text import shown

ELLIPSIS = "…"
GAP = "  "
_UNIT = re.compile(r"(?<=\d) (?=%|ms\b|us\b|ns\b)")


@dataclass(frozen=True, slots=True)
class Column:
    """One column; the `flexible` one takes and gives width, `spare` ones go where there is none."""

    title: str
    align: Literal["left", "right"] = "right"
    flexible: bool = False
    spare: int = 0


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Lay out rows under a head; cells of the flexible column are cut in their middle to fit.

    Where that is not enough, spare columns are left out, those with the highest number first.
    """
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = _widths(columns, cells, width)
    sparest = max(range(len(columns)), key=lambda index: columns[index].spare)
    if columns[sparest].spare and sum(widths) + _gaps(columns) > width:
        kept = [index for index in range(len(columns)) if index != sparest]
        fewer = [[row[index] for index in kept] for row in rows]
        return table([columns[index] for index in kept], fewer, width)
    head = _line(columns, [column.title for column in columns], widths)
    return [head, *(_line(columns, row, widths) for row in cells)]


def wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Break a sentence into lines, never between a number and its unit."""
    held = _UNIT.sub("\N{NO-BREAK SPACE}", shown(text))
    rest = rest or " " * len(first)
    lines = textwrap.wrap(
        held,
        max(width, 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )
    whole: list[str] = []
    for line in lines:
        if cell_width(line) <= width:
            whole.append(line)
            continue
        head, *others = _pieces(line, width - len(rest))
        whole += [head, *(f"{rest}{piece}" for piece in others)]
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in whole]


def finding_lines(finding: Finding, width: int) -> list[str]:
    """Give what must be said before any figure, and what to do about it."""
    lines = wrapped(f"! {finding.code} {finding.message}", width, rest="  ")
    if finding.hint:
        lines += wrapped(f"hint: {finding.hint}", width, first="  ", rest="        ")
    return lines


def name_lines(name: str, width: int, *, indent: int = 4, limit: int = 3) -> list[str]:
    """Give a foreign name verbatim on lines of its own, cut in its middle beyond `limit` lines."""
    room = max(width - indent, 20)
    text = cut_middle(shown(name), room * limit)
    return [" " * indent + piece for piece in _pieces(text, room)]


def cell_width(text: str) -> int:
    """Count the terminal cells a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def cut_middle(text: str, width: int) -> str:
    """Shorten a text to `width` cells, keeping its start and its end."""
    if cell_width(text) <= width:
        return text
    room = max(width - 1, 1)
    head, tail = text[: (room + 1) // 2], text[len(text) - room // 2 :]
    while cell_width(head) + cell_width(tail) > room and (head or tail):
        head, tail = (head[:-1], tail) if cell_width(head) >= cell_width(tail) else (head, tail[1:])
    return f"{head}{ELLIPSIS}{tail}"


def _pieces(text: str, room: int) -> list[str]:
    """Cut a text into pieces of at most `room` cells."""
    pieces: list[str] = []
    while text:
        end = len(text) if cell_width(text) <= room else max(room, 1)
        while cell_width(text[:end]) > room and end > 1:
            end -= 1
        pieces.append(text[:end])
        text = text[end:]
    return pieces


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    widths = [
        max([cell_width(column.title), *(cell_width(row[index]) for row in cells)])
        for index, column in enumerate(columns)
    ]
    flexible = next((i for i, column in enumerate(columns) if column.flexible), None)
    if flexible is not None:
        room = width - sum(widths) - _gaps(columns) + widths[flexible]
        floor = max(cell_width(columns[flexible].title), 8)
        widths[flexible] = max(floor, min(widths[flexible], room))
    return widths


def _gaps(columns: Sequence[Column]) -> int:
    return len(GAP) * (len(columns) - 1)


def _line(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        text = cut_middle(cell, width)
        space = " " * (width - cell_width(text))
        padded.append(f"{text}{space}" if column.align == "left" else f"{space}{text}")
    return GAP.join(padded).rstrip()
