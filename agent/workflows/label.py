"""`label`: one run -> its labelled trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent.core.rules import LabelledTrace
from agent.workflows.rulefile import rules_in_force

Progress = Callable[[Any], None]


def label_run(
    paths: Sequence[str],
    *,
    rules: Path | None = None,
    salvage: bool = False,
    progress: Progress | None = None,
) -> LabelledTrace:
    """Read one run and label it; the rules are loaded first, so that a wrong file costs no wait.

    Raises:
        TraceError, RuleFileError: see `agent.errors`.
    """
    from agent.ruleset.match import label_trace
    from agent.traces.reader import read_trace

    ruleset = rules_in_force(rules)
    trace = read_trace(paths, salvage=salvage, progress=progress)
    return label_trace(trace, ruleset)
