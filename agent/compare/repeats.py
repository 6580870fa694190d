"""Runs given again: copies of a run say nothing of noise, so each counts once.

Two runs are the same when each rank of one has a rank of the other with the same origin and the
same counts and sums for every signature; what the files are called does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.core.kernels import Trace
from agent.core.proposals import Finding
from agent.core.rules import LabelledTrace
from agent.core.text import shown

NAMES_SHOWN = 4


def distinct_runs(
    runs: Sequence[LabelledTrace], side: str
) -> tuple[tuple[LabelledTrace, ...], tuple[Finding, ...]]:
    """Give the runs of a side without those given before, and a finding that names these."""
    if len(runs) < 2:
        return tuple(runs), ()
    distinct: dict[object, LabelledTrace] = {}
    again = []
    for run in runs:
        content = _content(run.trace)
        if content in distinct:
            again.append(run)
        distinct.setdefault(content, run)
    return tuple(distinct.values()), (_given_again(again, len(runs), side),) if again else ()


def _given_again(again: Sequence[LabelledTrace], n_runs: int, side: str) -> Finding:
    names = [shown(run.trace.name, limit=80) for run in again]
    named = ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")
    return Finding(
        "DF108",
        f"the same run again: {len(again)} of the {n_runs} runs of side {side} were given before"
        f" ({named}) and tell no noise; each run counts once",
        severity="warning",
        hint="repeat the capture: copies of one file are one run",
    )


def _content(trace: Trace) -> object:
    """Give what makes two runs the same: per rank the origin, counts and sums as read."""
    ranks = Counter((rank.origin_ns, frozenset(rank.stats.items())) for rank in trace.ranks)
    return frozenset(ranks.items())
