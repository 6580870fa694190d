"""Shares and effects as text; times are written by `agent.compare.figures.Millis`."""

from __future__ import annotations

from fractions import Fraction

from agent.compare.figures import Millis, percent

__all__ = ["Millis", "effect", "share", "small"]


def share(part: int, whole: int) -> str:
    """Write a part of a whole in per cent; small parts keep a digit that is not 0."""
    return small(Fraction(part, whole) if whole else Fraction(0))


def small(value: Fraction) -> str:
    """Write a share that may be small."""
    return percent(value, 2 if not value or value >= Fraction(1, 10_000) else 4, signed=False)


def effect(value: Fraction) -> str:
    """Write an effect on the total, with the digits a small one needs."""
    return percent(value, 2 if not value or abs(value) >= Fraction(1, 1_000) else 4)
