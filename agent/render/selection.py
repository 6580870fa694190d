"""What a report on one run shows: its categories, its unlabelled kernels, its warnings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.compare.capture import capture_findings, read_findings
from agent.compare.sides import SideSummary
from agent.compare.strangers import stranger_findings
from agent.core.proposals import Finding
from agent.core.rules import UNLABELLED, CategoryId, CategoryTotal, LabelledTrace, RuleId


@dataclass(frozen=True, slots=True)
class LabelledKernel:
    """One kernel name under one rule, with the category it was given; None is no rule."""

    category: CategoryId
    name: str
    rule: RuleId | None
    count: int
    time_ns: int
    ops: tuple[str, ...]


def label_categories(labelled: LabelledTrace, *, rollup: bool = False) -> tuple[CategoryTotal, ...]:
    """Give the categories, most time first; with `rollup` folded into their coarser rows."""
    if not rollup:
        return labelled.categories
    sums: dict[CategoryId, tuple[int, int]] = {}
    for total in labelled.categories:
        row = CategoryId(labelled.ruleset.rollup_of(total.category))
        count, time_ns = sums.get(row, (0, 0))
        sums[row] = (count + total.count, time_ns + total.time_ns)
    folded = [CategoryTotal(row, *sums[row]) for row in sums]
    return tuple(sorted(folded, key=lambda total: (-total.time_ns, total.category)))


def label_kernels(
    labelled: LabelledTrace, *, rollup: bool = False
) -> dict[CategoryId, tuple[LabelledKernel, ...]]:
    """Give the kernels of each category by raw name and rule, most time first.

    With `rollup` the categories are the coarser rows. A category's kernels add up to it.
    """
    sums: dict[tuple[CategoryId, str, RuleId | None], LabelledKernel] = {}
    for signature, stats in labelled.stats.items():
        label = labelled.labels[signature]
        category = label.category
        if rollup:
            category = CategoryId(labelled.ruleset.rollup_of(category))
        key = (category, str(signature.name), label.rule_id)
        seen = sums.get(key, LabelledKernel(*key, 0, 0, ()))
        sums[key] = replace(
            seen,
            count=seen.count + stats.count,
            time_ns=seen.time_ns + stats.time_ns,
            ops=tuple(sorted({*seen.ops, signature.op} - {""})),
        )
    groups: dict[CategoryId, list[LabelledKernel]] = {}
    for kernel in sorted(sums.values(), key=_most_time_first):
        groups.setdefault(kernel.category, []).append(kernel)
    return {category: tuple(groups[category]) for category in sorted(groups)}


def _most_time_first(kernel: LabelledKernel) -> tuple[int, str, str]:
    return (-kernel.time_ns, kernel.name, kernel.rule or "")


def top_unlabelled(labelled: LabelledTrace, top: int) -> tuple[LabelledKernel, ...]:
    """Give the unlabelled kernels by raw name, most time first; `top` of them."""
    return label_kernels(labelled).get(UNLABELLED, ())[:top]


def label_findings(labelled: LabelledTrace, side: SideSummary) -> tuple[Finding, ...]:
    """Gather what was wrong with a run and its ranks, each once, capture gaps first."""
    return (
        *capture_findings(side.capture),
        *stranger_findings(labelled.trace),
        *read_findings(labelled.trace),
    )
