"""A long column of integers that is read once, if at all, and kept compressed until then."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from isal import isal_zlib

from agent.traces.vectors import Vector

_BLOCK = 65_536
_LEVEL = 1
_NARROW = np.iinfo(np.int32)


class PackedColumn:
    """Integers of 64 bits; those of a trace mostly grow evenly and shrink to a byte or two each.

    What is appended is packed in blocks of at least `_BLOCK`; the rest lies open.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._sizes: list[int] = []
        self._open: list[Vector] = []
        self._n_open = 0
        self._is_narrow = True

    def __len__(self) -> int:
        """Give how many there are."""
        return sum(self._sizes) + self._n_open

    def append(self, values: Sequence[int] | Vector) -> None:
        """Append some integers; they are copied.

        Raises:
            OverflowError: one does not fit in 64 bits.
        """
        self._open.append(np.array(values, np.int64))
        self._n_open += len(values)
        if self._n_open >= _BLOCK:
            block = self._take_open()
            self._blocks.append(_pack(block))
            self._sizes.append(len(block))

    def unpacked(self) -> array[int]:
        """Give all of them, in 32 bits each if they fit."""
        rest = self._take_open()
        self._open, self._n_open = [rest], len(rest)
        values = array("i" if self._is_narrow else "q", [0]) * len(self)
        view, at = np.asarray(values), 0
        for block, size in zip(self._blocks, self._sizes, strict=True):
            view[at : at + size] = _unpack(block)
            at += size
        view[at:] = rest
        return values

    def _take_open(self) -> Vector:
        """Take what lies open, in one piece."""
        values: Vector = np.concatenate(self._open) if self._open else np.empty(0, np.int64)
        if len(values):
            self._is_narrow &= bool(_NARROW.min <= values.min() <= values.max() <= _NARROW.max)
        self._open, self._n_open = [], 0
        return values


def _pack(values: Vector) -> bytes:
    """Compress the differences of neighbours, all first bytes first, then all second ones."""
    steps = np.diff(values, prepend=0)
    shuffled = np.ascontiguousarray(steps.view(np.uint8).reshape(-1, 8).T)
    return isal_zlib.compress(shuffled.tobytes(), _LEVEL)


def _unpack(block: bytes) -> Vector:
    shuffled = np.frombuffer(isal_zlib.decompress(block), np.uint8).reshape(8, -1)
    steps: Vector = np.ascontiguousarray(shuffled.T).view(np.int64).reshape(-1)
    return np.cumsum(steps)
