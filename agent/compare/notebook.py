"""The category table as a fragment of HTML, for notebooks; pages are `agent.render.html`."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from html import escape

from agent.compare.contract import coverage_phrase, ruleset_phrase
from agent.compare.figures import Millis, fraction_of, percent
from agent.compare.rows import CategoryRow, total_of
from agent.core.proposals import Finding
from agent.core.rules import Coverage, RuleSet
from agent.core.text import shown

_HEADS = ("category", "base calls", "base ms", "new calls", "new ms", "diff ms", "diff %")


def notebook_html(
    findings: Iterable[Finding],
    rows: Iterable[CategoryRow],
    *,
    scale: Fraction,
    labelled: tuple[RuleSet, Coverage, Coverage],
) -> str:
    """Give what must be said first, the table with its total, and by what it was labelled.

    `scale` is the work ratio; `labelled` the rules and how well they cover each side.
    """
    listed = list(rows)
    base, new = total_of(listed)
    millis = Millis.fitting(max(base.time_ns, new.time_ns))
    body = [_cells(row.category, row, millis, scale) for row in listed]
    if listed:
        total = CategoryRow(listed[0].category, base, new, ())
        body.append(_cells("total", total, millis, scale))
    notes = "".join(
        f"<p><b>{escape(shown(one.code))}</b> {escape(shown(one.message))}</p>" for one in findings
    )
    heads = _HEADS if scale == 1 else (*_HEADS, "per pass")
    head = "".join(f"<th>{title}</th>" for title in heads)
    return (
        f"{notes}<table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table>"
        f"<p>{escape(shown(_labels(*labelled)))}</p>"
    )


def _labels(ruleset: RuleSet, base: Coverage, new: Coverage) -> str:
    sides = f"base: {coverage_phrase(base)}; new: {coverage_phrase(new)}"
    return f"{ruleset_phrase(ruleset)}; {sides}"


def _cells(name: str, row: CategoryRow, millis: Millis, scale: Fraction) -> str:
    cells = [
        escape(shown(name)),
        f"{row.base.count:,}",
        millis(row.base.time_ns),
        f"{row.new.count:,}",
        millis(row.new.time_ns),
        millis(row.delta_ns, signed=True),
        _relative(row, Fraction(1)),
        *([] if scale == 1 else [_relative(row, scale)]),
    ]
    return "".join(f"<td>{one}</td>" for one in cells)


def _relative(row: CategoryRow, scale: Fraction) -> str:
    if row.status != "both":
        return row.status
    if not row.base.time_ns:
        return ""
    return percent(fraction_of(row.new.time_ns, row.base.time_ns) / scale - 1)
