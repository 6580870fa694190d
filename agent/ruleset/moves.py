"""What labels of a trace a change of the rules moves, with counts and time."""

from __future__ import annotations

from dataclasses import dataclass

from agent.core.kernels import KernelName, Trace
from agent.core.rules import CategoryId, RuleId, RuleSet
from agent.ruleset.match import Matcher


@dataclass(frozen=True, slots=True)
class Move:
    """One kernel name (with its launching op) whose category differs between two rule sets."""

    name: KernelName
    op: str
    before: CategoryId
    after: CategoryId
    rule_before: RuleId | None
    rule_after: RuleId | None
    count: int
    time_ns: int


def moved_names(trace: Trace, before: RuleSet, after: RuleSet) -> tuple[Move, ...]:
    """List the names of a trace that change category, most time first, then by name."""
    old, new = Matcher(before), Matcher(after)
    sums: dict[tuple[object, ...], Move] = {}
    for signature, stats in trace.stats.items():
        was, now = old.label(signature), new.label(signature)
        if was.category == now.category:
            continue
        key = (signature.name, signature.op, was, now)
        seen = sums.get(key)
        count, time_ns = (seen.count, seen.time_ns) if seen else (0, 0)
        sums[key] = Move(
            signature.name,
            signature.op,
            was.category,
            now.category,
            was.rule_id,
            now.rule_id,
            count + stats.count,
            time_ns + stats.time_ns,
        )
    return tuple(sorted(sums.values(), key=_most_time_first))


def _most_time_first(move: Move) -> tuple[int, str, str, str]:
    return (-move.time_ns, move.name, move.op, move.after)
