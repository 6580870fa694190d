"""Match kernels whose names differ only in spelling between two builds or profilers.

A step of its own, after the join by raw name, and listed in every report: rules still see the raw
names. Two names are one kernel when their canonical forms agree up to white space and the
spellings of an anonymous namespace; or, for kernels of one side only, when they agree but for the
ordinals of lambdas without arguments, which a compiler renumbers. Ordinals of lambdas with
arguments tell dtypes apart and are never dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agent.compare.rows import KernelRow
from agent.core.names import canonical_name
from agent.core.rules import CategoryId

_ANONYMOUS = re.compile(
    r"\(anonymous namespace\)|<unnamed>|\(unnamed\)|(?<![A-Za-z0-9_])_GLOBAL__N_\w*(?=::)"
)
_BARE_ORDINAL = re.compile(r"\{lambda\(\)#\d+\}")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, order=True)
class Alias:
    """Names of the two sides that were taken for one kernel."""

    category: CategoryId
    base_names: tuple[str, ...]
    new_names: tuple[str, ...]


def match_aliases(
    rows: Iterable[KernelRow],
) -> tuple[tuple[KernelRow, ...], tuple[Alias, ...]]:
    """Merge rows that are one kernel in two spellings, and list what was merged."""
    rows = tuple(rows)
    if not {"new", "gone"} & {row.status for row in rows}:
        return rows, ()
    spelled = _merge(rows, spelling, _is_safe_spelling)
    merged = _merge(spelled, _without_bare_ordinals, _is_one_to_one)
    aliases = [
        Alias(row.category, row.base_names, row.new_names)
        for row in merged
        if row.base_names and row.new_names and row.base_names != row.new_names
    ]
    return tuple(merged), tuple(sorted(aliases))


def spelling(name: str) -> str:
    """Give a name's canonical form without white space, with one spelling of `<unnamed>`."""
    return _SPACE.sub("", _ANONYMOUS.sub("<unnamed>", canonical_name(name)))


def _without_bare_ordinals(name: str) -> str:
    return _BARE_ORDINAL.sub("{lambda()}", spelling(name))


def _merge(
    rows: Iterable[KernelRow],
    key_of: Callable[[str], str],
    may_merge: Callable[[list[KernelRow]], bool],
) -> list[KernelRow]:
    groups: dict[tuple[str, str], list[KernelRow]] = {}
    for row in rows:
        groups.setdefault((row.category, key_of(row.name)), []).append(row)
    merged: list[KernelRow] = []
    for _, group in sorted(groups.items()):
        if len(group) > 1 and may_merge(group):
            first, *others = group
            for other in others:
                first = first.merged(other)
            merged.append(first)
        else:
            merged.extend(group)
    return merged


def _is_safe_spelling(group: list[KernelRow]) -> bool:
    """Both sides have the kernel, and some spelling of it is on one side only."""
    statuses = {row.status for row in group}
    return statuses != {"both"} and statuses not in ({"new"}, {"gone"})


def _is_one_to_one(group: list[KernelRow]) -> bool:
    """Each side has one spelling of it, and neither side's is known to the other."""
    spellings = [
        {spelling(row.name) for row in group if row.status == status} for status in ("gone", "new")
    ]
    return {row.status for row in group} == {"gone", "new"} and all(
        len(names) == 1 for names in spellings
    )
