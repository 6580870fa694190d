"""A long column of integers that is read once, if at all, and kept compressed until then."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from isal import isal_zlib

from agent.traces.vectors import Vector

_BLOCK = 16_384
_LEVEL = 1
_NARROW = np.iinfo(np.int32)


class PackedColumn:
    """Integers of 64 bits; those of a trace mostly grow evenly and shrink to a byte or two each."""

    def __init__(self) -> None:
        self._open = array("q")
        self._blocks: list[bytes] = []
        self._is_narrow = True

    def __len__(self) -> int:
        """Give how many there are."""
        return len(self._blocks) * _BLOCK + len(self._open)

    def append(self, values: Sequence[int] | Vector) -> None:
        """Append some integers.

        Raises:
            OverflowError: one does not fit in 64 bits.
        """
        added = np.asarray(values, np.int64)
        self._is_narrow &= not len(added) or bool(
            _NARROW.min <= added.min() and added.max() <= _NARROW.max
        )
        self._open.frombytes(added.tobytes())
        while len(self._open) >= _BLOCK:
            self._blocks.append(_pack(self._open[:_BLOCK]))
            self._open = self._open[_BLOCK:]

    def unpacked(self) -> array[int]:
        """Give all of them, in 32 bits each if they fit."""
        values = array("i" if self._is_narrow else "q", [0]) * len(self)
        view = np.asarray(values)
        for number, block in enumerate(self._blocks):
            view[number * _BLOCK : (number + 1) * _BLOCK] = _unpack(block)
        view[len(self._blocks) * _BLOCK :] = self._open
        return values


def _pack(values: array[int]) -> bytes:
    """Compress the differences of neighbours, all first bytes first, then all second ones."""
    steps = np.diff(np.asarray(values), prepend=0)
    shuffled = np.ascontiguousarray(steps.view(np.uint8).reshape(-1, 8).T)
    return isal_zlib.compress(shuffled.tobytes(), _LEVEL)


def _unpack(block: bytes) -> Vector:
    shuffled = np.frombuffer(isal_zlib.decompress(block), np.uint8).reshape(8, -1)
    steps: Vector = np.ascontiguousarray(shuffled.T).view(np.int64).reshape(-1)
    return np.cumsum(steps)
