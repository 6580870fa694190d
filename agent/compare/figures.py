"""Exact fractions as text, rounded half to even and the same on every machine."""

from __future__ import annotations

from fractions import Fraction


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
