"""Compare two labelled traces: `compare_traces(base, new) -> TraceDiff`.

    compare_traces(base, new, *, rollup=False, by="", allow_incomplete=False,
                   repeats=((), ())) -> TraceDiff

What it holds is exact: rows add up to the events in nanoseconds, fractions are `Fraction`s. What
is to be said first (not comparable, incomplete capture, unequal work) stands first in `findings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from agent.compare.aliases import Alias, match_aliases
from agent.compare.bounds import (
    INCOMPARABLE,
    INCOMPLETE,
    are_corrupt,
    bounds_within,
    has_any,
    without_spent_hints,
)
from agent.compare.capture import Capture, capture_findings, examine_captures, read_findings
from agent.compare.comparable import comparability_findings, unresolved_findings
from agent.compare.impact import Against, Impact, by_effect, category_impacts, kernel_impacts
from agent.compare.ledger import Ledger, build_ledger
from agent.compare.noise import Noise, measure_noise
from agent.compare.notes import hidden_findings, work_findings
from agent.compare.phases import By, as_by, split
from agent.compare.repeats import distinct_runs
from agent.compare.replaced import Replacement, suggest_replacements
from agent.compare.rows import CategoryRow, category_rows, kernel_rows, total_of
from agent.compare.sides import SideSummary, summarise
from agent.compare.strangers import stranger_findings
from agent.compare.targets import KernelTarget, Target, find_kernel_targets, find_targets
from agent.compare.work import Work, compare_work
from agent.core.frames import Tabular
from agent.core.kernels import Trace
from agent.core.proposals import Finding
from agent.core.rules import LabelledTrace, RuleSet
from agent.core.text import shown
from agent.errors import UsageError


@dataclass(frozen=True, repr=False)
class TraceDiff(Tabular):
    """Everything a report on two traces says.

    `categories` are ordered by time over both sides; `findings` by what must be said first. As a
    table: one row for each kernel of each category. `parts` are comparisons themselves; `bounds`
    are findings of the whole that forbid a conclusion from a part, and stand in its `findings` too.
    """

    base: SideSummary
    new: SideSummary
    ruleset: RuleSet
    categories: tuple[CategoryRow, ...]
    work: Work
    ledger: Ledger
    ledger_per_pass: Ledger | None
    impacts: tuple[Impact, ...]
    kernel_impacts: tuple[Impact, ...]
    targets: tuple[Target, ...]
    kernel_targets: tuple[KernelTarget, ...]
    replacements: tuple[Replacement, ...]
    aliases: tuple[Alias, ...]
    noise: Noise
    findings: tuple[Finding, ...]
    rollup: bool = False
    parts: tuple[tuple[str, TraceDiff], ...] = field(default=())
    bounds: tuple[Finding, ...] = field(default=())

    def __repr__(self) -> str:
        """Give one line: the runs, the difference of their sums, the rules."""
        names = f"{shown(self.base.name)} -> {shown(self.new.name)}"
        rules = f"{shown(self.ruleset.name)}@{self.ruleset.version}"
        return f"<TraceDiff {names}: {self.delta_ns:+,} ns, rules {rules}>"

    @property
    def delta_ns(self) -> int:
        """New total minus base total."""
        return self.new.kernel_ns - self.base.kernel_ns

    @property
    def residual_ns(self) -> int:
        """What the rows and the ledger leave unexplained of both totals; always 0."""
        base, new = total_of(self.categories)
        off = abs(base.time_ns - self.base.kernel_ns) + abs(new.time_ns - self.new.kernel_ns)
        return off + abs(self.ledger.net_ns - self.delta_ns)

    @property
    def against(self) -> Against:
        """What impacts are measured against."""
        return Against(self.base.kernel_ns, self.new.kernel_ns, self.work.scale)

    @property
    def empty(self) -> bool:
        """Tell whether the two sides hold the same kernels with the same counts and times."""
        return all(kernel.base == kernel.new for row in self.categories for kernel in row.kernels)

    def columns(self) -> dict[str, list[Any]]:
        """Give the kernels with both sides' sums as columns, in the order of the report."""
        kernels = [kernel for row in self.categories for kernel in row.kernels]
        return {
            "category": [str(kernel.category) for kernel in kernels],
            "kernel": [kernel.name for kernel in kernels],
            "status": [kernel.status for kernel in kernels],
            "base_count": [kernel.base.count for kernel in kernels],
            "base_time_ns": [kernel.base.time_ns for kernel in kernels],
            "new_count": [kernel.new.count for kernel in kernels],
            "new_time_ns": [kernel.new.time_ns for kernel in kernels],
            "delta_ns": [kernel.delta_ns for kernel in kernels],
        }

    def _repr_html_(self) -> str:
        """Show the category table in a notebook."""
        from agent.compare.notebook import notebook_html  # only here: elsewhere no HTML is made

        return notebook_html(
            self.findings,
            self.categories,
            scale=self.work.scale,
            labelled=(self.ruleset, self.base.coverage, self.new.coverage),
        )

    @property
    def comparable(self) -> bool:
        """Tell whether nothing forbids a comparison of the two runs."""
        return not has_any(self.findings, INCOMPARABLE)

    @property
    def corrupt(self) -> bool:
        """Tell whether durations of a side, or of the whole that this is a part of, are corrupt."""
        return are_corrupt((self.base.capture, self.new.capture), self.bounds)

    @property
    def conclusive(self) -> bool:
        """Tell whether costs and savings may be claimed."""
        return not (self.corrupt or has_any(self.findings, INCOMPARABLE | INCOMPLETE))


