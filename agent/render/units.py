"""Times, shares and effects as text, the same in every kind of report."""

from __future__ import annotations

from fractions import Fraction

from agent.compare.contract import share, small
from agent.compare.figures import Millis, percent
from agent.compare.sides import SideSummary
from agent.compare.table import TraceDiff

__all__ = ["Millis", "effect", "millis_of", "share", "small"]


def millis_of(shown: TraceDiff | SideSummary) -> Millis:
    """Choose the decimals of a report: those its largest total needs."""
    if isinstance(shown, SideSummary):
        return Millis.fitting(shown.kernel_ns)
    return Millis.fitting(max(shown.base.kernel_ns, shown.new.kernel_ns))


def effect(value: Fraction) -> str:
    """Write an effect on the total, with the digits a small one needs."""
    return percent(value, 2 if not value or abs(value) >= Fraction(1, 1_000) else 4)
