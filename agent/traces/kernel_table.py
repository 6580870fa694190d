"""What is made of every kernel table: sums by signature and step, and columns without repeats."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

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

_FEW_SUMS, _SUMS_PER_EVENT = 100_000, 3
"""Signatures times steps: more take more time and memory than the events themselves."""

_EXACT = 1 << 53
"""Below it, sums of whole numbers are exact as floats, in which numpy adds three times as fast."""


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
    table, n_steps = rank.kernels, len(rank.steps)
    if table is None or not n_steps or table.signatures != tuple(rank.stats):
        return rank
    most_sums = max(_FEW_SUMS, _SUMS_PER_EVENT * len(table))
    total_ns = sum(stats.time_ns for stats in rank.stats.values())
    if (
        len(rank.stats) * n_steps > most_sums
        or total_ns >= _EXACT
        or in_order(rank.steps) != list(rank.steps)
    ):
        return rank
    sums = _sums_by_step(table, rank)
    width = -(-int(sums.sum(axis=1).max()).bit_length() // 8) or 1
    columns = (
        column.astype("<i8").view(np.uint8).reshape(n_steps, 8)[:, :width].tobytes()
        for column in sums.T
    )
    return replace(rank, summed=StepTimes(rank.steps, rank.stats, width, b"".join(columns)))


def _sums_by_step(table: KernelTable, rank: RankTrace) -> np.ndarray[Any, Any]:
    """Add durations by step and signature; those of a block of events are of few steps."""
    ids, starts = as_vector(table.signature_id), as_vector(table.start_ns)
    durations, sums = as_vector(table.duration_ns), np.zeros(len(rank.steps) * len(rank.stats))
    for block in blocks(len(table)):
        step = steps_at(rank.steps, starts[block])
        inside = step >= 0
        if inside.any():
            places = step[inside] * len(rank.stats) + ids[block][inside]
            first = places.min()
            found = np.bincount(places - first, durations[block][inside])
            sums[first : first + len(found)] += found
    return sums.reshape(len(rank.steps), -1)


def without(column: array[int], dropped: frozenset[int]) -> array[int]:
    """Give a column without the entries at some places."""
    return array(column.typecode, [value for at, value in enumerate(column) if at not in dropped])
