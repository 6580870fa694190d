"""The comparison as text for a terminal.

    diff_text(diff, *, width=80, top=10, sort="time") -> str

What must be said first (not comparable, incomplete capture, unequal work) stands first. Parts
follow the whole: how they differ from it, and their tables. Fits 80 columns; a wider terminal gives
longer bars and more columns.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from agent.compare.contract import coverage_phrase, ruleset_phrase
from agent.compare.figures import fraction_of, percent
from agent.compare.parts import own_findings
from agent.compare.rows import CategoryRow, total_of
from agent.compare.sides import SideSummary
from agent.compare.table import TraceDiff
from agent.render.columns import GAP, Column, cell_width, finding_lines, table, wrapped
from agent.render.diff_detail import aliases, impacts, kernels, noise, targets
from agent.render.ordering import Sort, sorted_rows
from agent.render.phrases import (
    headline,
    ledger_title,
    named_row,
    off_work,
    off_work_phrase,
    parts_rows,
    per_pass_phrase,
    ranks_phrase,
    replay_phrase,
    totals_phrase,
    unlike_phrase,
)
from agent.render.units import Millis, millis_of
from agent.render.waterfall import Bar, diff_bars, raw_amounts

WIDE = 110
NARROWEST = 40
WITH_BARS, BARS, WIDEST_BARS = 60, 20, 84


def diff_text(diff: TraceDiff, *, width: int = 80, top: int = 10, sort: Sort = "time") -> str:
    """Write the whole comparison; `top` bounds each list of kernels, 0 leaves them out."""
    width = max(width, NARROWEST)
    sections = [_whole(diff, width, top, sort)]
    if diff.parts:
        sections.append(_parts(diff, width))
    sections += [_part(name, part, diff, width, sort) for name, part in diff.parts]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _whole(diff: TraceDiff, width: int, top: int, sort: Sort) -> list[str]:
    millis = millis_of(diff)
    sections = [
        _first(diff, millis, width),
        _sides(diff, millis, width),
        _categories(diff, millis, width, sort),
        _ledger(diff, millis, width),
        targets(diff, millis, width, top),
        impacts(diff, width, top),
        kernels(diff, millis, width, top),
        noise(diff, millis, width),
        aliases(diff, width, top),
    ]
    lines: list[str] = []
    for section in filter(None, sections):
        lines += ["", *section] if lines else section
    return lines


def _parts(diff: TraceDiff, width: int) -> list[str]:
    """Set the parts below each other, a line each."""
    (name, *titles), rows = parts_rows(diff)
    columns = [Column(name, "left", flexible=True), *map(_column, titles)]
    return ["=== part by part", "", *table(columns, rows, width)]


def _part(name: str, part: TraceDiff, whole: TraceDiff, width: int, sort: Sort) -> list[str]:
    """Write what a part has of its own: the rest stands with the whole."""
    millis = millis_of(part)
    lines = wrapped(f"=== {name}: {headline(part, millis)}", width, rest="    ")
    for finding in own_findings(part, whole):
        lines += finding_lines(finding, width)
    if said := unlike_phrase(part, whole):
        lines += wrapped(said, width, rest="  ")
    return [*lines, "", *_categories(part, millis, width, sort)]


def _first(diff: TraceDiff, millis: Millis, width: int) -> list[str]:
    lines = []
    for finding in diff.findings:
        lines += finding_lines(finding, width)
    return [*lines, *wrapped(f"result: {headline(diff, millis)}", width, rest="  ")]


def _sides(diff: TraceDiff, millis: Millis, width: int) -> list[str]:
    lines = _side("base", diff.base, millis, width) + _side("new", diff.new, millis, width)
    return lines + wrapped(ruleset_phrase(diff.ruleset), width, rest="  ")


def _side(role: str, side: SideSummary, millis: Millis, width: int) -> list[str]:
    first = f"{role:<5}{side.name}: {totals_phrase(side, millis)}"
    lines = wrapped(first, width, rest=" " * 5)
    phrases = [
        f"coverage: {coverage_phrase(side.coverage)}",
        ranks_phrase(side, millis),
        replay_phrase(side),
    ]
    for phrase in filter(None, phrases):
        lines += wrapped(phrase, width, first=" " * 5, rest=" " * 7)
    return lines


def _categories(diff: TraceDiff, millis: Millis, width: int, sort: Sort) -> list[str]:
    wide = width >= WIDE
    per_pass = not diff.work.equal and diff.work.ratio is not None
    titles = ["base n", "base ms", "new n", "new ms", "diff ms"]
    titles += ["diff %"] if wide or not per_pass else []
    titles += ["per pass"] if per_pass else []
    columns = [Column("category", "left", flexible=True), *map(_column, titles)]
    off = off_work(diff)
    rows = [
        [named_row(row, off), *_figures(row, diff, millis, titles)]
        for row in sorted_rows(diff.categories, sort)
    ]
    base, new = total_of(diff.categories)
    total = CategoryRow(diff.categories[0].category, base, new, ()) if diff.categories else None
    if total is not None:
        rows.append(["total", *_figures(total, diff, millis, titles)])
    lines = table(columns, rows, width)
    residual = f"residual {diff.residual_ns} ns: the rows add up to the events"
    for said in filter(None, (off_work_phrase(off), residual)):
        lines += wrapped(said, width, rest="  ")
    return lines


def _column(title: str) -> Column:
    return Column(title, spare={"base n": 2, "new n": 2, "base ms": 1}.get(title, 0))


def _figures(row: CategoryRow, diff: TraceDiff, millis: Millis, titles: list[str]) -> list[str]:
    cells = [
        f"{row.base.count:,}",
        millis(row.base.time_ns),
        f"{row.new.count:,}",
        millis(row.new.time_ns),
        millis(row.delta_ns, signed=True),
    ]
    if "diff %" in titles:
        cells.append(_relative(row, Fraction(1)))
    if "per pass" in titles:
        cells.append(_relative(row, diff.work.scale))
    return cells


def _relative(row: CategoryRow, scale: Fraction) -> str:
    if row.status != "both":
        return row.status
    if not row.base.time_ns:
        return "" if row.new.time_ns else percent(Fraction(0))
    return percent(fraction_of(row.new.time_ns, row.base.time_ns) / scale - 1)


def _ledger(diff: TraceDiff, millis: Millis, width: int) -> list[str]:
    if not diff.ledger.entries:
        return ["ledger: nothing changed"]
    bars = diff_bars(diff)
    both = diff.ledger_per_pass is not None
    columns = [
        Column(ledger_title(diff), "left", flexible=True),
        *([Column("equal work"), Column("raw ms", spare=1)] if both else [Column("ms")]),
    ]
    raw = raw_amounts(diff, bars)
    rows = [
        [bar.text, millis(bar.delta_ns, signed=True)]
        + ([millis(raw[bar.key], signed=True)] if both else [])
        for bar in bars
    ]
    head, *lines = table(columns, rows, width - (BARS + len(GAP) if width >= WITH_BARS else 0))
    room = min(width - max(map(cell_width, lines)) - len(GAP), WIDEST_BARS)
    drawn = [
        f"{line}{GAP}{_drawn(bar, bars, room)}".rstrip()
        for line, bar in zip(lines, bars, strict=True)
    ]
    words = wrapped(per_pass_phrase(diff, millis), width, rest="  ") if both else []
    return [head, *drawn, *words]


def _drawn(bar: Bar, bars: tuple[Bar, ...], room: int) -> str:
    """Draw a bar of the waterfall: `+` for a cost, `-` for a saving, `=` for the net."""
    if room < 1:
        return ""
    low = min(min(b.start_ns, b.end_ns) for b in bars)
    high = max(max(b.start_ns, b.end_ns) for b in bars)
    span = (high - low) or 1
    left = (min(bar.start_ns, bar.end_ns) - low) * (room - 1) // span
    right = (max(bar.start_ns, bar.end_ns) - low) * (room - 1) // span
    sign: Literal["=", "+", "-"] = "=" if bar.sum else "+" if bar.delta_ns > 0 else "-"
    return " " * left + sign * max(right - left, 1 if bar.delta_ns else 0)
