"""The comparison, or one run, as a single HTML page that opens offline.

    diff_html(diff, *, top=200, sort="time") -> str
    label_html(labelled, *, top=50, rollup=False, kernels=200) -> str

From a category to its kernels to the rules and source lines that name them; every list sorts.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from agent.compare.contract import coverage_phrase, ruleset_phrase
from agent.compare.figures import fraction_of, percent
from agent.compare.parts import own_findings
from agent.compare.rows import CategoryRow, total_of
from agent.compare.sides import SideSummary, summarise
from agent.compare.table import TraceDiff
from agent.core.proposals import Finding
from agent.core.rules import LabelledTrace
from agent.core.text import counted
from agent.render.html_detail import (
    alias_section,
    impact_section,
    kernel_table,
    noise_section,
    runs_section,
    target_section,
)
from agent.render.ordering import Sort, sorted_rows
from agent.render.page import (
    Cell,
    figure,
    page,
    paragraph,
    section,
    sortable,
    sortable_with_details,
    text,
    word,
)
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
from agent.render.selection import (
    LabelledKernel,
    label_categories,
    label_findings,
    label_kernels,
    top_unlabelled,
)
from agent.render.svg import waterfall_figure
from agent.render.units import Millis, millis_of, share

BROAD, SLIM = 1130, 376
IMPACTS = 25


def diff_html(diff: TraceDiff, *, top: int = 200, sort: Sort = "time") -> str:
    """Write the comparison; `top` bounds the kernels listed for one category."""
    title = f"{diff.base.name} → {diff.new.name}"
    contents = [f"<h1>{text(title)}</h1>", *_whole(diff, top, sort)]
    if diff.parts:
        contents.append(section("Part by part", _parts_table(diff)))
    for number, (name, part) in enumerate(diff.parts):
        contents += [f'<h2 id="part-{number}">{text(name)}</h2>', *_part(part, diff, top, sort)]
    contents.append(f"<footer>label-agent diff · {text(ruleset_phrase(diff.ruleset))}</footer>")
    return page(f"label-agent: {title}", contents)


def label_html(
    labelled: LabelledTrace, *, top: int = 50, rollup: bool = False, kernels: int = 200
) -> str:
    """Write one run; `top` bounds the unlabelled kernels, `kernels` those of one category."""
    side = summarise(labelled)
    millis = millis_of(side)
    contents = [
        f"<h1>{text(side.name)}</h1>",
        *_notes(label_findings(labelled, side)),
        _side(side, millis),
        section(
            "Categories",
            '<button type="button" class="every">Open all</button>',
            _label_table(labelled, side, millis, kernels, rollup=rollup),
        ),
        section("Unlabelled kernels", _unlabelled_table(labelled, side, millis, top)),
        f"<footer>label-agent label · {text(ruleset_phrase(labelled.ruleset))}</footer>",
    ]
    return page(f"label-agent: {side.name}", contents)


def _whole(diff: TraceDiff, top: int, sort: Sort) -> list[str]:
    millis = millis_of(diff)
    return [
        paragraph(headline(diff, millis), css="lead"),
        *_notes(diff.findings),
        _tiles(diff, millis),
        section(_ledger_head(diff), _waterfall(diff, millis)),
        target_section(diff, millis),
        section(
            "Categories",
            '<button type="button" class="every">Open all</button>',
            _category_table(diff, millis, top, sort),
        ),
        impact_section(diff, min(top, IMPACTS)),
        noise_section(diff, millis),
        alias_section(diff),
        runs_section(diff, millis),
    ]


def _parts_table(diff: TraceDiff) -> str:
    """Set the parts below each other, each with a link to its table."""
    (first, base_ms, new_ms, diff_ms, change), shown = parts_rows(diff)
    rows = []
    for number, ((name, part), words) in enumerate(zip(diff.parts, shown, strict=True)):
        _, base, new, delta, changed = words
        effect = part.work.total.per_pass if part.conclusive else None
        rows.append(
            [
                Cell(f'<a href="#part-{number}">{text(name)}</a>', f"{number:09d}"),
                figure(changed, effect),
                figure(delta, part.delta_ns),
                figure(base, part.base.kernel_ns),
                figure(new, part.new.kernel_ns),
            ]
        )
    heads = [first, change, diff_ms, base_ms, new_ms]
    return sortable("Part by part", heads, rows)


def _part(part: TraceDiff, whole: TraceDiff, top: int, sort: Sort) -> list[str]:
    """Write what a part has of its own: the rest stands with the whole."""
    millis = millis_of(part)
    return [
        paragraph(headline(part, millis), css="lead"),
        *_notes(own_findings(part, whole)),
        paragraph(unlike_phrase(part, whole), css="soft"),
        f"<section>{_category_table(part, millis, top, sort)}</section>",
    ]


def _notes(findings: Iterable[Finding]) -> list[str]:
    notes = []
    for finding in findings:
        hint = f"<br>{text(finding.hint)}" if finding.hint else ""
        notes.append(
            f'<div class="note" role="note"><b>{text(finding.code)}</b>'
            f" {text(finding.message)}{hint}</div>"
        )
    return notes


def _tiles(diff: TraceDiff, millis: Millis) -> str:
    work = diff.work
    tiles = [
        ("base", f"{millis(diff.base.kernel_ns)} ms", f"{diff.base.kernels:,} kernels"),
        ("new", f"{millis(diff.new.kernel_ns)} ms", f"{diff.new.kernels:,} kernels"),
        (
            "raw",
            percent(work.total.raw) if diff.base.kernel_ns else "-",
            f"{millis(diff.delta_ns, signed=True)} ms",
        ),
    ]
    if work.total.equal_ns is not None and work.total.per_pass is not None and not work.equal:
        scaled = f"{millis(work.total.equal_ns, signed=True)} ms at the base's work"
        tiles.append(("per pass", percent(work.total.per_pass), scaled))
    cells = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd><dd>{text(more)}</dd></div>"
        for name, value, more in tiles
    )
    return f'<dl class="tiles">{cells}</dl>'


def _ledger_head(diff: TraceDiff) -> str:
    unit = "ms at equal work" if diff.ledger_per_pass else "ms"
    return f"{ledger_title(diff).capitalize()}, {unit}"


def _waterfall(diff: TraceDiff, millis: Millis) -> str:
    broad, slim = waterfall_figure(diff, width=BROAD), waterfall_figure(diff, width=SLIM)
    words = per_pass_phrase(diff, millis) if diff.ledger_per_pass else ""
    return (
        f'<figure><div class="broad">{broad}</div><div class="slim">{slim}</div></figure>'
        f"{paragraph(words, css='soft')}"
    )


def _category_table(diff: TraceDiff, millis: Millis, top: int, sort: Sort) -> str:
    per_pass = not diff.work.equal and diff.work.ratio is not None
    heads = ["category", "diff ms", *(["per pass %", "raw %"] if per_pass else ["diff %"])]
    heads += ["base ms", "new ms", "base calls", "new calls"]
    off = off_work(diff)
    rows: list[tuple[list[Cell], str]] = [
        (_category(row, named_row(row, off), diff, millis), kernel_table(row, diff, millis, top))
        for row in sorted_rows(diff.categories, sort)
    ]
    base, new = total_of(diff.categories)
    total = (
        f"total {millis(base.time_ns)} ms in {counted(base.count, 'call')}, then"
        f" {millis(new.time_ns)} ms in {counted(new.count, 'call')}; residual {diff.residual_ns} ns"
    )
    words = paragraph(off_work_phrase(off), css="soft") + paragraph(total, css="soft")
    return sortable_with_details("Categories", heads, rows) + words


def _category(row: CategoryRow, named: str, diff: TraceDiff, millis: Millis) -> list[Cell]:
    tag = f' <span class="tag">{row.status}</span>' if row.status != "both" else ""
    name = Cell(f"<span>{text(named)}</span>{tag}", str(row.category))
    delta = millis(row.delta_ns, signed=True)
    if diff.work.equal or diff.work.ratio is None:
        changes = [coloured(delta, row.delta_ns), _relative(row, Fraction(1))]
    else:
        raw = _relative(row, Fraction(1), plain=True)
        changes = [figure(delta, row.delta_ns), _relative(row, diff.work.scale), raw]
    return [
        name,
        *changes,
        figure(millis(row.base.time_ns), row.base.time_ns),
        figure(millis(row.new.time_ns), row.new.time_ns),
        figure(f"{row.base.count:,}", row.base.count),
        figure(f"{row.new.count:,}", row.new.count),
    ]


def coloured(shown_as: str, value: int | Fraction) -> Cell:
    """Give a signed figure in the colour of a cost or a saving."""
    css = "up" if value > 0 else "down" if value < 0 else ""
    plain = figure(shown_as, value)
    return Cell(f'<span class="{css}">{plain.html}</span>', plain.sort, number=True)


def _relative(row: CategoryRow, scale: Fraction, *, plain: bool = False) -> Cell:
    """Give the relative change; `plain` for a raw one, which unequal work makes meaningless."""
    if row.status != "both" or not row.base.time_ns:
        return figure("" if row.status == "both" else row.status, None)
    change = fraction_of(row.new.time_ns, row.base.time_ns) / scale - 1
    return figure(percent(change), change) if plain else coloured(percent(change), change)


def _side(side: SideSummary, millis: Millis) -> str:
    phrases = [
        totals_phrase(side, millis),
        f"coverage: {coverage_phrase(side.coverage)}",
        ranks_phrase(side, millis),
        replay_phrase(side),
        f"devices: {', '.join(side.devices)}" if side.devices else "",
    ]
    items = "".join(f"<li>{text(phrase)}</li>" for phrase in phrases if phrase)
    return f'<ul class="plain">{items}</ul>'


def _label_table(
    labelled: LabelledTrace, side: SideSummary, millis: Millis, kernels: int, *, rollup: bool
) -> str:
    named = label_kernels(labelled, rollup=rollup)
    rows: list[tuple[list[Cell], str]] = [
        (
            [
                Cell(f"<span>{text(row.category)}</span>", str(row.category)),
                figure(f"{row.count:,}", row.count),
                figure(millis(row.time_ns), row.time_ns),
                figure(share(row.time_ns, side.kernel_ns), row.time_ns),
            ],
            _labelled_table(row.category, named[row.category], side, millis, kernels),
        )
        for row in label_categories(labelled, rollup=rollup)
    ]
    return sortable_with_details("Categories", ["category", "calls", "ms", "share"], rows)


def _labelled_table(
    category: str,
    named: tuple[LabelledKernel, ...],
    side: SideSummary,
    millis: Millis,
    kernels: int,
) -> str:
    rows = [
        [
            Cell(f"<code>{text(one.name)}</code>", one.name, name=True),
            figure(f"{one.count:,}", one.count),
            figure(millis(one.time_ns), one.time_ns),
            figure(share(one.time_ns, side.kernel_ns), one.time_ns),
            word(one.rule or "no rule"),
        ]
        for one in named[:kernels]
    ]
    left = len(named) - len(rows)
    more = f"{left:,} more kernels with less time are in the JSON report" if left else ""
    heads = ["kernel", "calls", "ms", "share", "rule"]
    return sortable(f"Kernels of {category}", heads, rows) + paragraph(more, css="soft")


def _unlabelled_table(labelled: LabelledTrace, side: SideSummary, millis: Millis, top: int) -> str:
    rows = [
        [
            Cell(f"<code>{text(row.name)}</code>", row.name, name=True),
            figure(f"{row.count:,}", row.count),
            figure(millis(row.time_ns), row.time_ns),
            figure(share(row.time_ns, side.kernel_ns), row.time_ns),
        ]
        for row in top_unlabelled(labelled, top)
    ]
    return sortable("Unlabelled kernels", ["kernel", "calls", "ms", "share"], rows) if rows else ""
