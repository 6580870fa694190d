"""`diff`: two runs and the approved rules -> their difference; no LLM, git or parser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.workflows.label import Progress, Reading, label_there

if TYPE_CHECKING:
    from agent.compare.gates import GateResult
    from agent.compare.table import TraceDiff
    from agent.core.rules import LabelledTrace, RuleSet


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """How two runs are read and compared; see `compare_traces` for the meaning of each."""

    rules: Path | None = None
    reading: Reading = field(default_factory=Reading)
    allow_incomplete: bool = False
    rollup: bool = False
    fail_on: tuple[str, ...] = ()
    base_repeats: tuple[str, ...] = ()
    new_repeats: tuple[str, ...] = ()
    by: str = ""


def diff_runs(
    base: str,
    new: str,
    options: DiffOptions,
    *,
    progress: Progress | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[TraceDiff, tuple[GateResult, ...]]:
    """Read both runs, label them with the same rules, compare them and judge the gates.

    Rules and gates are parsed before anything is waited for, so that a wrong one costs no time.
    `meanwhile` is called while processes read.

    Raises:
        TraceError, RuleFileError, UsageError: see `agent.errors`.
    """
    runs = (base, *options.base_repeats, new, *options.new_repeats)
    with _reading(runs, options, progress) as label_all:
        from agent.compare.gates import judge_gates, parse_gate  # while the processes read
        from agent.compare.table import compare_traces

        ruleset = options.reading.rules(options.rules)
        gates = [parse_gate(expression, ruleset) for expression in options.fail_on]
        meanwhile()
        labelled_runs = list(label_all(ruleset))
    n_base = 1 + len(options.base_repeats)
    names = told_apart(runs, [labelled.trace.name for labelled in labelled_runs])
    labelled_runs = [_named(*one) for one in zip(labelled_runs, names, strict=True)]
    bases, news = labelled_runs[:n_base], labelled_runs[n_base:]
    diff = compare_traces(
        bases[0],
        news[0],
        rollup=options.rollup,
        allow_incomplete=options.allow_incomplete,
        by=options.by,
        repeats=(bases[1:], news[1:]),
    )
    return diff, judge_gates(gates, diff)


def told_apart(runs: Sequence[str], names: Sequence[str]) -> list[str]:
    """Give the runs names that differ, by as few of their folders as that takes.

    An absolute path is named by its last part, which `/a/rank0.json` and `/b/rank0.json` share. The
    same path twice keeps its name.
    """
    told = list(names)
    for name in {name for name in names if names.count(name) > 1}:
        alike = {at: Path(os.path.normpath(runs[at])).parts for at in _places(name, names)}
        n_runs = len(set(alike.values()))
        for depth in range(2, min(map(len, alike.values()))):
            tails = {at: "/".join(parts[-depth:]) for at, parts in alike.items()}
            if len(set(tails.values())) == n_runs > 1:
                told = [tails.get(at, known) for at, known in enumerate(told)]
                break
    return told


def _places(name: str, names: Sequence[str]) -> list[int]:
    return [at for at, other in enumerate(names) if other == name]


def _named(labelled: LabelledTrace, name: str) -> LabelledTrace:
    if labelled.trace.name == name:
        return labelled
    return replace(labelled, trace=replace(labelled.trace, name=name))


@contextmanager
def _reading(
    runs: Sequence[str], options: DiffOptions, progress: Progress | None
) -> Iterator[Callable[[RuleSet], Iterator[LabelledTrace]]]:
    """Begin to read, and give what labels the runs as they come."""
    reading = options.reading
    if reading.dask:
        yield lambda ruleset: (label_there([run], ruleset, reading, progress) for run in runs)
        return
    from agent.compare.events import needs_events
    from agent.workflows.readers import Readers

    with Readers(
        [[run] for run in runs],
        salvage=reading.salvage,
        progress=progress,
        cache=reading.traces(),
        needed=None if options.by in {"stage", "stream"} else needs_events,
    ) as readers:
        from agent.ruleset.match import Matcher  # while the processes read

        yield lambda ruleset: readers.made_of_each(Matcher(ruleset).label_trace)
