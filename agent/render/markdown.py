"""Pieces of Markdown in which foreign names stay text: no markup, no HTML, no broken table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from agent.core.proposals import Finding
from agent.core.text import shown

_SPECIAL = re.compile(r"[\\`*_\[\]#|~]|:(?=//)|(?<=www)\.")


def cell(text: str, *, limit: int = 0) -> str:
    """Give foreign text as one table cell or line."""
    return escape(_SPECIAL.sub(r"\\\g<0>", shown(text, limit=limit)), quote=False)


def code(name: str, *, limit: int = 200) -> str:
    """Give a foreign name in code style; a `|` is escaped, because a table splits on it."""
    text = shown(name, limit=limit).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def md_finding(finding: Finding) -> str:
    """Give what must be said before any figure, and what to do about it, as a quotation."""
    hint = f" Hint: {cell(finding.hint)}" if finding.hint else ""
    return f"> **{finding.code}** {cell(finding.message)}{'.' if hint else ''}{hint}"


def md_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)
) -> list[str]:
    """Give a table; columns in `left` are aligned left, a last one named `kernel` is, too."""
    rules = [
        "---" if index in left or title == "kernel" else "---:" for index, title in enumerate(head)
    ]
    return [_row(head), _row(rules), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
