"""The detailed sections of the comparison as text: targets, impact, kernels, spread, aliases."""

from __future__ import annotations

from agent.compare.figures import decimal
from agent.compare.impact import Impact
from agent.compare.noise import Spread
from agent.compare.rows import KernelRow
from agent.compare.table import TraceDiff
from agent.compare.targets import Cites, TargetRule
from agent.core.text import counted
from agent.render.columns import Column, name_lines, table, wrapped
from agent.render.ordering import sorted_kernels
from agent.render.phrases import (
    IMPACT_WORDS,
    calls_phrase,
    impact_figures,
    impact_title,
    kernel_target_phrase,
    micros,
    more_targets_phrase,
    moved,
    noise_phrase,
    pinned_phrase,
    place_taken_phrase,
    rule_phrase,
    rules_phrase,
    unpinned_phrase,
)
from agent.render.units import Millis, effect, share


def targets(diff: TraceDiff, millis: Millis, width: int, top: int) -> list[str]:
    """Say for each introduced or grown cost what undoing it saves at most and where it is."""
    kernels = diff.kernel_targets[:top]
    if not (diff.targets or kernels):
        return []
    lines = wrapped(
        "where to look: costs, what undoing each saves at most, and their source", width, rest="  "
    )
    cited: set[Cites] = set()
    for target in diff.targets:
        bound = f"{millis(target.bound_ns)} ms ({share(target.bound_ns, diff.new.kernel_ns)})"
        lines += wrapped(
            f"{target.category}: at most {bound}, introduced category",
            width,
            first="  ",
            rest="    ",
        )
        lines += _sources(target.rules, cited, width)
        if not target.pinned:
            lines += wrapped(unpinned_phrase(target), width, first="    ")
    for kernel in kernels:
        lines += wrapped(kernel_target_phrase(kernel, diff, millis), width, first="  ", rest="    ")
        lines += name_lines(kernel.row.name, width, limit=2)
        if kernel.replaces:
            lines += wrapped(place_taken_phrase(kernel, millis), width, first="    ")
            lines += name_lines(kernel.replaces, width, indent=6, limit=2)
        lines += _sources(kernel.rules, cited, width)
        if not kernel.pinned:
            lines += wrapped(unpinned_phrase(kernel), width, first="    ")
    for said in filter(None, (more_targets_phrase(diff, millis, top), pinned_phrase(diff))):
        lines += wrapped(said, width, first="  ", rest="    ")
    return lines


def _sources(rules: tuple[TargetRule, ...], cited: set[Cites], width: int) -> list[str]:
    """Give rules and their source lines; those cited before are not given again."""
    lines = []
    for rule in rules:
        again = rule.cites in cited and rule.evidence
        phrase = rule_phrase(rule, relative=rule.relative)
        phrase = f"{phrase}, cited above" if again else phrase
        lines += wrapped(phrase, width, first="    ", rest="      ")
        for evidence in () if again else rule.evidence:
            guard = f", when {evidence.guard}" if evidence.guard else ""
            lines += wrapped(f"{evidence.place}{guard}", width, first="      ", rest="        ")
        cited.add(rule.cites)
    return lines


def impacts(diff: TraceDiff, width: int, top: int) -> list[str]:
    """Give the effects of duration and of calls for the categories and the top kernels."""
    categories = [impact for impact in diff.impacts if moved(impact)]
    if not categories:
        return []
    columns = [
        Column(impact_title(diff), "left", flexible=True),
        Column("share", spare=1),
        Column("per call", spare=2),
        Column("x share", spare=3),
        Column("calls", spare=3),
        Column("of total"),
    ]
    lines = table(columns, list(map(_impact_cells, categories)), width)
    for phrase in (IMPACT_WORDS, calls_phrase(diff)):
        lines += wrapped(phrase, width, first="  ", rest="    ") if phrase else []
    for impact in [impact for impact in diff.kernel_impacts if moved(impact)][:top]:
        lines += wrapped(_impact_text(impact), width, first="  ", rest="    ")
        lines += name_lines(impact.name, width, limit=2)
        if impact.became:
            lines += ["    ->", *name_lines(impact.became, width, limit=2)]
    return lines


