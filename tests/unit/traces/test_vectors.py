"""Sums and groups over columns, against plain Python."""

from __future__ import annotations

import subprocess
import sys
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.traces.numbers import LARGEST_NS
from agent.traces.vectors import as_vector, distinct, in_groups, least_by, most_by, sums_by, total

TIMES = st.integers(0, LARGEST_NS)
GROUPED = st.lists(st.tuples(st.integers(0, 4), TIMES), max_size=50)


def split(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    groups, values = [group for group, _ in pairs], [value for _, value in pairs]
    return np.array(groups, np.uint32), np.array(values, np.int64)


@given(GROUPED)
def test_sums_are_exact_beyond_64_bits(pairs):
    groups, values = split(pairs)
    expected = [sum(value for group, value in pairs if group == one) for one in range(5)]
    assert sums_by(groups, values, 5) == expected
    assert total(values, groups == 2) == expected[2]


def test_a_sum_that_does_not_fit_in_64_bits_is_exact():
    assert total(np.full(5, LARGEST_NS), np.full(5, fill_value=True)) == 5 * LARGEST_NS > 1 << 63


@given(GROUPED)
def test_extremes_are_those_of_each_group(pairs):
    groups, values = split(pairs)
    for one in {group for group, _ in pairs}:
        of_group = [value for group, value in pairs if group == one]
        assert least_by(groups, values, 5)[one] == min(of_group)
        assert most_by(groups, values, 5)[one] == max(of_group)


@given(st.lists(st.integers(-(1 << 62), 1 << 62)))
def test_every_code_has_its_place_among_the_distinct_ones(codes):
    column = np.array(codes, np.int64)
    known, places = distinct(lambda block: column[block], len(codes))
    assert known == sorted(set(codes))
    assert [known[place] for place in places] == codes


def test_a_column_is_seen_without_a_copy():
    column = array("q", [1, 2])
    as_vector(column)[0] = 7
    assert column.tolist() == [7, 2]


def test_what_reads_no_trace_does_not_import_numpy():
    modules = "agent.cli, agent.workflows.diff, agent.workflows.readers, agent.compare.table"
    code = f"import sys, {modules}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("n_codes", [1, 3, 300, 40_000])
@pytest.mark.parametrize("length", [0, 1, 1_000, 65_536, 140_000])
def test_groups_hold_the_places_of_their_code(n_codes: int, length: int) -> None:
    codes = np.random.default_rng(length).integers(0, n_codes, length).astype(np.uint16)
    expected: dict[int, list[int]] = {}
    for place, code in enumerate(codes.tolist()):
        expected.setdefault(code, []).append(place)
    assert {code: places.tolist() for code, places in in_groups(codes)} == expected
