"""The gate: what a proposal must show before a person is asked, as a list of small checks.

No I/O here: rules, names, traces and the source index are given. The hard gates come first; source
is only read for a proposal whose schema, category and pattern hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from agent.core.kernels import Signature, Trace
from agent.core.proposal_form import claimed_history
from agent.core.proposals import EndState, Finding, Level, Proposal, RunContext, Verdict
from agent.core.rules import RuleSet
from agent.core.source import CallSite, Definition, Examination, SourceIndex
from agent.core.text import shown
from agent.review.gatecodes import by_weight
from agent.review.gatenames import (
    Taken,
    example_findings,
    idle_alternatives,
    name_findings,
    needed_literals,
    override_findings,
    taken_by,
)
from agent.review.gatetrace import (
    Confirmation,
    Runs,
    confirm,
    dtype_findings,
    matched_traces,
    needs_findings,
    told_by_absence,
    unseen_conditions,
)
from agent.review.gatewords import cut_findings, prose_findings
from agent.ruleset.match import Pattern
from agent.ruleset.patterns import check_pattern
from agent.source.names import is_generic_collective, origin_of

_MAX_NAMES = 60
_SHOWN = 3
_PLACES = 12


@dataclass
class Docket:
    """One proposal before the gate, with what the checks found so far."""

    proposal: Proposal
    ruleset: RuleSet
    names: Mapping[str, str]
    source: SourceIndex
    context: RunContext
    trace: Trace | None
    baseline: Trace | None
    findings: list[Finding] = field(default_factory=list)
    taken: Taken | None = None
    examination: Examination | None = None
    confirmation: Confirmation = field(default_factory=Confirmation)

    def refused(self) -> bool:
        """Tell whether an error was found."""
        return any(finding.severity == "error" for finding in self.findings)

    def kernels(self) -> tuple[str, ...]:
        """Give the names the evidence must account for: declared, or open in the trace."""
        opened = (signature.name for signature in (self.taken or Taken()).open)
        return tuple(dict.fromkeys((*self.proposal.kernels, *opened)))[:_MAX_NAMES]


Check = Callable[[Docket], Iterable[Finding]]


def judge_proposal(  # noqa: PLR0913 - the contract's parameters, all but the first by name
    proposal: Proposal,
    *,
    ruleset: RuleSet,
    names: Mapping[str, str],
    source: SourceIndex,
    context: RunContext,
    trace: Trace | None = None,
    baseline: Trace | None = None,
) -> Verdict:
    """Judge one proposal: admitted needs level L3 and no error.

    `names` maps kernel names to the category no rule may take from them. Findings come with the
    most telling one first.
    """
    docket = Docket(proposal, ruleset, names, source, context, trace, baseline)
    for check in _FORM_CHECKS:
        docket.findings.extend(check(docket))
    safe = not docket.refused()
    for check in _SOURCE_CHECKS:
        docket.findings.extend(check(docket))
    return _verdict(docket, name_safe=safe)


def _category(docket: Docket) -> Iterator[Finding]:
    category = docket.proposal.category
    if category in docket.ruleset.category_ids and category.isascii():
        return
    same = [str(one) for one in docket.ruleset.category_ids if one.lower() == category.lower()]
    hint = f"did you mean {same[0]}?" if same else "a new category is a separate, reviewed change"
    yield Finding(
        "E_CATEGORY", f'"{shown(category, limit=60)}" is no category of the rule file', hint=hint
    )


def _pattern(docket: Docket) -> Iterator[Finding]:
    yield from check_pattern(docket.proposal.kernel)
    if docket.proposal.op:
        wrong = [one for one in check_pattern(docket.proposal.op) if one.code in _SYNTAX]
        yield from (replace(one, message=f"op: {one.message}") for one in wrong)


def _names(docket: Docket) -> Iterator[Finding]:
    docket.taken = taken_by(docket.proposal, docket.ruleset, docket.names, docket.trace)
    if docket.taken is not None:
        yield from name_findings(docket.proposal, docket.taken, docket.trace)


def _examples(docket: Docket) -> Iterator[Finding]:
    """Examples of other categories: an error, unless only a longer name of the same stem is."""
    if docket.taken is not None:
        found = docket.examination
        bases = {one.name.rpartition("::")[2] for one in found.defined} if found else set()
        yield from example_findings(docket.proposal, docket.taken, frozenset(bases))


def _repeated(docket: Docket) -> Iterator[Finding]:
    """One place that is cited twice proves nothing twice."""
    for first, second in combinations(docket.proposal.evidence, 2):
        same = (first.kind, first.repo, first.path) == (second.kind, second.repo, second.path)
        other_symbol = first.kind == "binary" and first.symbol != second.symbol
        begin, end = max(first.lines[0], second.lines[0]), min(first.lines[1], second.lines[1])
        if same and begin <= end and not other_symbol:
            place = f"{first.path}:{begin}"
            message = f"{place} is cited twice as {first.kind}"
            yield Finding("E_SCHEMA", message, location=place, hint="cite each place once")
            return


def _claims(docket: Docket) -> Iterator[Finding]:
    if claim := claimed_history(docket.proposal.rationale):
        message = f'"{shown(claim, limit=60)}" claims history, which the checkout cannot show'
        yield Finding(
            "E_UNVERIFIABLE_CLAIM", message, hint="leave it out: it is never kept as a fact"
        )


def _decidable(docket: Docket) -> Iterator[Finding]:
    names = (*docket.proposal.kernels, docket.proposal.kernel)
    if any(is_generic_collective(name) for name in names):
        message = "RCCL's Generic kernel does not name its collective: only its launching op tells"
        yield Finding("E_NOT_DECIDABLE", message)


def _examined(docket: Docket) -> Iterator[Finding]:
    if any(one.code in _FATAL for one in docket.findings):
        return
    proposal = docket.proposal
    docket.examination = docket.source.examine(
        proposal.evidence,
        names=docket.kernels(),
        category=proposal.category,
        context=docket.context,
        pattern=proposal.kernel,
        listed=(docket.taken or Taken()).listed[:_MAX_NAMES],
    )
    yield from docket.examination.findings


def _trusted(docket: Docket) -> Iterator[Finding]:
    """A declared kernel that nobody has seen counts only when the evidence defines it."""
    found, taken = docket.examination, docket.taken
    if found is None or taken is None or docket.trace is not None or not docket.proposal.kernels:
        return
    known = set(docket.names) | {
        example for rule in docket.ruleset.rules for example in rule.examples
    }
    if known & set(docket.proposal.kernels) or taken.listed:
        return
    if found.proven & {"DEF", "TAB", "SKEL", "INST", "BIN"}:
        return
    if all(
        origin_of(name) in ("aten", "aten-cast", "inductor") for name in docket.proposal.kernels
    ):
        return
    message = (
        "the declared kernels are in no trace and no list, and the evidence defines none of them"
    )
    yield Finding("E_NO_KERNEL_MATCHED", message)


def _siblings(docket: Docket) -> Iterator[Finding]:
    """Kernels of the same source that the pattern takes along without evidence."""
    found = docket.examination
    if found is None or not found.defined or not found.proven & {"DEF", "TAB", "SKEL"}:
        return
    if any(one.code == "E_STEALS" and one.severity == "error" for one in docket.findings):
        return
    pattern = Pattern(docket.proposal.kernel)
    proven = {one.name for one in found.defined} | set(docket.proposal.kernels)
    others = [
        one
        for literal in needed_literals(docket.proposal.kernel)
        for one in docket.source.named_like(literal)
        if one.name not in proven and pattern.found_in(one.name)
    ]
    if not others:
        return
    listed = ", ".join(dict.fromkeys(one.name for one in others[:_SHOWN]))
    message = f"it also takes {listed}, which the evidence does not define"
    specific = _as_specific(docket, found.defined) and _longer(others, found.defined)
    severity = "warning" if specific else "error"
    yield Finding("E_STEALS", message, severity, hint="anchor the pattern")  # type: ignore[arg-type]


def _longer(others: Sequence[Definition], defined: Sequence[Definition]) -> bool:
    """Tell whether all other names only add to a defined one."""
    bases = {one.name.rpartition("::")[2] for one in defined}
    return all(any(base in one.name for base in bases) for one in others)


def _as_specific(docket: Docket, defined: Sequence[Definition]) -> bool:
    """Tell whether the pattern spells a defined name out in full for kernels that it declares."""
    if not docket.proposal.kernels or any(one.origin == "aiter-asm" for one in defined):
        return False
    bases = {one.name.rpartition("::")[2] for one in defined}
    return any(base in docket.proposal.kernel for base in bases)


def _overrides(docket: Docket) -> Iterator[Finding]:
    if not any(one.code == "E_STEALS" for one in docket.findings):
        kernels = docket.kernels() or (docket.taken or Taken()).listed
        yield from override_findings(docket.proposal, docket.ruleset, kernels)


def _alternatives(docket: Docket) -> Iterator[Finding]:
    """Alternatives that match none of the kernels it is for take others without evidence."""
    kernels = docket.kernels() or (docket.taken or Taken()).listed
    idle = idle_alternatives(docket.proposal.kernel, kernels) if kernels else ()
    if idle:
        listed = ", ".join(f'"{shown(text, limit=60)}"' for text in idle[:_SHOWN])
        message = f"alternatives of the pattern match none of the kernels it is for: {listed}"
        hint = "leave them out, or declare those kernels and cite what defines them"
        yield Finding("E_UNPROVEN_KERNEL", message, hint=hint)


def _words(docket: Docket) -> Iterator[Finding]:
    yield from prose_findings(docket.proposal.kernels)
    kernels = docket.kernels() or (docket.taken or Taken()).listed
    yield from cut_findings(docket.proposal.kernel, kernels)


def _dtypes(docket: Docket) -> Iterator[Finding]:
    yield from dtype_findings(docket.proposal)


def _traced(docket: Docket) -> Iterator[Finding]:
    found = docket.examination
    if found is None:
        return
    if docket.trace is None and found.origin != "aten-cast":
        yield from unseen_conditions(docket.proposal)
    open_signatures: tuple[Signature, ...] = (docket.taken or Taken()).open
    runs = Runs(docket.trace, docket.baseline)
    docket.confirmation = confirm(docket.proposal, found, runs, open_signatures, docket.source)
    yield from docket.confirmation.findings
    if found.complete:
        yield from needs_findings(docket.proposal, found, docket.confirmation, open_signatures)


def _lookalikes(docket: Docket) -> Iterator[Finding]:
    found = docket.examination
    if found is None or not found.lookalikes:
        return
    message = f"other places convert the same way: {_places(found.lookalikes)}"
    yield Finding("E_LOOKALIKES", message, "note")


def _other_sites(docket: Docket) -> Iterator[Finding]:
    """Say that other places launch it too, unless a stack of the trace tells where it ran."""
    found = docket.examination
    if found is None or not found.other_sites:
        return
    if any(one.code == "E_STACK" for one in docket.findings):
        return
    count = len(found.other_sites)
    launch = "place launches" if count == 1 else "places launch"
    message = f"{count} other {launch} it as directly, and no stack tells which ran: "
    yield Finding("E_OTHER_SITES", message + _places(found.other_sites), "note")


def _places(sites: Sequence[CallSite]) -> str:
    listed = ", ".join(f"{one.path}:{one.lines[0]} ({one.qualname})" for one in sites[:_PLACES])
    more = len(sites) - _PLACES
    return f"{listed} and {more} more" if more > 0 else listed


_SYNTAX = frozenset({"E_REGEX_SYNTAX", "E_NON_ASCII", "E_TOO_LONG", "E_NESTED_QUANTIFIER"})
_FATAL = frozenset({"E_REGEX_SYNTAX", "E_NON_ASCII", "E_TOO_LONG", "E_CATEGORY"})
_FORM_CHECKS: tuple[Check, ...] = (
    _category, _repeated, _claims, _pattern, _names, _words, _overrides, _alternatives, _decidable,
    _dtypes,
)  # fmt: skip
_SOURCE_CHECKS: tuple[Check, ...] = (
    _examined, _examples, _trusted, _siblings, _traced, _lookalikes, _other_sites,
)  # fmt: skip


def _verdict(docket: Docket, *, name_safe: bool) -> Verdict:
    found = docket.examination
    findings = tuple(sorted(dict.fromkeys(docket.findings), key=by_weight))
    errors = any(finding.severity == "error" for finding in findings)
    evidence = found.evidence if found is not None else docket.proposal.evidence
    level = _level(docket, name_safe=name_safe, errors=errors)
    end_state: EndState = found.end_state if found is not None else ""
    return Verdict(
        docket.proposal,
        admitted=not errors and level in ("L3", "L4"),
        level=level,
        findings=findings,
        evidence=matched_traces(evidence, docket.source, docket.trace),
        end_state=end_state,
        matched=_matched(docket),
        dtypes_unknown=found is not None and told_by_absence(docket.proposal, found),
    )


def _level(docket: Docket, *, name_safe: bool, errors: bool) -> Level:
    found = docket.examination
    if not name_safe:
        return "L0"
    if found is None or not found.proven:
        return "L1"
    if errors or not found.complete:
        return "L2"
    return "L4" if docket.confirmation.confirmed else "L3"


def _matched(docket: Docket) -> tuple[str, ...]:
    taken = docket.taken or Taken()
    if docket.trace is not None:
        return tuple(dict.fromkeys(signature.name for signature in taken.open))
    return docket.kernels() or taken.listed[:_MAX_NAMES]
