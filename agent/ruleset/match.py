"""Apply a rule set: signature -> label. First match wins; time is linear in the name's length.

A rule's `kernel` is searched in the raw and in the canonical name, see `agent.core.names`.
"""

from __future__ import annotations

import re2

from agent.core.kernels import Signature, Trace
from agent.core.names import canonical_name
from agent.core.rules import UNLABELLED, Label, LabelledTrace, Rule, RuleSet

PATTERN_MEMORY = 1 << 23
"""Bytes one compiled pattern may take; RE2 then goes on without its cache, still linear."""


def options() -> re2.Options:
    """Give the one way patterns are compiled: silent, case-sensitive, without captures."""
    chosen = re2.Options()
    chosen.log_errors = False
    chosen.never_capture = True
    chosen.max_mem = PATTERN_MEMORY
    return chosen


class Pattern:
    """One compiled pattern over names as UTF-8."""

    def __init__(self, pattern: str) -> None:
        """Compile; raises `re2.error` when RE2 does not accept the pattern."""
        self._regexp = re2.compile(pattern.encode("utf-8", "replace"), options())

    def found_in(self, name: str) -> bool:
        """Tell whether the pattern is found in the raw or the canonical name."""
        return any(self._regexp.search(spelling) is not None for spelling in _spellings(name))


class Matcher:
    """A compiled rule set."""

    def __init__(self, ruleset: RuleSet) -> None:
        self.ruleset = ruleset
        self._kernels = [Pattern(rule.kernel) for rule in ruleset.rules]
        self._ops = [Pattern(rule.op) if rule.op else None for rule in ruleset.rules]
        self._names: dict[str, tuple[int, ...]] = {}

    def label(self, signature: Signature) -> Label:
        """Give the label of one signature: the first rule that matches it."""
        for index in self._by_name(signature.name):
            if self._applies(index, signature):
                rule = self.ruleset.rules[index]
                return Label(rule.category, rule.id, rule.grade)
        return Label(UNLABELLED)

    def matching(self, signature: Signature) -> tuple[Rule, ...]:
        """Give every rule that matches, the winner first."""
        rules = self.ruleset.rules
        return tuple(
            rules[index]
            for index in self._by_name(signature.name)
            if self._applies(index, signature)
        )

    def matching_name(self, name: str) -> tuple[Rule, ...]:
        """Give every rule whose `kernel` matches the name, whatever its op and dtypes."""
        return tuple(self.ruleset.rules[index] for index in self._by_name(name))

    def _by_name(self, name: str) -> tuple[int, ...]:
        known = self._names.get(name)
        if known is None:
            found = (i for i, pattern in enumerate(self._kernels) if pattern.found_in(name))
            known = self._names[name] = tuple(found)
        return known

    def _applies(self, index: int, signature: Signature) -> bool:
        rule, op = self.ruleset.rules[index], self._ops[index]
        if op is not None and not (signature.op and op.found_in(signature.op)):
            return False
        return _dtypes_agree(rule.input_dtypes, signature.input_dtypes)


def label_trace(trace: Trace, ruleset: RuleSet) -> LabelledTrace:
    """Label every signature of a trace."""
    matcher = Matcher(ruleset)
    return LabelledTrace(
        trace, ruleset, {signature: matcher.label(signature) for signature in trace.stats}
    )


def _dtypes_agree(wanted: tuple[str, ...], seen: tuple[str, ...]) -> bool:
    if not wanted:
        return True
    if len(seen) < len(wanted):
        return False
    return all(want in ("", dtype) for want, dtype in zip(wanted, seen, strict=False))


def _spellings(name: str) -> tuple[bytes, ...]:
    canonical = canonical_name(name)
    raw = name.encode("utf-8", "replace")
    return (raw,) if canonical == name else (raw, canonical.encode("utf-8", "replace"))