def compare_traces(
    base: LabelledTrace,
    new: LabelledTrace,
    *,
    rollup: bool = False,
    by: str = "",
    allow_incomplete: bool = False,
    repeats: tuple[Sequence[LabelledTrace], Sequence[LabelledTrace]] = ((), ()),
) -> TraceDiff:
    """Compare two runs labelled by the same rules.

    Args:
        base: the run before the change.
        new: the run after it.
        rollup: fold categories into their coarser rows.
        by: `stage`, `rank` or `stream`: compare these parts of both runs as well.
        allow_incomplete: compare although a side was salvaged from a damaged file.
        repeats: further runs of the base and of the new side; they only tell the spread.

    Raises:
        UsageError: DF001 the rule sets differ; DF002 a side is incomplete; DF004 a run does not
            tell the parts apart; DF005 one side alone is repeated.
    """
    if any(repeats) and not all(repeats):
        raise UsageError(
            "DF005",
            "only one side is repeated, so that its spread has nothing to be held against",
            hint="give --base-repeat and --new-repeat, three or more of each",
        )
    for labelled in (*repeats[0], new, *repeats[1]):
        _same_rules(base, labelled)
    if not allow_incomplete:
        _require_complete(base.trace, new.trace)
    befores, base_again = distinct_runs((base, *repeats[0]), "base")
    afters, new_again = distinct_runs((new, *repeats[1]), "new")
    whole = _compare(befores, afters, rollup=rollup)
    strangers = (*stranger_findings(base.trace, "base"), *stranger_findings(new.trace, "new"))
    whole = replace(whole, findings=(*strangers, *whole.findings, *base_again, *new_again))
    chosen = as_by(by)
    if chosen is None:
        return whole
    bounds = bounds_within(whole.findings, chosen, corrupt=whole.corrupt)
    parts, findings = _compare_parts(base, new, chosen, bounds, rollup=rollup)
    return replace(
        whole, parts=parts, findings=(*without_spent_hints(whole.findings, chosen), *findings)
    )


