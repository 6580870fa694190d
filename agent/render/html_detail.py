"""The detailed parts of the HTML page: kernels with rules and sources, targets, impact, spread."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from agent.compare.cited import evidence_of
from agent.compare.figures import Millis, decimal
from agent.compare.impact import Impact
from agent.compare.replaced import Replacement
from agent.compare.rows import CategoryRow, KernelRow, Side
from agent.compare.sides import SideSummary
from agent.compare.table import TraceDiff
from agent.compare.targets import KernelTarget, TargetRule
from agent.core.proposals import Evidence
from agent.core.rules import GRADES, Rule
from agent.core.text import counted, shown_block
from agent.render.ordering import sorted_kernels
from agent.render.page import (
    Cell,
    figure,
    paragraph,
    plain_table,
    section,
    short_name,
    sortable,
    sortable_with_details,
    text,
    word,
)
from agent.render.phrases import (
    IMPACT_WORDS,
    calls_phrase,
    impact_figures,
    impact_title,
    kernel_target_phrase,
    longest,
    moved,
    noise_phrase,
    pinned_phrase,
    place_taken_phrase,
    ranks_phrase,
    replay_phrase,
    rule_phrase,
    summed,
    unpinned_phrase,
)
from agent.render.units import share

LEAST_EFFECT = Fraction(1, 1_000_000)


def kernel_table(row: CategoryRow, diff: TraceDiff, millis: Millis, top: int) -> str:
    """Give the kernels of a category with, for each, its rules and their source lines."""
    ordered = sorted_kernels(row.kernels)
    heads = ["kernel", "diff ms", "base calls", "new calls", "base us/call", "new us/call", ""]
    rows = [(_kernel(kernel, millis), _kernel_detail(kernel, diff)) for kernel in ordered[:top]]
    left = len(ordered) - len(rows)
    more = f"{left:,} more kernels with smaller differences are in the JSON report" if left else ""
    return sortable_with_details(f"Kernels of {row.category}", heads, rows) + paragraph(
        more, css="soft"
    )


def target_section(diff: TraceDiff, millis: Millis) -> str:
    """Say for each introduced or grown cost what undoing it saves at most and its source."""
    items = []
    for target in diff.targets:
        bound = f"{millis(target.bound_ns)} ms ({share(target.bound_ns, diff.new.kernel_ns)})"
        rules = "".join(_target_rule(rule) for rule in target.rules)
        nothing = "" if target.pinned else paragraph(unpinned_phrase(target), css="soft")
        items.append(
            f"<h3>{text(target.category)}: at most {text(bound)}, introduced category</h3>"
            f"{rules}{nothing}"
        )
    items += [_kernel_target(target, diff, millis) for target in diff.kernel_targets]
    if items:
        items.append(paragraph(pinned_phrase(diff), css="soft"))
    return section("Where to look", *items)


def _kernel_target(target: KernelTarget, diff: TraceDiff, millis: Millis) -> str:
    head = f"<h3>{text(kernel_target_phrase(target, diff, millis))}</h3>"
    name = f"<p><code>{text(target.row.name)}</code></p>"
    place_taken = (
        f"<p>{text(place_taken_phrase(target, millis))}, <code>{text(target.replaces)}</code></p>"
        if target.replaces
        else ""
    )
    rules = "".join(_target_rule(rule) for rule in target.rules)
    nothing = "" if target.pinned else paragraph(unpinned_phrase(target), css="soft")
    return f"{head}{name}{place_taken}{rules}{nothing}"


def impact_section(diff: TraceDiff, top: int) -> str:
    """Give the effects of duration and of calls, for categories and for kernels."""
    categories = [impact for impact in diff.impacts if moved(impact)]
    kernels = [one for one in diff.kernel_impacts if abs(one.effect) >= LEAST_EFFECT][:top]
    if not categories:
        return ""
    rows = [
        [Cell(text(impact.category), str(impact.category)), *_impact(impact)]
        for impact in categories
    ]
    words = [paragraph(f"{phrase}.") for phrase in (IMPACT_WORDS, calls_phrase(diff)) if phrase]
    parts = [*words, sortable("Impact of categories", ["category", *_EFFECTS], rows)]
    if kernels:
        heads = ["kernel", *_EFFECTS, "category"]
        rows = [
            [_name(impact.name, impact.became), *_impact(impact), word(impact.category)]
            for impact in kernels
        ]
        parts += ["<h3>Kernels on both sides</h3>", sortable("Impact of kernels", heads, rows)]
    return section(impact_title(diff).capitalize(), *parts)


_EFFECTS = ("effect on total", "per call x share", "calls", "per call", "share of time")


def _impact(impact: Impact) -> list[Cell]:
    of_time, per_call, by_call, by_calls, of_total = impact_figures(impact)
    return [
        figure(of_total, impact.effect),
        figure(by_call, impact.per_call_effect if by_call else None),
        figure(by_calls, impact.calls_effect),
        figure(per_call, impact.per_call),
        figure(of_time, impact.share),
    ]


def runs_section(diff: TraceDiff, millis: Millis) -> str:
    """Set the two runs side by side: sums, coverage, ranks, replays, devices."""
    heads = ["", "base", "new"]
    rows = [
        [Cell(text(name), ""), Cell(text(base), ""), Cell(text(new), "")]
        for name, base, new in zip(
            _RUN_FACTS, _run_facts(diff.base, millis), _run_facts(diff.new, millis), strict=True
        )
        if base or new
    ]
    return section("The two runs", plain_table("The two runs", heads, rows))


_RUN_FACTS = (
    "run",
    "kernels",
    "sum of kernels, ms",
    "busy, union of kernels, ms",
    "span, ms",
    "copies and fills",
    *GRADES,
    "unlabelled",
    "ranks",
    "graph replay and ops",
    "devices",
    "format",
)


def _run_facts(side: SideSummary, millis: Millis) -> list[str]:
    coverage = side.coverage
    return [
        side.name,
        f"{side.kernels:,}",
        summed(millis(side.kernel_ns), side),
        "" if side.busy_ns is None else summed(millis(side.busy_ns), side),
        "" if side.span_ns is None else longest(millis(side.span_ns), side),
        f"{side.copies.count:,}, {millis(side.copies.time_ns)} ms" if side.copies.count else "",
        *(share(getattr(coverage, grade), coverage.total) for grade in GRADES),
        share(coverage.unlabelled, coverage.total),
        ranks_phrase(side, millis),
        replay_phrase(side),
        ", ".join(side.devices),
        ", ".join(side.formats),
    ]


def noise_section(diff: TraceDiff, millis: Millis) -> str:
    """Give the spread over ranks or runs."""
    words = paragraph(noise_phrase(diff))
    if diff.noise.unit == "none":
        return section("Noise", words)
    heads = ["category", "low", "median", "high", "up : down", "by chance", "outside"]
    rows = [
        [
            Cell(text(spread.category), str(spread.category)),
            figure(millis(spread.delta.low, signed=True), spread.delta.low),
            figure(millis(spread.delta.median, signed=True), spread.delta.median),
            figure(millis(spread.delta.high, signed=True), spread.delta.high),
            figure(f"{spread.risen} : {spread.fallen}", spread.risen - spread.fallen),
            figure(f"1 in {decimal(1 / spread.chance, 0)}", spread.chance),
            _outside(spread.outside),
        ]
        for spread in sorted(diff.noise.spreads, key=lambda s: (-abs(s.delta.median), s.category))
    ]
    unit = diff.noise.unit.removesuffix("s")
    return section("Noise", words, sortable(f"Difference per {unit}, ms", heads, rows))


def alias_section(diff: TraceDiff) -> str:
    """List names matched after normalisation."""
    items = "".join(
        "<li>"
        + " = ".join(f"<code>{text(name)}</code>" for name in (*alias.base_names, *alias.new_names))
        + "</li>"
        for alias in diff.aliases
    )
    if not items:
        return ""
    names = counted(len(diff.aliases), "name")
    words = f"{names} matched after normalisation; rules saw the raw names."
    return section("Aliases", paragraph(words), f'<ul class="plain">{items}</ul>')


def _kernel(kernel: KernelRow, millis: Millis) -> list[Cell]:
    delta = millis(kernel.delta_ns, signed=True)
    return [
        _name(kernel.name),
        figure(delta, kernel.delta_ns),
        figure(f"{kernel.base.count:,}", kernel.base.count),
        figure(f"{kernel.new.count:,}", kernel.new.count),
        _per_call(kernel.base),
        _per_call(kernel.new),
        Cell(f'<span class="tag">{kernel.status}</span>', kernel.status),
    ]


def _kernel_detail(kernel: KernelRow, diff: TraceDiff) -> str:
    parts = [f"<p><code>{text(kernel.name)}</code></p>"]
    if kernel.ops:
        parts.append(f"<p>launched by <code>{text(', '.join(kernel.ops))}</code></p>")
    if kernel.replayed_ns:
        parts.append(paragraph("launched by graph replay, so op and dtypes are unknown"))
    spellings = sorted({*kernel.base_names, *kernel.new_names} - {kernel.name})
    parts += [f"<p>also spelled <code>{text(name)}</code></p>" for name in spellings]
    parts += [
        _succession(kernel, pair) for pair in diff.replacements if kernel in {pair.old, pair.new}
    ]
    rules = [diff.ruleset.by_id[rule_id] for rule_id in kernel.rules]
    names = (*kernel.base_names, *kernel.new_names)
    parts += [_rule(rule, names) for rule in rules] or [paragraph("no rule names this kernel")]
    return "".join(parts)


def _succession(kernel: KernelRow, pair: Replacement) -> str:
    if kernel == pair.old:
        return f"<p>suggestion: replaced by <code>{text(pair.new.name)}</code></p>"
    return f"<p>suggestion: in place of <code>{text(pair.old.name)}</code></p>"


def _rule(rule: Rule, kernels: Iterable[str]) -> str:
    evidence, relative = evidence_of(rule.evidence, kernels)
    return _cited(rule_phrase(rule, relative=relative), evidence)


def _target_rule(rule: TargetRule) -> str:
    return _cited(rule_phrase(rule, relative=rule.relative), rule.evidence)


def _cited(phrase: str, evidence: Iterable[Evidence]) -> str:
    return paragraph(phrase) + "".join(map(_evidence, evidence))


def _evidence(evidence: Evidence) -> str:
    inside = f" in <code>{text(evidence.symbol)}</code>" if evidence.symbol else ""
    guard = f" when <code>{text(evidence.guard)}</code>" if evidence.guard else ""
    lines = f"<pre>{_block(evidence.snippet)}</pre>" if evidence.snippet else ""
    return f"<p><code>{text(evidence.place)}</code>{inside}{guard}</p>{lines}"


def _block(snippet: str) -> str:
    return "\n".join(text(line) for line in shown_block(snippet).split("\n"))


def _name(name: str, became: str = "") -> Cell:
    then = f" → {short_name(became)} (suggestion)" if became else ""
    return Cell(f"{short_name(name)}{then}", name, name=True)


def _outside(outside: bool | None) -> Cell:  # noqa: FBT001 - three answers
    said = {True: "yes", False: "no", None: "cannot tell"}[outside]
    return Cell(said, said)


def _per_call(side: Side) -> Cell:
    per_call = side.per_call_ns
    if per_call is None:
        return figure("", None)
    return figure(decimal(per_call / 1_000, 2), per_call)
