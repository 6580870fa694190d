"""By what a run was labelled and how well it is covered, in words that every report shares."""

from __future__ import annotations

from fractions import Fraction

from agent.compare.figures import percent
from agent.core.rules import GRADES, Coverage, RuleSet


def ruleset_phrase(ruleset: RuleSet) -> str:
    """Name a rule set, its version and its digest."""
    return f"rules {ruleset.name}@{ruleset.version}, digest {ruleset.digest[:12]}"


def ruleset_cell(ruleset: RuleSet) -> str:
    """Name a rule set in a column of its own."""
    return f"{ruleset.name}@{ruleset.version} {ruleset.digest[:12]}"


def coverage_phrase(coverage: Coverage) -> str:
    """Give the coverage contract as shares of kernel time."""
    return " · ".join(
        f"{grade} {share(getattr(coverage, grade), coverage.total)}"
        for grade in (*GRADES, "unlabelled")
    )


def share(part: int, whole: int) -> str:
    """Write a part of a whole in per cent; small parts keep a digit that is not 0."""
    return small(Fraction(part, whole) if whole else Fraction(0))


def small(value: Fraction) -> str:
    """Write a share that may be small."""
    return percent(value, 2 if not value or value >= Fraction(1, 10_000) else 4, signed=False)
