"""Parts of a run that can be compared by themselves: its stages, its ranks, its streams.

A stage is told by the file's name, or by the profiler's annotation of steps (`step[DECODE bs=16]`):
if all of a rank's steps are of one stage the rank is that stage, else each kernel belongs to the
step it starts in, and `between steps` where it starts in none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from agent.compare.steps import OUTSIDE_STEPS, step_finder
from agent.core.kernels import (
    ClippedTotal,
    GraphReplays,
    KernelTable,
    RankTrace,
    Signature,
    SignatureStats,
    Step,
    Trace,
    in_order,
)
from agent.core.rules import LabelledTrace
from agent.errors import UsageError

By = Literal["stage", "rank", "stream"]
BETWEEN = "between steps"

_STAGE = re.compile(r"\b(EXTEND|DECODE|PREFILL|MIXED|VERIFY|DRAFT|IDLE)\b", re.IGNORECASE)


def as_by(text: str) -> By | None:
    """Read the option; "" is None.

    Raises:
        UsageError: DF004 it is none of the three.
    """
    known: tuple[By, ...] = get_args(By)
    for by in known:
        if text == by:
            return by
    if not text:
        return None
    raise UsageError("DF004", f'cannot compare by "{text}"', hint=f"by one of {', '.join(known)}")


def split(labelled: LabelledTrace, by: By) -> dict[str, LabelledTrace]:
    """Cut a run into its parts, by name in order.

    Raises:
        UsageError: DF004 the run does not tell its parts apart.
    """
    parts: dict[str, list[RankTrace]] = {}
    for rank in labelled.trace.ranks:
        for name, part in _SPLITTERS[by](rank):
            parts.setdefault(name, []).append(part)
    if not parts:
        raise UsageError(
            "DF004",
            f'"{labelled.trace.name}" does not tell its {by}s apart',
            hint=_HINTS[by],
        )
    return {
        name: LabelledTrace(
            Trace(labelled.trace.name, tuple(parts[name])), labelled.ruleset, labelled.labels
        )
        for name in sorted(parts, key=_natural)
    }


def _by_rank(rank: RankTrace) -> list[tuple[str, RankTrace]]:
    return [(rank.label if rank.rank is None else f"rank {rank.rank}", rank)]


def _by_stage(rank: RankTrace) -> list[tuple[str, RankTrace]]:
    if rank.stage:
        return [(rank.stage, rank)]
    staged = [(step, found) for step in rank.steps if (found := stage_of(step))]
    stages = sorted({stage for _, stage in staged})
    if len(stages) == 1:
        return [(stages[0], rank)]
    table = rank.kernels
    if not stages or table is None:
        return []
    return _cut(rank, table, _stage_finder(staged, table))


def _by_stream(rank: RankTrace) -> list[tuple[str, RankTrace]]:
    table = rank.kernels
    if table is None:
        return []
    return _cut(rank, table, lambda position: f"stream {table.stream[position]}")


def stage_of(step: Step) -> str:
    """Give the stage a step's name speaks of, or ""."""
    found = _STAGE.search(step.name)
    return found.group().upper() if found else ""


def _stage_finder(staged: Sequence[tuple[Step, str]], table: KernelTable) -> Callable[[int], str]:
    stages = [stage_of(step) for step in in_order(step for step, _ in staged)]
    find = step_finder(step for step, _ in staged)

    def stage_at(position: int) -> str:
        at = find(table.start_ns[position])
        return BETWEEN if at == OUTSIDE_STEPS else stages[at]

    return stage_at


def _cut(
    rank: RankTrace, table: KernelTable, name_of: Callable[[int], str]
) -> list[tuple[str, RankTrace]]:
    positions: dict[str, list[int]] = {}
    for position in range(len(table)):
        positions.setdefault(name_of(position), []).append(position)
    return [(name, _part(rank, table, positions[name])) for name in sorted(positions)]


def _part(rank: RankTrace, table: KernelTable, positions: Iterable[int]) -> RankTrace:
    """Keep some of a rank's events; what only the whole rank has is dropped, never guessed."""
    durations: dict[int, list[int]] = {}
    for position in positions:
        durations.setdefault(table.signature_id[position], []).append(table.duration_ns[position])
    stats: dict[Signature, SignatureStats] = {
        table.signatures[index]: SignatureStats(len(found), sum(found), min(found), max(found))
        for index, found in durations.items()
    }
    return replace(
        rank,
        stats=dict(sorted(stats.items())),
        kernels=None,
        busy_ns=None,
        span_ns=None,
        launches=0,
        linked_ns=0,
        replays=GraphReplays(),
        clipped=ClippedTotal(),
        steps=(),
    )


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Order `rank 2` before `rank 10`."""
    pieces = re.split(r"(\d+)", name)
    return tuple((1, int(piece), "") if piece.isdecimal() else (0, 0, piece) for piece in pieces)


_SPLITTERS: dict[By, Callable[[RankTrace], list[tuple[str, RankTrace]]]] = {
    "stage": _by_stage,
    "rank": _by_rank,
    "stream": _by_stream,
}
_HINTS: dict[By, str] = {
    "stage": "stages are told by file names (-DECODE) or annotated steps",
    "rank": "ranks are told by distributedInfo or file names (-TP-0)",
    "stream": "streams need a timeline, which aggregates and profiles do not have",
}
