"""What one side of a comparison is, beside its rows; also the head of a report on a single run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.compare.capture import Capture, examine_capture
from agent.compare.rows import Side
from agent.compare.work import count_ranks
from agent.core.kernels import RankTrace, SignatureStats
from agent.core.rules import Coverage, LabelledTrace


@dataclass(frozen=True, slots=True)
class RankTotal:
    """One rank's part of a side."""

    label: str
    kernels: int
    kernel_ns: int
    busy_ns: int | None
    span_ns: int | None


@dataclass(frozen=True, slots=True)
class SideSummary:
    """One run in figures.

    `copies` are copies and fills: beside the kernels, in no other sum. `busy_ns` is the union of
    all kernels per device, added over devices and ranks; `span_ns` is that of the longest rank.
    Either is None where a rank has no timeline. `opless_ns` is kernel time without a known
    launching op; `replayed` are kernels that graph replays brought. `ranks` holds one entry for
    each stage of a rank, `n_ranks` counts the ranks.
    """

    name: str
    kernels: int
    kernel_ns: int
    busy_ns: int | None
    span_ns: int | None
    copies: Side
    opless_ns: int
    replayed: Side
    coverage: Coverage
    capture: Capture
    ranks: tuple[RankTotal, ...]
    n_ranks: int
    devices: tuple[str, ...]
    formats: tuple[str, ...]

    @property
    def slowest(self) -> RankTotal | None:
        """The rank with the most kernel time; None with fewer than two."""
        return max(self.ranks, key=_rank_order) if len(self.ranks) > 1 else None

    @property
    def fastest(self) -> RankTotal | None:
        """The rank with the least kernel time; None with fewer than two."""
        return min(self.ranks, key=_rank_order) if len(self.ranks) > 1 else None


def summarise(labelled: LabelledTrace, capture: Capture | None = None) -> SideSummary:
    """Sum a run up; `capture` is worked out where it is not given."""
    trace = labelled.trace
    ranks = trace.ranks
    return SideSummary(
        name=trace.name,
        kernels=trace.count,
        kernel_ns=trace.kernel_ns,
        busy_ns=_added(rank.busy_ns for rank in ranks),
        span_ns=_longest(rank.span_ns for rank in ranks),
        copies=_sum(labelled.copies.values()),
        opless_ns=sum(
            stats.time_ns for signature, stats in labelled.stats.items() if not signature.op
        ),
        replayed=_sum(stats for signature, stats in labelled.stats.items() if signature.replayed),
        coverage=labelled.coverage,
        capture=capture or examine_capture(trace),
        ranks=tuple(map(_rank_total, ranks)),
        n_ranks=count_ranks(trace),
        devices=tuple(sorted({name for rank in ranks for name in rank.info.device_names if name})),
        formats=tuple(sorted({rank.info.format for rank in ranks})),
    )


def _sum(stats: Iterable[SignatureStats]) -> Side:
    return sum((Side(one.count, one.time_ns) for one in stats), Side())


def _rank_total(rank: RankTrace) -> RankTotal:
    return RankTotal(rank.label, rank.count, rank.kernel_ns, rank.busy_ns, rank.span_ns)


def _rank_order(rank: RankTotal) -> tuple[int, str]:
    return (rank.kernel_ns, rank.label)


def _added(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _longest(values: Iterable[int | None]) -> int | None:
    known = list(values)
    if None in known:
        return None
    return max((value for value in known if value is not None), default=None)
