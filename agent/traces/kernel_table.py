"""What is made of every kernel table: sums by signature and step, and columns without repeats."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO

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
from agent.traces.vectors import Vector, as_vector, blocks, counts_by, least_by, most_by, sums_by

_FEW_SUMS, _SUMS_PER_EVENT = 100_000, 3
"""Signatures times steps: more take more time and memory than the events themselves."""

_SUMS_AT_ONCE = 500_000
"""How many are held as numbers before they are packed."""
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
    width = -(-_longest_step(table, rank).bit_length() // 8) or 1
    size = max(1, _SUMS_AT_ONCE // n_steps)
    every = range(len(rank.stats))
    parts = (every[at : at + size] for at in range(0, len(every), size))
    packed = BytesIO()
    packed.writelines(_packed_sums(table, rank, part, width) for part in parts)
    return replace(rank, summed=StepTimes(rank.steps, rank.stats, width, packed.getvalue()))


def _longest_step(table: KernelTable, rank: RankTrace) -> int:
    """Give the kernel time of the step that has most of it."""
    totals = np.zeros(len(rank.steps))
    for block, step in _in_steps(table, rank):
        inside = step >= 0
        durations = as_vector(table.duration_ns)[block]
        totals += np.bincount(step[inside], durations[inside], minlength=len(totals))
    return int(totals.max())


def _packed_sums(table: KernelTable, rank: RankTrace, signatures: range, width: int) -> bytes:
    """Add durations by signature and step; `width` bytes a sum, a signature after the other.

    The events of a block are of few steps.
    """
    sums = np.zeros(len(rank.steps) * len(signatures))
    for block, step in _in_steps(table, rank):
        number = as_vector(table.signature_id)[block].astype(np.int64) - signatures.start
        inside = (step >= 0) & (number >= 0) & (number < len(signatures))
        if inside.any():
            places = step[inside] * len(signatures) + number[inside]
            first = places.min()
            found = np.bincount(places - first, as_vector(table.duration_ns)[block][inside])
            sums[first : first + len(found)] += found
    by_signature = sums.reshape(len(rank.steps), -1).T.astype("<i8", order="C")
    return by_signature.view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def _in_steps(table: KernelTable, rank: RankTrace) -> Iterator[tuple[slice, Vector]]:
    """Give blocks of events with the step of each, or -1."""
    for block in blocks(len(table)):
        yield block, steps_at(rank.steps, as_vector(table.start_ns)[block])


def without(column: array[int], dropped: frozenset[int]) -> array[int]:
    """Give a column without the entries at some places."""
    return array(column.typecode, [value for at, value in enumerate(column) if at not in dropped])
