"""What a report on one run shows: its categories, its unlabelled kernels, its warnings."""

from __future__ import annotations

from dataclasses import dataclass

from agent.compare.capture import capture_findings, read_findings
from agent.compare.sides import SideSummary
from agent.core.proposals import Finding
from agent.core.rules import UNLABELLED, CategoryId, CategoryTotal, LabelledTrace


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """One kernel no rule names."""

    name: str
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


def top_unlabelled(labelled: LabelledTrace, top: int) -> tuple[Unlabelled, ...]:
    """Give the unlabelled kernels by raw name, most time first; `top` of them."""
    sums: dict[str, Unlabelled] = {}
    for signature, stats in labelled.stats.items():
        if labelled.labels[signature].category != UNLABELLED:
            continue
        seen = sums.get(signature.name, Unlabelled(signature.name, 0, 0, ()))
        ops = {*seen.ops, signature.op} - {""}
        sums[signature.name] = Unlabelled(
            signature.name,
            seen.count + stats.count,
            seen.time_ns + stats.time_ns,
            tuple(sorted(ops)),
        )
    ordered = sorted(sums.values(), key=lambda row: (-row.time_ns, row.name))
    return tuple(ordered[:top])


def label_findings(labelled: LabelledTrace, side: SideSummary) -> tuple[Finding, ...]:
    """Gather what was wrong with a run and its ranks, each once, capture gaps first."""
    return (*capture_findings(side.capture), *read_findings(labelled.trace))
