"""Columns as numpy arrays, without a copy, and sums over them.

numpy takes 0.1 s to import, and a file of a gigabyte half a second less to sum up: it is imported
where a trace is read, and nowhere else.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]

_BLOCK = 65_536
_LOW = 0xFFFF_FFFF


def blocks(length: int) -> Iterator[slice]:
    """Cut a length into slices that fit a processor's cache: what is made for one is soon gone."""
    return (slice(at, at + _BLOCK) for at in range(0, length, _BLOCK))


def as_vector(column: array[int]) -> Vector:
    """Give a column as a numpy array over the same memory; while there is one, it cannot grow."""
    return np.asarray(column)


def look_up(values: NDArray[Any], places: Vector) -> NDArray[Any]:
    """Give the value at each place, by blocks: numpy would make 64 bits of all places first."""
    found = np.empty(len(places), values.dtype)
    for block in blocks(len(places)):
        found[block] = values[places[block]]
    return found


def total(values: Vector, chosen: Mask) -> int:
    """Add the chosen of some non-negative values; exact, whatever they add up to."""
    low = high = 0
    for block in blocks(len(values)):
        wide = values[block].astype(np.int64)
        low += int(np.sum(wide & _LOW, where=chosen[block]))
        high += int(np.sum(wide >> 32, where=chosen[block]))
    return (high << 32) + low


def sums_by(groups: Vector, values: Vector, n_groups: int) -> list[int]:
    """Add non-negative values by group; exact, whatever they add up to."""
    low, high = np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64)
    for block in blocks(len(values)):
        wide = values[block].astype(np.int64)
        np.add.at(low, groups[block], wide & _LOW)
        np.add.at(high, groups[block], wide >> 32)
    return [(above << 32) + below for above, below in zip(high.tolist(), low.tolist(), strict=True)]


def counts_by(groups: Vector, n_groups: int, chosen: Mask | None = None) -> list[int]:
    """Count the members of each group, or the chosen ones."""
    counts = np.zeros(n_groups, np.int64)
    for block in blocks(len(groups)):
        members = groups[block] if chosen is None else groups[block][chosen[block]]
        counts += np.bincount(members, minlength=n_groups)
    return counts.tolist()


def distinct(codes: Callable[[slice], Vector], length: int) -> tuple[list[int], array[int]]:
    """Give the distinct codes in order, and for each of `length` the place of its own among them.

    `codes` makes the codes of a slice; they are never there all at once.
    """
    of_blocks = [np.unique(codes(block)) for block in blocks(length)]
    known = np.unique(np.concatenate(of_blocks)) if of_blocks else np.empty(0, np.int64)
    places = array("I", [0]) * length
    for block in blocks(length):
        as_vector(places)[block] = np.searchsorted(known, codes(block))
    return known.tolist(), places


def in_groups(codes: Vector) -> Iterator[tuple[int, Vector]]:
    """Give each distinct code, in order, with the places where it stands, in order.

    A counting sort by blocks: an `argsort` of them all takes sixteen bytes for each.
    """
    known = np.unique(codes)
    counts = np.zeros(len(known), np.int64)
    for block in blocks(len(codes)):
        counts += np.bincount(np.searchsorted(known, codes[block]), minlength=len(known))
    ends = np.cumsum(counts)
    begins = ends - counts
    free, places = begins.copy(), np.empty(len(codes), np.int32)
    for block in blocks(len(codes)):
        groups = np.searchsorted(known, codes[block])
        order = np.argsort(groups, kind="stable")
        groups = groups[order]
        before = np.arange(len(order)) - np.searchsorted(groups, groups)
        places[free[groups] + before] = order + block.start
        free += np.bincount(groups, minlength=len(known))
    for code, begin, end in zip(known.tolist(), begins.tolist(), ends.tolist(), strict=True):
        yield code, places[begin:end]


def least_by(groups: Vector, values: Vector, n_groups: int) -> list[int]:
    """Give the least value of each group; of none, the greatest there is."""
    least = np.full(n_groups, np.iinfo(np.int64).max)
    for block in blocks(len(values)):
        np.minimum.at(least, groups[block], values[block])
    return least.tolist()


def most_by(groups: Vector, values: Vector, n_groups: int) -> list[int]:
    """Give the greatest value of each group; of none, the least there is."""
    most = np.full(n_groups, np.iinfo(np.int64).min)
    for block in blocks(len(values)):
        np.maximum.at(most, groups[block], values[block])
    return most.tolist()
