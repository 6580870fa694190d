"""What a part of a comparison (a rank, a stream, a stage) says that the whole does not."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from agent.compare.table import TraceDiff
from agent.core.proposals import Finding
from agent.core.rules import CategoryId

LEAST_APART = Fraction(1, 1_000)
"""Effects on the total that are less apart are taken for alike."""


@dataclass(frozen=True, slots=True)
class Unlike:
    """A category with another effect in a part than over all; each is of its own base's total."""

    category: CategoryId
    here: Fraction
    over_all: Fraction


def unlike(part: TraceDiff, whole: TraceDiff) -> tuple[Unlike, ...]:
    """Give the part's categories whose effect differs, most different first.

    There are none where one of the two allows no claim.
    """
    if not (part.conclusive and whole.conclusive):
        return ()
    over_all = {impact.category: impact.effect for impact in whole.impacts}
    pairs = [
        Unlike(impact.category, impact.effect, over_all.get(impact.category, Fraction(0)))
        for impact in part.impacts
    ]
    apart = [one for one in pairs if abs(one.here - one.over_all) >= LEAST_APART]
    return tuple(sorted(apart, key=lambda one: (-abs(one.here - one.over_all), one.category)))


def own_findings(part: TraceDiff, whole: TraceDiff) -> tuple[Finding, ...]:
    """Give the findings whose kind the whole has not, and that of work in another ratio."""
    said = {finding.code for finding in whole.findings}
    if part.work.ratio != whole.work.ratio:
        said.discard("DF120")
    return tuple(finding for finding in part.findings if finding.code not in said)