def kernels(diff: TraceDiff, millis: Millis, width: int, top: int) -> list[str]:
    """List the kernels with the largest differences, then suggested successions."""
    every = [kernel for row in diff.categories for kernel in row.kernels]
    moved = [kernel for kernel in sorted_kernels(every) if kernel.base != kernel.new]
    if not moved or not top:
        return []
    said = f"kernels: {len(moved):,} of {len(every):,} differ; the largest differences"
    lines = wrapped(said, width, rest="  ")
    for kernel in moved[:top]:
        lines += wrapped(_kernel_text(kernel, millis), width, first="  ", rest="    ")
        lines += name_lines(kernel.name, width)
    for pair in diff.replacements[:top]:
        text = f"suggestion: in {pair.old.category} one kernel may have taken the other's place"
        before, after = micros(pair.old.base), micros(pair.new.new)
        change = pair.impact(diff.against)
        figures = f"per call {before} -> {after}, {effect(change.effect)} of the total"
        lines += wrapped(f"{text}; {figures}", width, first="  ", rest="    ")
        lines += name_lines(pair.old.name, width, limit=2)
        lines += ["    ->", *name_lines(pair.new.name, width, limit=2)]
    return lines


def noise(diff: TraceDiff, millis: Millis, width: int) -> list[str]:
    """Give the spread and which differences stand outside it."""
    lines = wrapped(f"noise: {noise_phrase(diff)}", width, rest="  ")
    if diff.noise.unit == "none" or diff.empty:
        return lines
    unit = diff.noise.unit.removesuffix("s")
    columns = [
        Column(f"diff per {unit}, ms", "left", flexible=True),
        Column("low", spare=1),
        Column("median"),
        Column("high", spare=1),
        Column("up:down", spare=2),
        Column("chance", spare=3),
        Column("outside", "left"),
    ]
    spreads = sorted(diff.noise.spreads, key=lambda s: (-abs(s.delta.median), s.category))
    return [*lines, *table(columns, [_spread_cells(spread, millis) for spread in spreads], width)]


def aliases(diff: TraceDiff, width: int, top: int) -> list[str]:
    """List the names matched after normalisation."""
    if not diff.aliases:
        return []
    names = counted(len(diff.aliases), "name")
    lines = wrapped(f"{names} matched after normalisation (rules saw the raw names)", width)
    for alias in diff.aliases[:top]:
        for name in alias.base_names:
            lines += name_lines(name, width, indent=2)
        for name in alias.new_names:
            lines += ["  =", *name_lines(name, width)]
    return lines


def _impact_cells(impact: Impact) -> list[str]:
    return [f"  {impact.category}", *impact_figures(impact)]


def _impact_text(impact: Impact) -> str:
    of_time, per_call, by_call, by_calls, of_total = impact_figures(impact)
    product = f"{per_call} per call x {of_time} share"
    if impact.calls_effect:
        calls = f"{impact.base.count:,} -> {counted(impact.new.count, 'call')}"
        product = f"{by_call} ({product}) {_added(by_calls)} ({calls})"
    what = "suggested successor, " if impact.became else ""
    return f"{of_total} of the total = {product}, {what}{impact.category}"


def _added(signed: str) -> str:
    return f"{signed[0]} {signed[1:]}" if signed[0] in "+-" else f"+ {signed}"


def _kernel_text(kernel: KernelRow, millis: Millis) -> str:
    calls = f"{kernel.base.count:,} -> {counted(kernel.new.count, 'call')}"
    per_call = f"per call {micros(kernel.base)} -> {micros(kernel.new)}"
    if kernel.status == "new":
        calls, per_call = counted(kernel.new.count, "call"), f"per call {micros(kernel.new)}"
    elif kernel.status == "gone":
        calls, per_call = counted(kernel.base.count, "call"), f"per call {micros(kernel.base)}"
    status = "" if kernel.status == "both" else f" ({kernel.status})"
    delta = millis(kernel.delta_ns, signed=True)
    return f"{delta} ms, {kernel.category}{status}, {calls}, {per_call}, {rules_phrase(kernel)}"


def _spread_cells(spread: Spread, millis: Millis) -> list[str]:
    outside = {True: "yes", False: "no", None: "cannot tell"}[spread.outside]
    chance = "1 in 1" if spread.chance == 1 else f"1 in {decimal(1 / spread.chance, 0)}"
    return [
        f"  {spread.category}",
        millis(spread.delta.low, signed=True),
        millis(spread.delta.median, signed=True),
        millis(spread.delta.high, signed=True),
        f"{spread.risen}:{spread.fallen}",
        chance,
        outside,
    ]
