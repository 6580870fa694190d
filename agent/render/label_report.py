"""Reports on one run: text, Markdown, CSV.

    label_text(labelled, *, width=80, top=10, rollup=False, kernels=0) -> str
    label_markdown(labelled, *, top=10, rollup=False, kernels=0) -> str
    label_csv(labelled, *, rollup=False, kernels=False) -> str

JSON is `agent.render.documents.label_document`, a page `agent.render.html.label_html`.
"""

from __future__ import annotations

from agent.compare.contract import coverage_phrase, ruleset_cell, ruleset_phrase
from agent.compare.sides import SideSummary, summarise
from agent.core.rules import LabelledTrace
from agent.core.text import counted
from agent.render.columns import Column, finding_lines, name_lines, table, wrapped
from agent.render.delimited import csv_text
from agent.render.markdown import cell, code, md_finding, md_table
from agent.render.phrases import figures_phrase, ranks_phrase, replay_phrase, totals_phrase
from agent.render.selection import (
    label_categories,
    label_findings,
    label_kernels,
    top_unlabelled,
)
from agent.render.units import Millis, millis_of, share


def label_text(
    labelled: LabelledTrace,
    *,
    width: int = 80,
    top: int = 10,
    rollup: bool = False,
    kernels: int = 0,
) -> str:
    """Write the category table, the coverage contract and the top unlabelled kernels.

    `kernels` lists as many of each category, with the rule that labels them.
    """
    side = summarise(labelled)
    millis = millis_of(side)
    lines = wrapped(f"{side.name}: {totals_phrase(side, millis)}", width, rest="  ")
    lines += _facts(labelled, side, millis, width)
    lines += ["", *_category_table(labelled, side, millis, width, rollup=rollup)]
    lines += ["", *wrapped(f"coverage: {coverage_phrase(side.coverage)}", width, rest="  ")]
    lines += _top_unlabelled(labelled, side, millis, width, top)
    lines += _kernels(labelled, millis, width, kernels, rollup=rollup)
    return "\n".join(lines) + "\n"


def label_markdown(
    labelled: LabelledTrace, *, top: int = 10, rollup: bool = False, kernels: int = 0
) -> str:
    """Write the same as a Markdown document that pastes into a pull request."""
    side = summarise(labelled)
    millis = millis_of(side)
    lines = [f"### {cell(side.name)}", "", f"{totals_phrase(side, millis)}", ""]
    for phrase in (ranks_phrase(side, millis), replay_phrase(side)):
        lines += [cell(phrase), ""] if phrase else []
    for finding in label_findings(labelled, side):
        lines += [md_finding(finding), ""]
    rows = [
        [
            cell(row.category),
            f"{row.count:,}",
            millis(row.time_ns),
            share(row.time_ns, side.kernel_ns),
        ]
        for row in label_categories(labelled, rollup=rollup)
    ]
    rows.append(["**total**", f"{side.kernels:,}", millis(side.kernel_ns), ""])
    lines += md_table(["category", "calls", "ms", "share"], rows)
    lines += [
        "",
        f"Coverage: {coverage_phrase(side.coverage)}. {ruleset_phrase(labelled.ruleset)}.",
    ]
    unlabelled = top_unlabelled(labelled, top)
    if unlabelled:
        lines += ["", "Top unlabelled kernels:", ""]
        lines += md_table(
            ["share", "ms", "calls", "kernel"],
            [
                [
                    share(row.time_ns, side.kernel_ns),
                    millis(row.time_ns),
                    f"{row.count:,}",
                    code(row.name),
                ]
                for row in unlabelled
            ],
        )
    lines += _kernel_table(labelled, millis, kernels, rollup=rollup)
    return "\n".join(lines) + "\n"


