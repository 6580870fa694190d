"""Exact fractions as text, rounded half to even and the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

NS_PER_MS = 1_000_000


def percent(value: Fraction, digits: int = 2, *, signed: bool = True) -> str:
    """Give a fraction of 1 as `+1.02 %`."""
    return f"{decimal(100 * value, digits, signed=signed)} %"


def decimal(value: Fraction | int, digits: int, *, signed: bool = False) -> str:
    """Give a number with a fixed number of decimals and thousands separators."""
    scaled = round(Fraction(value) * 10**digits)
    whole, part = divmod(abs(scaled), 10**digits)
    sign = "-" if scaled < 0 else "+" if signed and scaled > 0 else ""
    tail = f".{part:0{digits}d}" if digits else ""
    return f"{sign}{whole:,}{tail}"


def ratio_text(ratio: Fraction) -> str:
    """Give a ratio with four significant decimals and no trailing zeros."""
    text = decimal(ratio, 4)
    return text.rstrip("0").rstrip(".")


def fraction_of(part: int, whole: int) -> Fraction:
    """Give `part / whole`; 0 where the whole is empty."""
    return Fraction(part, whole) if whole else Fraction(0)


def rounded_to_sum(values: Sequence[Fraction]) -> list[int]:
    """Round values so that they add up to their rounded sum, each by less than 1.

    All are rounded down, then the largest remainders up; of equal ones those that come first.
    """
    rounded = [floor(value) for value in values]
    left = round(sum(values)) - sum(rounded)
    by_remainder = sorted(range(len(values)), key=lambda at: rounded[at] - values[at])
    for at in by_remainder[:left]:
        rounded[at] += 1
    return rounded


@dataclass(frozen=True, slots=True)
class Millis:
    """Writes nanoseconds as milliseconds; `digits` is chosen from the report's largest time."""

    digits: int

    @classmethod
    def fitting(cls, largest_ns: int) -> Millis:
        """Give about six significant digits to the largest time, and never less than 0."""
        for limit_ms, digits in ((100_000, 0), (10_000, 1), (1_000, 2), (1, 3)):
            if largest_ns >= limit_ms * NS_PER_MS:
                return cls(digits)
        return cls(6)

    def __call__(self, ns: int | Fraction, *, signed: bool = False) -> str:
        """Write a time."""
        return decimal(Fraction(ns) / NS_PER_MS, self.digits, signed=signed)
