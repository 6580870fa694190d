"""Pieces of the one-file HTML pages: escaping, sortable tables, the frame with its policy.

A page carries everything it needs. Its content security policy allows exactly this style sheet and
this script, by hash, and no request of any kind; it has no inline handlers and no style attributes,
so foreign text could not do anything even if it got through the escaping.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape

from agent.core.text import shown
from agent.render.columns import cut_middle
from agent.render.page_script import SCRIPT
from agent.render.page_style import STYLE

SHORT = 96


@dataclass(frozen=True, slots=True)
class Cell:
    """One table cell: trusted HTML, what it sorts by, and whether it is a number or a name."""

    html: str
    sort: str = ""
    number: bool = False
    name: bool = False


def text(foreign: str, *, limit: int = 0) -> str:
    """Give foreign text as HTML text, safe in attributes as well."""
    return escape(shown(foreign, limit=limit), quote=True)


def word(foreign: str) -> Cell:
    """Give a cell of foreign text."""
    return Cell(text(foreign), foreign)


def short_name(name: str) -> str:
    """Give a kernel name as code, cut in its middle; the whole name belongs into the details."""
    return f"<code>{escape(cut_middle(shown(name), SHORT), quote=True)}</code>"


def figure(shown_as: str, value: int | Fraction | None) -> Cell:
    """Give a cell of a number that sorts by its value; None sorts last."""
    return Cell(text(shown_as), "" if value is None else f"{float(value):.9g}", number=True)


def sortable(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Give a table whose heads are buttons; each row may be followed by its own detail row."""
    return sortable_with_details(caption, heads, [(row, "") for row in rows])


def sortable_with_details(
    caption: str, heads: Sequence[str], rows: Iterable[tuple[Sequence[Cell], str]]
) -> str:
    """Give a table of bodies, one per row, with the row's details (trusted HTML) folded away.

    A head is aligned as the cells of its column, which are all numbers or all words.
    """
    rows = list(rows)
    numbers = [cell.number for cell in rows[0][0]] if rows else [False] * len(heads)
    head = "".join(
        _head(title, index, number=number)
        for index, (title, number) in enumerate(zip(heads, numbers, strict=True))
    )
    bodies = "".join(_body(cells, detail, len(heads)) for cells, detail in rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="'
        f'{text(caption)}"><table class="sortable"><caption>{text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead>{bodies}</table></div>"
    )


def plain_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Give a table that does not sort; its first column heads the rows."""
    head = "".join(f'<th scope="col" class="left">{text(title)}</th>' for title in heads)
    body = "".join(
        f'<tr><th scope="row">{row[0].html}</th>'
        + "".join(f'<td class="wrap">{cell.html}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}">'
        f'<table class="plain"><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def section(title: str, *contents: str) -> str:
    """Give a titled section; "" when it has no content."""
    inner = "".join(contents)
    return f"<section><h2>{text(title)}</h2>{inner}</section>" if inner else ""


def paragraph(foreign: str, *, css: str = "") -> str:
    """Give a paragraph of foreign text; "" for none."""
    kind = f' class="{css}"' if css else ""
    return f"<p{kind}>{text(foreign)}</p>" if foreign else ""


def page(title: str, contents: Iterable[str]) -> str:
    """Put contents into a page with its policy, style sheet and script."""
    policy = (
        f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none';"
        f" style-src '{_hash(STYLE)}'; script-src '{_hash(SCRIPT)}'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=True)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme"'
        f' content="light dark"><link rel="icon" href="data:,"><title>{text(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(filter(None, contents))
        + f"\n</main>\n<script>{SCRIPT}</script></body></html>\n"
    )


def _head(title: str, index: int, *, number: bool) -> str:
    kind = "" if number else ' class="left"'
    return (
        f'<th scope="col"{kind}><button type="button" class="sort" data-column="{index}">'
        f"{text(title)}</button></th>"
    )


def _body(cells: Sequence[Cell], detail: str, span: int) -> str:
    row = "".join(_cell(cell) for cell in cells)
    if not detail:
        return f"<tbody><tr>{row}</tr></tbody>"
    return (
        f'<tbody><tr class="opens">{row}</tr><tr class="detail"><td colspan="{span}">{detail}</td>'
        "</tr></tbody>"
    )


def _cell(cell: Cell) -> str:
    kind = ' class="n"' if cell.number else ' class="name"' if cell.name else ""
    return f'<td{kind} data-sort="{text(cell.sort, limit=80)}">{cell.html}</td>'


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
