"""Findings that forbid a conclusion, and those of a whole that forbid one from its parts too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from agent.compare.capture import Capture
from agent.compare.phases import By
from agent.core.proposals import Finding

INCOMPARABLE = frozenset({"DF101", "DF102", "DF103", "DF104", "DF105"})
INCOMPLETE = frozenset({"DF110", "DF111"})
CORRUPT = frozenset({"DF112"})

_CURED: Mapping[By, frozenset[str]] = {
    "stage": frozenset({"DF103", "DF105"}),
    "rank": INCOMPLETE | CORRUPT | {"DF102"},
    "stream": frozenset(),
}
"""What each cut may cure, so that parts are judged by themselves: a rank has its own capture."""

_ONCE_CUT: Mapping[tuple[str, By], str] = {
    ("DF102", "rank"): "give the same ranks on both sides",
    ("DF103", "stage"): "capture the same stages on both sides",
}


def bounds_within(findings: Iterable[Finding], by: By, *, corrupt: bool) -> tuple[Finding, ...]:
    """Give the findings of a whole by which its parts allow no conclusion either."""
    binding = (INCOMPARABLE | INCOMPLETE | (CORRUPT if corrupt else frozenset())) - _CURED[by]
    return tuple(finding for finding in findings if finding.code in binding)


def has_any(findings: Iterable[Finding], codes: Collection[str]) -> bool:
    """Tell whether a finding has one of the codes."""
    return any(finding.code in codes for finding in findings)


def are_corrupt(captures: Iterable[Capture], bounds: Iterable[Finding]) -> bool:
    """Tell whether durations of a side are corrupt, or those of the whole it is a part of."""
    return has_any(bounds, CORRUPT) or any(capture.corrupt for capture in captures)


def without_spent_hints(findings: Iterable[Finding], by: By) -> tuple[Finding, ...]:
    """Give findings with another hint in place of one to compare as is done already."""
    return tuple(
        replace(finding, hint=_ONCE_CUT.get((finding.code, by), finding.hint))
        for finding in findings
    )
