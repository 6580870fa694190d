"""The comparison as Markdown that pastes into a pull request.

    diff_markdown(diff, *, top=10, sort="time") -> str

Names are escaped; the kernels of each category fold away in `<details>`.
"""

from __future__ import annotations

from fractions import Fraction

from agent.compare.contract import coverage_phrase, ruleset_phrase
from agent.compare.figures import fraction_of, percent
from agent.compare.parts import own_findings
from agent.compare.rows import CategoryRow, KernelRow, total_of
from agent.compare.sides import SideSummary
from agent.compare.table import TraceDiff
from agent.compare.targets import Cites, TargetRule
from agent.core.text import counted
from agent.render.markdown import cell, code, md_finding, md_table
from agent.render.ordering import Sort, sorted_kernels, sorted_rows
from agent.render.phrases import (
    IMPACT_WORDS,
    calls_phrase,
    headline,
    impact_figures,
    impact_title,
    kernel_target_phrase,
    ledger_title,
    more_targets_phrase,
    moved,
    named_row,
    noise_phrase,
    off_work,
    off_work_phrase,
    parts_rows,
    per_pass_phrase,
    pinned_phrase,
    place_taken_phrase,
    ranks_phrase,
    replay_phrase,
    rule_phrase,
    totals_phrase,
    unlike_phrase,
    unpinned_phrase,
)
from agent.render.units import Millis, millis_of, share
from agent.render.waterfall import diff_bars, raw_amounts


def diff_markdown(diff: TraceDiff, *, top: int = 10, sort: Sort = "time") -> str:
    """Write the whole comparison; `top` bounds the list of kernels, 0 leaves it out."""
    lines = _whole(diff, top, sort)
    if diff.parts:
        head, rows = parts_rows(diff)
        lines += ["", "### Part by part", "", *md_table(head, [[*map(cell, row)] for row in rows])]
    for name, part in diff.parts:
        lines += ["", *_part(name, part, diff, sort)]
    return "\n".join(lines) + "\n"


def _part(name: str, part: TraceDiff, whole: TraceDiff, sort: Sort) -> list[str]:
    """Write what a part has of its own: the rest stands with the whole."""
    millis = millis_of(part)
    lines = []
    for finding in own_findings(part, whole):
        lines += [md_finding(finding), ""]
    if said := unlike_phrase(part, whole):
        lines += [f"{cell(said[:1].upper() + said[1:])}.", ""]
    summary = f"{cell(name)}: {cell(headline(part, millis))}"
    return _folded(summary, [*lines, *_categories(part, millis, sort)])


def _whole(diff: TraceDiff, top: int, sort: Sort) -> list[str]:
    millis = millis_of(diff)
    sections = [
        _first(diff, millis),
        _categories(diff, millis, sort),
        _ledger(diff, millis),
        _targets(diff, millis, top),
        _impacts(diff),
        _kernels(diff, millis, top),
        _notes(diff, millis),
    ]
    lines: list[str] = []
    for section in filter(None, sections):
        lines += ["", *section] if lines else section
    return lines


def _first(diff: TraceDiff, millis: Millis) -> list[str]:
    lines = [f"### {cell(diff.base.name)} → {cell(diff.new.name)}: {cell(headline(diff, millis))}"]
    for finding in diff.findings:
        lines += ["", md_finding(finding)]
    return lines


def _categories(diff: TraceDiff, millis: Millis, sort: Sort) -> list[str]:
    per_pass = not diff.work.equal and diff.work.ratio is not None
    head = ["category", "base calls", "base ms", "new calls", "new ms", "diff ms", "diff %"]
    head += ["per pass"] if per_pass else []
    off = off_work(diff)
    rows = [
        [cell(named_row(row, off)), *_figures(row, diff, millis, per_pass=per_pass)]
        for row in sorted_rows(diff.categories, sort)
    ]
    if diff.categories:
        base, new = total_of(diff.categories)
        total = CategoryRow(diff.categories[0].category, base, new, ())
        rows.append(["**total**", *_figures(total, diff, millis, per_pass=per_pass)])
    return [
        *md_table(head, rows),
        *_said(off_work_phrase(off)),
        "",
        f"Residual {diff.residual_ns} ns.",
    ]


def _figures(row: CategoryRow, diff: TraceDiff, millis: Millis, *, per_pass: bool) -> list[str]:
    cells = [
        f"{row.base.count:,}",
        millis(row.base.time_ns),
        f"{row.new.count:,}",
        millis(row.new.time_ns),
        millis(row.delta_ns, signed=True),
        _relative(row, Fraction(1)),
    ]
    return [*cells, _relative(row, diff.work.scale)] if per_pass else cells


def _relative(row: CategoryRow, scale: Fraction) -> str:
    if row.status != "both":
        return f"*{row.status}*"
    if not row.base.time_ns:
        return ""
    return percent(fraction_of(row.new.time_ns, row.base.time_ns) / scale - 1)


