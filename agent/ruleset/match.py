"""Apply a rule set: signature -> label. First match wins; time is linear in the name's length.

A rule's `kernel` is searched in the raw and in the canonical name, see `agent.core.names`; for
Triton before 3.0, which appends how the arguments are specialised, also in the name without that;
for a mangled name that was cut, also in what can be read of it. All patterns are tried at once: a
scan for the literals they need leaves a few candidates of 300 rules, which are then tried in order
until one decides. On 5,000 names this takes a fifth (names as they are) to a twelfth (names of
5 kB) of the time of one pattern after the other (`benchmarks/rules.py`, docs/decisions/0031).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import re2

from agent.core.kernels import Signature, Trace
from agent.core.names import canonical_name
from agent.core.rules import UNLABELLED, Label, LabelledTrace, Rule, RuleSet
from agent.ruleset.mangled import read_cut

PATTERN_MEMORY = 1 << 20
"""Bytes one compiled pattern may take; RE2 then goes on without its cache, still linear."""

_SPECIALISED = re.compile(r"_0(?:[cde]+1|1[0-9]*[cde])[0-9cde]*")
"""What Triton 2 appends: argument numbers, `d` divisible by 16, `c` equal to 1, `e` by 8."""

_CHUNK_PATTERNS = 1_000
_CHUNK_CHARACTERS = 16_384
"""What one literal scan may hold: at about 65,000 characters RE2 refuses to build it."""


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
        self._regexp = re2.compile(_utf8(pattern), options())

    def found_in(self, name: str) -> bool:
        """Tell whether the pattern is found in the raw or the canonical name."""
        return any(self._regexp.search(spelling) is not None for spelling in _spellings(name))

    def search(self, text: str) -> bool:
        """Tell whether the pattern is found in the text as it is."""
        return self._regexp.search(_utf8(text)) is not None


class Matcher:
    """A compiled rule set."""

    def __init__(self, ruleset: RuleSet) -> None:
        """Compile all rules; raises `re2.error` when RE2 does not accept a pattern."""
        self.ruleset = ruleset
        self._kernels = _PatternSet([rule.kernel for rule in ruleset.rules])
        self._ops = [Pattern(rule.op) if rule.op else None for rule in ruleset.rules]
        self._names: dict[str, tuple[int, ...]] = {}

    def label(self, signature: Signature) -> Label:
        """Give the label of one signature: the first rule that matches it."""
        for index in self._deciding(signature.name):
            if self._applies(index, signature):
                rule = self.ruleset.rules[index]
                return Label(rule.category, rule.id, rule.grade)
        return Label(UNLABELLED)

    def label_trace(self, trace: Trace) -> LabelledTrace:
        """Label every signature of a trace."""
        labels = {signature: self.label(signature) for signature in trace.stats}
        return LabelledTrace(trace, self.ruleset, labels)

    def matching(self, signature: Signature) -> tuple[Rule, ...]:
        """Give every rule that matches, the winner first."""
        return tuple(
            self.ruleset.rules[index]
            for index in self._kernels.found_in(signature.name)
            if self._applies(index, signature)
        )

    def matching_name(self, name: str) -> tuple[Rule, ...]:
        """Give every rule whose `kernel` matches the name, whatever its op and dtypes."""
        return tuple(self.ruleset.rules[index] for index in self._kernels.found_in(name))

    def _deciding(self, name: str) -> tuple[int, ...]:
        """Give the rules that match by name, up to the first that asks nothing else."""
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = tuple(self._up_to_first(name))
        return known

    def _up_to_first(self, name: str) -> Iterator[int]:
        for index in self._kernels.found_in(name):
            yield index
            if self.ruleset.rules[index].by_name_alone:
                return

    def _applies(self, index: int, signature: Signature) -> bool:
        rule, op = self.ruleset.rules[index], self._ops[index]
        if op is not None and not (signature.op and op.search(signature.op)):
            return False
        if rule.dtypes_unknown:
            return not any(signature.input_dtypes)
        return _dtypes_agree(rule.input_dtypes, signature.input_dtypes)


def label_trace(trace: Trace, ruleset: RuleSet) -> LabelledTrace:
    """Label every signature of a trace."""
    return Matcher(ruleset).label_trace(trace)


class _PatternSet:
    """Many patterns behind scans for their literals."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._chunks = [
            (start, scan, [scan.re(index).search for index in range(len(chunk))])
            for start, chunk in _chunks(patterns)
            for scan in (_filter(chunk),)
        ]

    def found_in(self, name: str) -> Iterator[int]:
        """Give the indices of the patterns found in a name, in order, each tried when asked for."""
        spellings = _spellings(name)
        raw = spellings[-1]
        # A literal in another spelling is one in a raw name that starts with it.
        scanned = (raw,) if all(map(raw.startswith, spellings)) else spellings
        for start, scan, searches in self._chunks:
            candidates: set[int] = set()
            for spelling in scanned:
                candidates.update(scan.Match(spelling, potential=True) or ())
            for index in sorted(candidates):
                search = searches[index]
                if any(search(spelling) is not None for spelling in spellings):
                    yield start + index


def _filter(patterns: Sequence[str]) -> re2.Filter:
    chosen, built = options(), re2.Filter()
    for pattern in patterns:
        built.Add(_utf8(pattern), chosen)
    built.Compile()
    return built


def _chunks(patterns: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    start, size = 0, 0
    for index, pattern in enumerate(patterns):
        size += len(pattern)
        if index > start and (size > _CHUNK_CHARACTERS or index - start >= _CHUNK_PATTERNS):
            yield start, patterns[start:index]
            start, size = index, len(pattern)
    if start < len(patterns):
        yield start, patterns[start:]


def _dtypes_agree(wanted: tuple[str, ...], seen: tuple[str, ...]) -> bool:
    if not wanted:
        return True
    if len(seen) < len(wanted):
        return False
    return all(want in ("", dtype) for want, dtype in zip(wanted, seen, strict=False))


def _spellings(name: str) -> tuple[bytes, ...]:
    """Give the plain function name, the canonical and the raw name, each once; the raw one last.

    Plain is the name without what Triton 2 appends and, of a mangled name that was cut, what reads.
    """
    canonical = canonical_name(name)
    end = canonical.rfind("_0")
    specialised = end > 0 and _SPECIALISED.fullmatch(canonical, end)
    plain = canonical[:end] if specialised else canonical
    if canonical.startswith(("_Z", "__Z")):
        plain = read_cut(canonical) or canonical
    return tuple(map(_utf8, dict.fromkeys((plain, canonical, name))))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