def _compare(
    befores: Sequence[LabelledTrace],
    afters: Sequence[LabelledTrace],
    bounds: tuple[Finding, ...] = (),
    *,
    rollup: bool,
) -> TraceDiff:
    base, new = befores[0], afters[0]
    kernels, aliases = match_aliases(kernel_rows(base, new, rollup=rollup))
    rows = category_rows(kernels)
    captures = examine_captures(base.trace, new.trace)
    counted = not (has_any(bounds, INCOMPLETE) or any(capture.gaps for capture in captures))
    corrupt = are_corrupt(captures, bounds)
    claimed = counted and not corrupt
    work = compare_work(base.trace, new.trace, rows, counted=counted)
    replacements = suggest_replacements(rows, work.scale)
    totals = (base.trace.kernel_ns, new.trace.kernel_ns)
    against = Against(*totals, work.scale)
    scaled = build_ledger(rows, ratio=work.scale, claimed=claimed)
    found = _findings(base, new, rows, work, captures, counted=counted)
    findings = (*bounds, *(one for one in found if not has_any(bounds, {one.code})))
    diff = TraceDiff(
        base=summarise(base, captures[0]),
        new=summarise(new, captures[1]),
        ruleset=base.ruleset,
        categories=rows,
        work=work,
        ledger=build_ledger(rows, claimed=claimed),
        ledger_per_pass=None if work.scale == 1 else scaled,
        impacts=category_impacts(rows, against),
        kernel_impacts=by_effect(
            (*kernel_impacts(kernels, against), *(pair.impact(against) for pair in replacements))
        ),
        targets=find_targets(rows, new, rollup=rollup),
        kernel_targets=find_kernel_targets(rows, new, replacements, scale=work.scale, rollup=rollup)
        if not (corrupt or has_any(findings, INCOMPARABLE | INCOMPLETE))
        else (),
        replacements=replacements,
        aliases=aliases,
        noise=_noise(befores, afters, work, rollup=rollup),
        findings=findings,
        rollup=rollup,
        bounds=bounds,
    )
    if diff.residual_ns:
        message = f"rows do not add up to the events: {diff.residual_ns} ns left"
        raise AssertionError(message)
    return diff


def _noise(
    befores: Sequence[LabelledTrace], afters: Sequence[LabelledTrace], work: Work, *, rollup: bool
) -> Noise:
    base = befores[0]
    repeated = len(befores) > 1
    return measure_noise(
        befores,
        afters,
        scale=work.scale,
        run_scales=(
            [_work_of(run, base, rollup=rollup) for run in befores if repeated],
            [_work_of(run, base, rollup=rollup) for run in afters if repeated],
        ),
        rollup=rollup,
        stepwise=work.source == "steps",
    )


def _work_of(run: LabelledTrace, base: LabelledTrace, *, rollup: bool) -> Fraction:
    """Give a run's work in units of the base's; 1 where no ratio is common."""
    rows = category_rows(kernel_rows(base, run, rollup=rollup))
    return compare_work(base.trace, run.trace, rows).scale


def _findings(
    base: LabelledTrace,
    new: LabelledTrace,
    rows: Sequence[CategoryRow],
    work: Work,
    captures: tuple[Capture, Capture],
    *,
    counted: bool,
) -> tuple[Finding, ...]:
    return (
        *comparability_findings(base, new, work if counted else None),
        *capture_findings(captures[0], "base"),
        *capture_findings(captures[1], "new"),
        *work_findings(work),
        *hidden_findings(rows, (base.trace.kernel_ns, new.trace.kernel_ns), work.scale),
        *unresolved_findings(base, new),
        *read_findings(base.trace, "base"),
        *read_findings(new.trace, "new"),
    )


def _compare_parts(
    base: LabelledTrace,
    new: LabelledTrace,
    by: By,
    bounds: tuple[Finding, ...],
    *,
    rollup: bool,
) -> tuple[tuple[tuple[str, TraceDiff], ...], tuple[Finding, ...]]:
    befores, afters = split(base, by), split(new, by)
    parts = tuple(
        (name, _compare((before,), (afters[name],), bounds, rollup=rollup))
        for name, before in befores.items()
        if name in afters
    )
    findings = [
        Finding(
            "DF106",
            f"{shown(name)} is on side {side} only and is not compared by itself",
            severity="warning",
        )
        for side, these, others in (("base", befores, afters), ("new", afters, befores))
        for name in these
        if name not in others
    ]
    return parts, tuple(findings)


def _same_rules(base: LabelledTrace, other: LabelledTrace) -> None:
    if base.ruleset.digest == other.ruleset.digest:
        return
    raise UsageError(
        "DF001",
        f'the two sides were labelled by different rules, "{base.ruleset.digest[:12]}" and'
        f' "{other.ruleset.digest[:12]}"',
        hint="label both with the same rule file",
    )


def _require_complete(base: Trace, new: Trace) -> None:
    for trace in (base, new):
        damaged = [rank.info.source for rank in trace.ranks if not rank.info.complete]
        for name in (*trace.lost, *damaged):
            raise UsageError(
                "DF002",
                f"{shown(name)} is damaged, so the sides cannot be compared",
                hint="give the whole file, or --allow-incomplete for figures without a conclusion",
            )
