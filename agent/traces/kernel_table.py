"""What is made of every kernel table: sums by signature and step, and columns without repeats."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any, Final

import numpy as np

from agent.core.kernels import (
    KernelTable,
    RankTrace,
    Signature,
    SignatureStats,
    StepTimes,
    in_order,
)
from agent.traces.steps import steps_at
from agent.traces.vectors import as_vector, blocks, counts_by, least_by, most_by, sums_by

_MOST_SUMS: Final = 4_000_000
"""Signatures times steps: more than these are slower to add up than the events of most traces."""


def sum_by_signature(table: KernelTable) -> dict[Signature, SignatureStats]:
    """Sum the events of each signature that has any, in the order of the table's signatures."""
    ids, n_signatures = as_vector(table.signature_id), len(table.signatures)
    columns = ids, as_vector(table.duration_ns), n_signatures
    counts = counts_by(ids, n_signatures)
    sums = zip(counts, sums_by(*columns), least_by(*columns), most_by(*columns), strict=True)
    return {
        signature: SignatureStats(*of_signature)
        for signature, of_signature in zip(table.signatures, sums, strict=True)
        if of_signature[0]
    }


def with_step_times(rank: RankTrace) -> RankTrace:
    """Give a rank with how long each signature ran in each step, where that is worth its memory."""
    table, n_signatures, n_steps = rank.kernels, len(rank.stats), len(rank.steps)
    total_ns = sum(stats.time_ns for stats in rank.stats.values())
    if (
        table is None
        or not 0 < n_signatures * n_steps <= _MOST_SUMS
        or total_ns > np.iinfo(np.int64).max
        or table.signatures != tuple(rank.stats)
        or in_order(rank.steps) != list(rank.steps)
    ):
        return rank
    width = -(-total_ns.bit_length() // 8) or 1
    sums = _sums_by_step(table, rank).view(np.uint8).reshape(n_signatures, n_steps, 8)
    packed = sums[:, :, :width].tobytes()
    return replace(rank, summed=StepTimes(rank.steps, rank.stats, width, packed))


def _sums_by_step(table: KernelTable, rank: RankTrace) -> np.ndarray[Any, Any]:
    """Add durations by signature and step; what is in no step goes to a place after the last."""
    n_columns = len(rank.steps) + 1
    ids, starts = as_vector(table.signature_id), as_vector(table.start_ns)
    durations, sums = as_vector(table.duration_ns), np.zeros(len(rank.stats) * n_columns, "<i8")
    for block in blocks(len(table)):
        step = steps_at(rank.steps, starts[block]) % n_columns
        np.add.at(sums, ids[block].astype(np.int64) * n_columns + step, durations[block])
    return np.ascontiguousarray(sums.reshape(-1, n_columns)[:, :-1])


def without(column: array[int], dropped: frozenset[int]) -> array[int]:
    """Give a column without the entries at some places."""
    return array(column.typecode, [value for at, value in enumerate(column) if at not in dropped])
