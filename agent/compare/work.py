"""How much work each side did, and what the difference is per unit of it.

Sources, best first: steps the profiler annotated, if calls bear them out; pass counts that the
calls are multiples of; the common ratio of calls by category, or by kernel where the categories do
not tell. The new side's times are divided by the ratio before they are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from agent.compare.consensus import (
    Calls,
    Consensus,
    agrees,
    common_ratio,
    pass_counts,
    support_of,
)
from agent.compare.rows import CategoryRow, KernelRow, total_of
from agent.core.kernels import Trace

WorkSource = Literal["steps", "passes", "calls", "none"]

EQUAL_WITHIN = Fraction(1, 2_000)
STEPS_WITHIN = Fraction(1, 50)


@dataclass(frozen=True, slots=True)
class Delta:
    """A difference in raw sums and at equal work, exact.

    `equal_ns` is new divided by the work ratio, minus base: at the base's amount of work.
    """

    base_ns: int
    raw_ns: int
    equal_ns: Fraction | None

    @property
    def raw(self) -> Fraction:
        """Raw difference as a fraction of the base; 0 where the base is empty."""
        return Fraction(self.raw_ns, self.base_ns) if self.base_ns else Fraction(0)

    @property
    def per_pass(self) -> Fraction | None:
        """The difference per pass as a fraction of the base's; None without a work ratio."""
        if self.equal_ns is None:
            return None
        return self.equal_ns / self.base_ns if self.base_ns else Fraction(0)

    @property
    def flips(self) -> bool:
        """Tell whether the raw sums and the figures per pass point in opposite directions."""
        return self.equal_ns is not None and self.raw_ns * self.equal_ns < 0


@dataclass(frozen=True, slots=True)
class Work:
    """The amounts of work and the two headline differences.

    Attributes:
        ratio: work of the new side in units of the base's; None where no ratio is common enough.
        passes: (base, new) counts the ratio stands on, where they are known.
        total: over all categories.
        existing: over the categories that both sides or only the base have.
        steps: (base, new) annotated steps per rank, 0 where there are none.
        basis: `categories` or `kernels`: what the consensus was taken over.
    """

    ratio: Fraction | None
    source: WorkSource
    passes: tuple[int, int] | None
    consensus: Consensus | None
    basis: Literal["categories", "kernels"]
    steps: tuple[int, int]
    total: Delta
    existing: Delta

    @property
    def equal(self) -> bool:
        """Tell whether both sides did the same work."""
        return self.ratio == 1

    @property
    def scale(self) -> Fraction:
        """The ratio to divide new times by: 1 where it is not known."""
        return self.ratio or Fraction(1)


def compare_work(
    base: Trace, new: Trace, rows: Sequence[CategoryRow], *, counted: bool = True
) -> Work:
    """Find the work ratio of two traces from their rows and annotations.

    With `counted=False` some calls are known to be missing, so that they tell no ratio.
    """
    consensus, basis = _consensus(rows) if counted else (None, "categories")
    steps = (_steps(base), _steps(new))
    ratio, source, passes = _ratio(base, new, rows, consensus, steps)
    if ratio is not None and abs(ratio - 1) <= EQUAL_WITHIN * max(ratio, Fraction(1)):
        ratio = Fraction(1)
    if ratio == 1 and source == "passes":
        source, passes = "calls", None
    if ratio is not None and consensus is not None and basis == "categories":
        consensus = support_of(map(_calls, rows), ratio)
    existing = [row for row in rows if row.status != "new"]
    return Work(
        ratio,
        source,
        passes,
        consensus,
        basis,
        steps,
        _delta(rows, ratio),
        _delta(existing, ratio),
    )


def _consensus(
    rows: Sequence[CategoryRow],
) -> tuple[Consensus | None, Literal["categories", "kernels"]]:
    by_category = common_ratio(map(_calls, rows))
    if by_category is None or by_category.sound:
        return by_category, "categories"
    kernels = [kernel for row in rows for kernel in row.kernels]
    by_kernel = common_ratio(map(_kernel_calls, kernels))
    if by_kernel is not None and by_kernel.sound and by_kernel.shared > 2:
        return by_kernel, "kernels"
    return by_category, "categories"


def _ratio(
    base: Trace,
    new: Trace,
    rows: Sequence[CategoryRow],
    consensus: Consensus | None,
    steps: tuple[int, int],
) -> tuple[Fraction | None, WorkSource, tuple[int, int] | None]:
    annotated = Fraction(steps[1], steps[0]) if all(steps) else None
    if annotated is not None and _borne_out(annotated, rows, consensus):
        return annotated, "steps", steps
    if consensus is None or not consensus.sound:
        return None, "none", None
    passes = pass_counts(_per_rank_calls(base, new, rows, consensus), consensus.ratio)
    if passes is None:
        return consensus.ratio, "calls", None
    return Fraction(passes[1], passes[0]), "passes", passes


def _borne_out(
    annotated: Fraction, rows: Sequence[CategoryRow], consensus: Consensus | None
) -> bool:
    """Tell whether calls follow the steps: the common ratio, or some of them where none is common.

    Two runs of other models may have as many steps and not one category in common.
    """
    if consensus is not None and consensus.sound:
        gap = abs(annotated - consensus.ratio)
        return gap <= STEPS_WITHIN * max(annotated, consensus.ratio)
    return support_of(map(_calls, rows), annotated).some


def _per_rank_calls(
    base: Trace, new: Trace, rows: Iterable[CategoryRow], consensus: Consensus
) -> list[tuple[int, int]]:
    """Give the agreeing rows' calls per rank, rounded, where both sides have as many ranks."""
    n_base, n_new = count_ranks(base), count_ranks(new)
    if n_base != n_new:
        return []
    pairs = []
    for row in rows:
        calls = _calls(row)
        if not (calls.base and calls.new and agrees(calls, consensus.ratio)):
            continue
        pairs.append((round(Fraction(calls.base, n_base)), round(Fraction(calls.new, n_new))))
    return pairs


def count_ranks(trace: Trace) -> int:
    """Count the ranks of a run; the stages of one rank are one."""
    return len({rank.label if rank.rank is None else rank.rank for rank in trace.ranks})


def _steps(trace: Trace) -> int:
    """Count the annotated steps of a rank; 0 unless all ranks have the same number."""
    counts = {len(rank.steps) for rank in trace.ranks}
    return counts.pop() if len(counts) == 1 else 0


def _calls(row: CategoryRow) -> Calls:
    weight = row.base.time_ns + row.new.time_ns
    return Calls(row.category, row.base.count, row.new.count, weight)


def _kernel_calls(row: KernelRow) -> Calls:
    weight = row.base.time_ns + row.new.time_ns
    return Calls(row.name, row.base.count, row.new.count, weight)


def _delta(rows: Iterable[CategoryRow], ratio: Fraction | None) -> Delta:
    base, new = total_of(rows)
    equal = None if ratio is None else new.time_ns / ratio - base.time_ns
    return Delta(base.time_ns, new.time_ns - base.time_ns, equal)
