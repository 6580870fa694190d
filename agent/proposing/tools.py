"""What a model can ask for: read-only questions to the checkouts and to the trace, all bounded.

No action has an effect. Results are data: quoted line by line, made visible, cut with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.core.rules import LabelledTrace
from agent.core.source import CallSite, Definition, SourceHit, SourceIndex
from agent.core.text import shown
from agent.errors import SourceError
from agent.proposing.actions import (
    CheckPattern,
    FindCallSites,
    FindDefinition,
    ReadSource,
    SearchSource,
)
from agent.proposing.families import Family
from agent.proposing.fit import fit_of
from agent.proposing.prompts import quoted
from agent.ruleset.patterns import check_pattern

MAX_HITS, MAX_LINES, MAX_WIDTH, MAX_NAMES = 20, 60, 240, 5
_ASKED = MAX_HITS + 1
"""One more than is shown, to tell that there are more."""
MIN_TEXT = 3
"""Shorter texts stand in almost every file: they tell nothing, and cost a read of all."""
Question = SearchSource | FindDefinition | FindCallSites | ReadSource | CheckPattern


@dataclass(frozen=True)
class Toolbox:
    """Answers questions about one family."""

    source: SourceIndex
    labelled: LabelledTrace
    family: Family

    def answer(self, question: Question) -> str:
        """Give the result as text that is safe to send and to show."""
        try:
            return self._answer(question)
        except SourceError as err:
            hint = f"; {err.hint}" if err.hint else ""
            return f"error: {shown(f'{err.message}{hint}', limit=300)}"

    def _answer(self, question: Question) -> str:
        match question:
            case SearchSource(text=text):
                return _listed(map(_hit, self.source.search(_long(text), limit=_ASKED)))
            case FindDefinition(name=name):
                found = self.source.find_definition(_long(name), limit=_ASKED)
                return _listed(map(_definition, found))
            case FindCallSites(symbol=symbol):
                sites = self.source.find_call_sites(_long(symbol), limit=_ASKED)
                return _listed(map(_site, sites))
            case ReadSource():
                return quoted(self._read(question), limit=MAX_WIDTH, most=MAX_LINES)
            case CheckPattern():
                return quoted(self._tested(question.kernel), limit=MAX_WIDTH, most=MAX_LINES)

    def _read(self, question: ReadSource) -> Iterator[str]:
        last = min(question.last, question.first + MAX_LINES - 1)
        lines = self.source.read(question.repo, question.path, question.first, last)
        for number, text in enumerate(lines, question.first):
            yield f"{number}: {text}"

    def _tested(self, pattern: str) -> Iterator[str]:
        wrong = [finding for finding in check_pattern(pattern) if finding.severity == "error"]
        for finding in wrong:
            yield f"refused: {finding.code} {finding.message}"
        if wrong:
            return
        fit = fit_of(pattern, self.family, self.labelled)
        names = len(self.family.names)
        yield f"matches {len(fit.matched)} of the {names} names of the family"
        yield from _some("misses", fit.missed)
        yield from _some("steals", [f"{name} (rule {rule})" for name, rule in fit.stolen])
        yield from _some("also matches, of another category", fit.negatives)
        yield from _some("also matches, unlabelled", fit.others)


def _long(text: str) -> str:
    """Give a text back that is long enough to look for.

    Raises:
        SourceError: it is shorter than `MIN_TEXT`.
    """
    if len(text.strip()) < MIN_TEXT:
        what = f'"{text}" is too short to look for'
        raise SourceError("SC008", what, hint=f"ask for at least {MIN_TEXT} characters")
    return text


def _listed(lines: Iterable[str]) -> str:
    """Give what was found, one line each; more than `MAX_HITS` are cut with a note."""
    every = list(lines)
    said = quoted(every[:MAX_HITS], limit=MAX_WIDTH)
    more = "\n(there are more; ask for a longer or rarer text)" if len(every) > MAX_HITS else ""
    return f"{said}{more}"


def _some(what: str, names: Iterable[str]) -> Iterator[str]:
    every = list(names)
    for name in every[:MAX_NAMES]:
        yield f"{what}: {name}"
    if len(every) > MAX_NAMES:
        yield f"{what}: {len(every) - MAX_NAMES} more"


def _hit(hit: SourceHit) -> str:
    return f"{hit.repo} {hit.path}:{hit.line}: {hit.text.strip()}"


def _definition(found: Definition) -> str:
    runtime = "" if found.runtime else " (not runtime code)"
    where = f"{found.repo} {found.path}:{found.lines[0]}-{found.lines[1]}"
    return f"{where} {found.origin} {found.name}{runtime}"


def _site(site: CallSite) -> str:
    guards = f" when {' and '.join(site.guards)}" if site.guards else ""
    inside = f" in {site.qualname}" if site.qualname else ""
    return f"{site.repo} {site.path}:{site.lines[0]}-{site.lines[1]}{inside}{guards}: {site.text}"