def _ledger(diff: TraceDiff, millis: Millis) -> list[str]:
    if not diff.ledger.entries:
        return []
    bars = diff_bars(diff)
    both = diff.ledger_per_pass is not None
    raw = raw_amounts(diff, bars)
    head = [ledger_title(diff), *(["ms at equal work", "raw ms"] if both else ["ms"])]
    rows = []
    for bar in bars:
        text = f"**{cell(bar.text.strip())}**" if bar.sum else cell(bar.text.strip())
        amounts = [millis(bar.delta_ns, signed=True)]
        amounts += [millis(raw[bar.key], signed=True)] if both else []
        rows.append([text, *amounts])
    lines = md_table(head, rows)
    return [*lines, "", cell(per_pass_phrase(diff, millis))] if both else lines


def _targets(diff: TraceDiff, millis: Millis, top: int) -> list[str]:
    kernels = diff.kernel_targets[:top]
    if not (diff.targets or kernels):
        return []
    lines = ["Where to look (costs, what undoing each saves at most, and their source):", ""]
    cited: set[Cites] = set()
    for target in diff.targets:
        bound = f"{millis(target.bound_ns)} ms, {share(target.bound_ns, diff.new.kernel_ns)}"
        lines.append(f"- **{cell(target.category)}**: at most {bound}, introduced category")
        lines += _sources(target.rules, cited)
        lines += [] if target.pinned else [f"  - {unpinned_phrase(target)}"]
    for kernel in kernels:
        what = cell(kernel_target_phrase(kernel, diff, millis))
        lines.append(f"- {code(kernel.row.name)}, {what}")
        if kernel.replaces:
            lines.append(f"  - {place_taken_phrase(kernel, millis)}, {code(kernel.replaces)}")
        lines += _sources(kernel.rules, cited)
        lines += [] if kernel.pinned else [f"  - {unpinned_phrase(kernel)}"]
    if more := more_targets_phrase(diff, millis, top):
        lines.append(f"- {cell(more)}")
    return [*lines, *_said(pinned_phrase(diff))]


def _sources(rules: tuple[TargetRule, ...], cited: set[Cites]) -> list[str]:
    lines = []
    for rule in rules:
        again = rule.cites in cited and rule.evidence
        phrase = rule_phrase(rule, relative=rule.relative)
        lines.append(f"  - {cell(phrase)}{', cited above' if again else ''}")
        for evidence in () if again else rule.evidence:
            guard = f", when {code(evidence.guard)}" if evidence.guard else ""
            lines.append(f"    - {code(evidence.place, limit=400)}{guard}")
        cited.add(rule.cites)
    return lines


def _impacts(diff: TraceDiff) -> list[str]:
    rows = [
        [cell(impact.category), *impact_figures(impact)] for impact in diff.impacts if moved(impact)
    ]
    if not rows:
        return []
    head = ["impact", "share", "per call", "x share", "calls", "of the total"]
    words = [line for phrase in (IMPACT_WORDS, calls_phrase(diff)) for line in _said(phrase)]
    return _folded(
        f"{impact_title(diff).capitalize()}: effect on the total", [*md_table(head, rows), *words]
    )


def _said(phrase: str) -> list[str]:
    return ["", f"{cell(phrase)}."] if phrase else []


def _kernels(diff: TraceDiff, millis: Millis, top: int) -> list[str]:
    every = [kernel for row in diff.categories for kernel in row.kernels]
    moved = [kernel for kernel in sorted_kernels(every) if kernel.base != kernel.new]
    if not moved or not top:
        return []
    head = ["diff ms", "status", "base calls", "new calls", "category", "rule", "kernel"]
    rows = [_kernel(kernel, millis) for kernel in moved[:top]]
    lines = md_table(head, rows, left=(1, 4, 5))
    for pair in diff.replacements[:top]:
        old, new = code(pair.old.name), code(pair.new.name)
        where = cell(pair.old.category)
        lines += ["", f"Suggestion: in {where} {new} may have taken the place of {old}."]
    return _folded(f"Kernels: {len(moved)} of {len(every)} differ", lines)


def _kernel(kernel: KernelRow, millis: Millis) -> list[str]:
    return [
        millis(kernel.delta_ns, signed=True),
        kernel.status,
        f"{kernel.base.count:,}",
        f"{kernel.new.count:,}",
        cell(kernel.category),
        cell(", ".join(kernel.rules)),
        code(kernel.name),
    ]


def _notes(diff: TraceDiff, millis: Millis) -> list[str]:
    lines = [f"- Noise: {cell(noise_phrase(diff))}"]
    for role, side in (("Base", diff.base), ("New", diff.new)):
        lines += [f"- {role}: {phrase}" for phrase in _side(side, millis)]
    if diff.aliases:
        lines.append(f"- {counted(len(diff.aliases), 'name')} matched after normalisation")
    return [*lines, f"- {cell(ruleset_phrase(diff.ruleset))}"]


def _side(side: SideSummary, millis: Millis) -> list[str]:
    phrases = (
        f"{totals_phrase(side, millis)}; coverage {coverage_phrase(side.coverage)}",
        ranks_phrase(side, millis),
        replay_phrase(side),
    )
    return [cell(phrase) for phrase in phrases if phrase]


def _folded(summary: str, lines: list[str]) -> list[str]:
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>"]
