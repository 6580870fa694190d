"""Labelled runs for tests: a kernel's category is what stands before the slash of its name."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from agent.core.kernels import GraphReplays, KernelTable, RankTrace, Signature, Trace
from agent.core.rules import UNLABELLED, Category, CategoryId, Label, LabelledTrace, RuleId, RuleSet
from tests.builders import rank_trace, rule, signature, stats, trace

Kernels = Mapping[str | Signature, tuple[int, int]]
"""Kernel name, `Category/rest`, or signature -> (count, time_ns)."""


def run(
    *ranks: Kernels | RankTrace, name: str = "run", rules: RuleSet | None = None
) -> LabelledTrace:
    traces = [
        one if isinstance(one, RankTrace) else rank(one, label=str(index), rank=index)
        for index, one in enumerate(ranks)
    ]
    return label(Trace(name, tuple(traces)), rules)


def rank(kernels: Kernels, **fields: Any) -> RankTrace:
    table = {
        signature(key) if isinstance(key, str) else key: stats(count, time_ns)
        for key, (count, time_ns) in kernels.items()
    }
    return rank_trace(table, **fields)


def label(run_trace: Trace, rules: RuleSet | None = None) -> LabelledTrace:
    names = {one: one.name.split("/")[0] for one in run_trace.stats}
    labels = {one: _label(category) for one, category in names.items()}
    return LabelledTrace(run_trace, rules or rules_for(set(names.values())), labels)


def rules_for(categories: set[str], **fields: Any) -> RuleSet:
    """One rule for each category, called `rule.CATEGORY`; all sets made so share one digest."""
    named = sorted(categories - {UNLABELLED})
    return RuleSet(
        name="test",
        version=1,
        digest="0" * 64,
        categories=tuple(Category(CategoryId(one), one, fields.get(one, one)) for one in named),
        rules=tuple(rule(f"rule.{one}", one, one) for one in named),
    )


def graph_rank(*launches: tuple[str, ...], label: str = "0", table: bool = True) -> RankTrace:
    """A rank of graph launches, each given by the kernels it replayed, 1 us each."""
    names = [name for launch in launches for name in launch]
    signatures = tuple(sorted({signature(name, replayed=True) for name in names}))
    position = {one.name: index for index, one in enumerate(signatures)}
    correlations = [index for index, launch in enumerate(launches) for _ in launch]
    size = len(names)
    columns = KernelTable(
        signatures,
        array("I", [position[name] for name in names]),
        array("q", range(0, size * 1_000, 1_000)),
        array("q", [1_000] * size),
        array("i", [0] * size),
        array("q", [0] * size),
        array("q", correlations),
    )
    counts = tuple(map(len, launches))
    return rank_trace(
        {one: stats(names.count(one.name), 1_000 * names.count(one.name)) for one in signatures},
        label=label,
        kernels=columns if table else None,
        replays=GraphReplays(counts, size, 1_000 * size),
    )


def _label(category: str) -> Label:
    if category == UNLABELLED:
        return Label(UNLABELLED)
    return Label(CategoryId(category), RuleId(f"rule.{category}"), "vendor")


__all__ = ["graph_rank", "label", "rank", "rules_for", "run", "trace"]
