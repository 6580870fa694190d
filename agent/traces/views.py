"""Files that show one capture twice: a `kernel_trace.csv` beside its statistics or JSON; pure.

A profiler writes several files of one process into a folder. They are told by their figures, not
by their names: the same kernels, one for one, in another format or without a timeline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from agent.core.kernels import RankTrace, kernels_of
from agent.core.proposals import Finding

_FULLEST_FIRST: Final = ("kineto", "rocpd", "rocprofv3-json", "rpd", "nsys-sqlite", "rocprofv3-csv")


def drop_other_views(ranks: Sequence[RankTrace]) -> tuple[list[RankTrace], list[Finding]]:
    """Leave out a rank that another file shows more fully; the order of the others stays.

    Two ranks of one format with a timeline each are never the same, however alike.
    """
    fullest: dict[object, RankTrace] = {}
    for rank in ranks:
        best = fullest.setdefault(_figures(rank), rank)
        if _fullness(rank) < _fullness(best):
            fullest[_figures(rank)] = rank
    kept: list[RankTrace] = []
    found: list[Finding] = []
    for rank in ranks:
        best = fullest[_figures(rank)]
        if _kind(rank) == _kind(best):
            kept.append(rank)
            continue
        message = f"another view of {best.info.source}, counted once"
        found.append(Finding("TR072", message, severity="note", location=rank.info.source))
    return kept, found


def _figures(rank: RankTrace) -> object:
    """Give what two views of one capture share: how often each kernel ran, and how long."""
    sums: dict[str, tuple[int, int]] = {}
    for signature, stats in kernels_of(rank.stats).items():
        count, time_ns = sums.get(signature.name, (0, 0))
        sums[signature.name] = (count + stats.count, time_ns + stats.time_ns)
    return frozenset(Counter(sums.values()).items()), rank.stage


def _kind(rank: RankTrace) -> tuple[str, bool]:
    return rank.info.format, rank.kernels is not None


def _fullness(rank: RankTrace) -> tuple[bool, int]:
    known = rank.info.format in _FULLEST_FIRST
    place = _FULLEST_FIRST.index(rank.info.format) if known else len(_FULLEST_FIRST)
    return rank.kernels is None, place
