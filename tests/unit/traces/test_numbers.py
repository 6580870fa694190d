"""Times are exact integers for every way a number can be written."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.traces.numbers import LARGEST_NS, to_ns
from agent.traces.times import all_to_ns

EXACT = {
    "three decimals": (b"1772442166525160.130", 1772442166525160130),
    "17 digits keep the last": (b"1772442166525160.137", 1772442166525160137),
    "an integer": (b"4909913692199", 4909913692199000),
    "a string": (b'"1772442166525160.130"', 1772442166525160130),
    "a string with spaces": (b'" 1.5 "', 1500),
    "one decimal": (b"0.5", 500),
    "none before the point after joining": (b"0.130", 130),
    "an exponent": (b"1.5e3", 1500000),
    "a small exponent": (b"1E-3", 1),
    "more decimals than a nanosecond": (b"1.0006", 1001),
    "half to even": (b"1.0005", 1000),
    "negative": (b"-5.000", -5000),
    "zero": (b"0", 0),
    "minus zero": (b"-0.000", 0),
}


def many(tokens):
    times, unusable = all_to_ns(tokens)
    return [None if at in unusable else time for at, time in enumerate(times.tolist())]


@pytest.mark.parametrize(("token", "ns"), EXACT.values(), ids=EXACT)
def test_exact(token, ns):
    assert to_ns(token) == ns
    assert many([token]) == [ns]
    assert many([b"1.000", token, b"2.000"]) == [1000, ns, 2000]


@pytest.mark.parametrize(
    "token",
    [
        *(b"", b"null", b"true", b'""', b'"NaN"', b'"inf"', b'"N/A"', b"1e400", b"9" * 30),
        *(b"{}", b"[1]", b'"\xff"', b"9223372036854775.808", b"-9223372036854775.808", b"1" * 70),
    ],
)
def test_no_time(token):
    assert to_ns(token) is None
    assert many([token, b"2.000"]) == [None, 2000]


def test_no_tokens():
    assert many([]) == []


@given(st.lists(st.integers(-LARGEST_NS, LARGEST_NS), min_size=1, max_size=20))
def test_three_decimals_are_the_nanoseconds(numbers):
    tokens = [
        f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}".encode() for ns in numbers
    ]
    assert many(tokens) == numbers


@given(st.lists(st.decimals(-(10**12), 10**12, places=3), min_size=1, max_size=8), st.data())
def test_mixed_spellings_are_read_one_by_one(numbers, data):
    spellings = [
        data.draw(st.sampled_from([f"{number}", f"{number:f}", f'"{number}"', f"{number:E}"]))
        for number in numbers
    ]
    expected = [int(Decimal(number) * 1000) for number in numbers]
    assert many([text.encode() for text in spellings]) == expected


_TOKENS = (
    "0",
    "12.345",
    "0.500",
    "1.5",
    "1.1e5",
    "1.234e5",
    "12.34E1",
    "null",
    "",
    '"1.12"',
    '"1.123"',
    '"1.000,2.000"',
    "-1.234",
    "-0.001",
    "1.2345",
    "123456789012345678.123",
    "99999999999999999999.123",
)


@pytest.mark.parametrize("seed", range(200))
def test_many_times_at_once_are_those_of_each_alone(seed):
    rng = random.Random(seed)
    tokens = [rng.choice(_TOKENS).encode() for _ in range(rng.randrange(1, 6))]
    assert many(tokens) == list(map(to_ns, tokens))
