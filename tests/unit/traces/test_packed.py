"""A packed column gives back what was put into it."""

from __future__ import annotations

import random
from array import array

import numpy as np
import pytest

from agent.traces.packed import PackedColumn


@pytest.mark.parametrize("n_values", [0, 1, 65_535, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("largest", [1, 255, 2**31, 2**63 - 1])
def test_what_was_put_in_comes_out(n_values: int, largest: int) -> None:
    rng = random.Random(n_values)
    values = [rng.randint(-largest, largest) for _ in range(n_values)]
    column = PackedColumn()
    at = 0
    while at < n_values:
        size = rng.choice([100, 500, 7_000, 140_000])
        part = values[at : at + size]
        column.append(rng.choice([part, array("q", part), np.array(part, np.int64)]))
        at += size
    assert len(column) == n_values
    assert list(column.unpacked()) == values
    assert column.unpacked() == column.unpacked()


def test_the_ends_of_64_bits_are_kept() -> None:
    column = PackedColumn()
    column.append([2**63 - 1, -(2**63), 0, 2**63 - 1] * 20_000)
    assert list(column.unpacked())[-4:] == [2**63 - 1, -(2**63), 0, 2**63 - 1]


def test_more_than_64_bits_are_refused() -> None:
    with pytest.raises(OverflowError):
        PackedColumn().append([2**63])


def test_even_steps_take_a_byte_or_two_each() -> None:
    column = PackedColumn()
    column.append([7_000 + 24_000 * at + at % 3 for at in range(163_840)])
    assert sum(map(len, column._blocks)) < 2 * sum(column._sizes)


@pytest.mark.parametrize(("value", "code"), [(2**31 - 1, "i"), (2**31, "q"), (-(2**31) - 1, "q")])
def test_what_fits_in_32_bits_takes_32(value: int, code: str) -> None:
    column = PackedColumn()
    column.append([1, value])
    column.append([])
    assert column.unpacked() == array(code, [1, value])
    assert column.unpacked().typecode == code