def label_csv(labelled: LabelledTrace, *, rollup: bool = False, kernels: bool = False) -> str:
    """Write one line per category, or per kernel with its rule, in nanoseconds."""
    categories = label_categories(labelled, rollup=rollup)
    rules = ruleset_cell(labelled.ruleset)
    if not kernels:
        rows = [(str(row.category), row.count, row.time_ns, rules) for row in categories]
        return csv_text(("category", "count", "time_ns", "rules"), rows)
    named = label_kernels(labelled, rollup=rollup)
    return csv_text(
        ("category", "kernel", "rule", "count", "time_ns", "rules"),
        [
            (str(row.category), one.name, str(one.rule or ""), one.count, one.time_ns, rules)
            for row in categories
            for one in named[row.category]
        ],
    )


def _kernel_table(
    labelled: LabelledTrace, millis: Millis, kernels: int, *, rollup: bool
) -> list[str]:
    if not kernels:
        return []
    named = label_kernels(labelled, rollup=rollup)
    rows = [
        [
            cell(row.category),
            cell(one.rule or ""),
            millis(one.time_ns),
            f"{one.count:,}",
            code(one.name),
        ]
        for row in label_categories(labelled, rollup=rollup)
        for one in named[row.category][:kernels]
    ]
    head = ["category", "rule", "ms", "calls", "kernel"]
    return ["", "Kernels:", "", *md_table(head, rows, left=(0, 1))]


def _kernels(
    labelled: LabelledTrace, millis: Millis, width: int, kernels: int, *, rollup: bool
) -> list[str]:
    if not kernels:
        return []
    named = label_kernels(labelled, rollup=rollup)
    said = "kernels of each category and the rule that labels them"
    lines = ["", *wrapped(said, width, rest="  ")]
    for row in label_categories(labelled, rollup=rollup):
        more = len(named[row.category]) - kernels
        left = f", {more:,} more not shown" if more > 0 else ""
        lines += wrapped(f"{row.category}{left}", width, first="  ", rest="    ")
        for one in named[row.category][:kernels]:
            rule = f"rule {one.rule}" if one.rule else "no rule"
            figures = f"{millis(one.time_ns)} ms, {counted(one.count, 'call')}, {rule}"
            lines += wrapped(figures, width, first="    ", rest="      ")
            lines += name_lines(one.name, width, indent=6)
    return lines


def _facts(labelled: LabelledTrace, side: SideSummary, millis: Millis, width: int) -> list[str]:
    phrases = [
        figures_phrase(side),
        ranks_phrase(side, millis),
        replay_phrase(side),
        ruleset_phrase(labelled.ruleset),
    ]
    lines = []
    for phrase in phrases:
        lines += wrapped(phrase, width, first="  ", rest="    ") if phrase else []
    for finding in label_findings(labelled, side):
        lines += finding_lines(finding, width)
    return lines


def _category_table(
    labelled: LabelledTrace, side: SideSummary, millis: Millis, width: int, *, rollup: bool
) -> list[str]:
    columns = (
        Column("category", "left", flexible=True),
        Column("calls"),
        Column("ms"),
        Column("share"),
    )
    rows = [
        [row.category, f"{row.count:,}", millis(row.time_ns), share(row.time_ns, side.kernel_ns)]
        for row in label_categories(labelled, rollup=rollup)
    ]
    rows.append(["total", f"{side.kernels:,}", millis(side.kernel_ns), ""])
    return table(columns, rows, width)


def _top_unlabelled(
    labelled: LabelledTrace, side: SideSummary, millis: Millis, width: int, top: int
) -> list[str]:
    unlabelled = top_unlabelled(labelled, top)
    if not unlabelled:
        return []
    lines = ["", "top unlabelled kernels"]
    for row in unlabelled:
        ops = f", op {', '.join(row.ops)}" if row.ops else ""
        of_total = share(row.time_ns, side.kernel_ns)
        lines += wrapped(
            f"{of_total}, {millis(row.time_ns)} ms, {counted(row.count, 'call')}{ops}",
            width,
            first="  ",
            rest="    ",
        )
        lines += name_lines(row.name, width)
    return lines
