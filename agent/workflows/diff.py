"""`diff`: two runs and the approved rules -> their difference; no LLM, git or parser."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agent.compare.gates import GateResult, judge_gates, parse_gate
from agent.compare.table import TraceDiff, compare_traces
from agent.workflows.label import Progress, Reading, labelled
from agent.workflows.rulefile import rules_in_force


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
    base: str, new: str, options: DiffOptions, *, progress: Progress | None = None
) -> tuple[TraceDiff, tuple[GateResult, ...]]:
    """Read both runs, label them with the same rules, compare them and judge the gates.

    Rules and gates are parsed first, so that a wrong one costs no wait.

    Raises:
        TraceError, RuleFileError, UsageError: see `agent.errors`.
    """
    ruleset = rules_in_force(options.rules)
    gates = [parse_gate(expression, ruleset) for expression in options.fail_on]
    named = ((base, *options.base_repeats), (new, *options.new_repeats))
    sides = [
        [labelled([path], ruleset, options.reading, progress) for path in runs] for runs in named
    ]
    diff = compare_traces(
        sides[0][0],
        sides[1][0],
        rollup=options.rollup,
        allow_incomplete=options.allow_incomplete,
        by=options.by,
        repeats=(sides[0][1:], sides[1][1:]),
    )
    return diff, judge_gates(gates, diff)
