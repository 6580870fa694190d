"""`diff`: two runs and the approved rules -> their difference; no LLM, git or parser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.compare.table import TraceDiff, compare_traces
from agent.workflows.label import Progress
from agent.workflows.rulefile import rules_in_force


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """How two runs are read and compared; see `compare_traces` for the meaning of each."""

    rules: Path | None = None
    salvage: bool = False
    allow_incomplete: bool = False
    rollup: bool = False
    by: str = ""


def diff_runs(
    base: Sequence[str],
    new: Sequence[str],
    options: DiffOptions,
    *,
    progress: Progress | None = None,
) -> TraceDiff:
    """Read both runs, label them with the same rules and compare them.

    Raises:
        TraceError, RuleFileError, UsageError: see `agent.errors`.
    """
    from agent.ruleset.match import label_trace
    from agent.traces.reader import read_trace

    ruleset = rules_in_force(options.rules)
    sides = [read_trace(paths, salvage=options.salvage, progress=progress) for paths in (base, new)]
    labelled_base, labelled_new = (label_trace(trace, ruleset) for trace in sides)
    return compare_traces(
        labelled_base,
        labelled_new,
        rollup=options.rollup,
        allow_incomplete=options.allow_incomplete,
    )
