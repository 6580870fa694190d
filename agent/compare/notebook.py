"""The category table as a fragment of HTML, for notebooks; pages are `agent.render.html`."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from agent.compare.figures import Millis, fraction_of, percent
from agent.compare.rows import CategoryRow, total_of
from agent.core.proposals import Finding
from agent.core.text import shown

_HEADS = ("category", "base calls", "base ms", "new calls", "new ms", "diff ms", "diff %")


def notebook_html(findings: Iterable[Finding], rows: Iterable[CategoryRow]) -> str:
    """Give what must be said first and the table with its total."""
    listed = list(rows)
    base, new = total_of(listed)
    millis = Millis.fitting(max(base.time_ns, new.time_ns))
    body = [_cells(row.category, row, millis) for row in listed]
    if listed:
        body.append(_cells("total", CategoryRow(listed[0].category, base, new, ()), millis))
    notes = "".join(
        f"<p><b>{escape(shown(one.code))}</b> {escape(shown(one.message))}</p>" for one in findings
    )
    head = "".join(f"<th>{title}</th>" for title in _HEADS)
    return (
        f"{notes}<table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table>"
    )


def _cells(name: str, row: CategoryRow, millis: Millis) -> str:
    change = row.status if row.status != "both" else _relative(row)
    cells = [
        escape(shown(name)),
        f"{row.base.count:,}",
        millis(row.base.time_ns),
        f"{row.new.count:,}",
        millis(row.new.time_ns),
        millis(row.delta_ns, signed=True),
        change,
    ]
    return "".join(f"<td>{one}</td>" for one in cells)


def _relative(row: CategoryRow) -> str:
    return percent(fraction_of(row.delta_ns, row.base.time_ns))
