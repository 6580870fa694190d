"""What a proposed pattern takes: every kernel name that is known, and to whom it belongs now.

Known are the signatures of the trace under the rules in force, names of a list (with the category
no rule may take from them), and the examples of all rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import re2

from agent.core.kernels import KernelName, Signature, Trace
from agent.core.proposals import Finding, Proposal
from agent.core.rules import CATCH_ALL, UNLABELLED, CategoryId, Rule, RuleId, RuleSet
from agent.core.text import shown
from agent.ruleset.match import Matcher, Pattern
from agent.ruleset.overlap import declares
from agent.ruleset.syntax import Node, branches, read_pattern
from agent.source.names import kernel_ref

_SHOWN = 3


@dataclass(frozen=True)
class Taken:
    """What a pattern matches among all that is known.

    Attributes:
        undeclared: declared kernels that it does not match.
        open: signatures of the trace it takes that are unlabelled or in an overridden catch-all.
        own: signatures of the trace that have its category already.
        stolen: (name, category) it takes from another category without the right to.
        examples: (name, category) of examples of other categories it takes.
        overridden: rules whose kernels it takes by declaration.
        listed: names of the list, and examples, of its own category.
    """

    undeclared: tuple[str, ...] = ()
    open: tuple[Signature, ...] = ()
    own: tuple[Signature, ...] = ()
    stolen: tuple[tuple[str, str], ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    overridden: tuple[RuleId, ...] = ()
    listed: tuple[str, ...] = ()


@dataclass
class _Gathered:
    open: list[Signature] = field(default_factory=list)
    own: list[Signature] = field(default_factory=list)
    stolen: dict[str, str] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    overridden: set[RuleId] = field(default_factory=set)
    listed: dict[str, None] = field(default_factory=dict)


def taken_by(
    proposal: Proposal, ruleset: RuleSet, names: Mapping[str, str], trace: Trace | None
) -> Taken | None:
    """Gather what a proposal takes; None when its pattern does not compile."""
    try:
        pattern = Pattern(proposal.kernel)
        op = Pattern(proposal.op) if proposal.op else None
    except re2.error:
        return None
    found = _Gathered()
    if trace is not None:
        _from_trace(proposal, pattern, op, ruleset, trace, found)
    _from_declared(proposal, ruleset, found)
    _from_lists(proposal, pattern, ruleset, names, found)
    return Taken(
        tuple(name for name in proposal.kernels if not pattern.found_in(name)),
        tuple(sorted(found.open)),
        tuple(sorted(found.own)),
        tuple(sorted(found.stolen.items())),
        tuple(sorted(found.examples.items())),
        tuple(sorted(found.overridden)),
        tuple(found.listed),
    )


def name_findings(proposal: Proposal, taken: Taken, trace: Trace | None) -> Iterator[Finding]:
    """Say what a proposal steals or misses."""
    if taken.stolen:
        yield _steals(taken.stolen)
    for name in taken.undeclared[:_SHOWN]:
        message = f'it does not match the kernel it is for: "{shown(name, limit=100)}"'
        yield Finding("E_NO_KERNEL_MATCHED", message)
    missed = not (taken.open or taken.undeclared or taken.stolen)
    if trace is not None and missed:
        if taken.own:
            message = "every kernel of the trace that it matches has this category already"
        else:
            message = "no kernel of the trace matches"
        yield Finding("E_NO_KERNEL_MATCHED", message)
    if trace is None and not proposal.kernels and not taken.listed:
        yield Finding("E_NO_KERNEL_MATCHED", "no known kernel matches, and none is declared")
    for rule in taken.overridden:
        message = f"it takes kernels that {rule} labels now, as it declares"
        yield Finding("E_OVERRIDES", message, "note")


def example_findings(
    proposal: Proposal, taken: Taken, defined: frozenset[str]
) -> Iterator[Finding]:
    """Say which examples of other categories a proposal takes.

    A pattern that spells out, for declared kernels, the whole name that its evidence defines also
    matches longer names of that stem: a warning to anchor it, because reviewers see what moves.
    """
    spelled = tuple(base for base in defined if base in proposal.kernel and proposal.kernels)
    longer = tuple(
        (name, category)
        for name, category in taken.examples
        if any(kernel_ref(name).base.startswith(f"{base}_") for base in spelled)
    )
    others = tuple(pair for pair in taken.examples if pair not in longer)
    if others:
        yield _steals(others)
    if longer:
        yield replace(_steals(longer), severity="warning", hint="anchor the pattern")


def _steals(pairs: tuple[tuple[str, str], ...]) -> Finding:
    listed = "; ".join(
        f'"{shown(name, limit=70)}" is {category}' for name, category in pairs[:_SHOWN]
    )
    more = f" and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
    hint = "make the pattern narrower, or declare the rule it overrides"
    return Finding("E_STEALS", f"it takes kernels of other categories: {listed}{more}", hint=hint)


def needed_literals(pattern: str) -> tuple[str, ...]:
    """Give, for each alternative of a pattern, the longest text that every match of it holds."""
    try:
        chosen = (max(_needed(branch), key=len) for branch in branches(read_pattern(pattern)))
        return tuple(dict.fromkeys(literal for literal in chosen if literal))
    except (ValueError, RecursionError):
        return ()


def _needed(node: Node) -> tuple[str, ...]:
    pieces = [""]
    for part in node.parts if node.kind == "concat" else (node,):
        if part.kind == "literal":
            pieces[-1] += part.text
        elif part.kind != "assertion":
            inner = _needed(part) if part.kind == "concat" else ()
            pieces += [*inner, ""]
    return tuple(pieces)


def is_catch_all(rule: Rule) -> bool:
    """Tell whether a rule holds kernels for want of a better one; a validated one never does."""
    return rule.category in CATCH_ALL and rule.grade != "validated"


@lru_cache(maxsize=8)
def _matcher(ruleset: RuleSet) -> Matcher:
    return Matcher(ruleset)


def label_now(signature: Signature, matcher: Matcher) -> tuple[CategoryId, Rule | None]:
    """Give the category of a signature under the rules in force, and the rule."""
    label = matcher.label(signature)
    rule = matcher.ruleset.by_id[label.rule_id] if label.rule_id is not None else None
    return label.category, rule


def _from_trace(
    proposal: Proposal,
    pattern: Pattern,
    op: Pattern | None,
    ruleset: RuleSet,
    trace: Trace,
    found: _Gathered,
) -> None:
    matcher = _matcher(ruleset)
    for signature in trace.stats:
        if not _applies(proposal, pattern, op, signature):
            continue
        category, rule = label_now(signature, matcher)
        if category == UNLABELLED:
            found.open.append(signature)
        elif category == proposal.category:
            found.own.append(signature)
        elif rule is not None and _may_take(proposal, rule):
            found.open.append(signature)
            found.overridden.add(rule.id)
        else:
            found.stolen.setdefault(signature.name, category)


def _from_lists(
    proposal: Proposal,
    pattern: Pattern,
    ruleset: RuleSet,
    names: Mapping[str, str],
    found: _Gathered,
) -> None:
    """Gather what a pattern takes of the listed names and the examples."""
    for name, category in names.items():
        if not pattern.found_in(name):
            continue
        if category == proposal.category:
            found.listed.setdefault(name)
        elif not _undecided(proposal, category):
            found.stolen.setdefault(name, category)
    for rule, example in _examples(ruleset):
        if not pattern.found_in(example):
            continue
        if rule.category == proposal.category:
            found.listed.setdefault(example)
        elif not _undecided(proposal, rule.category):
            _from_rule(proposal, rule, example, found)


def _undecided(proposal: Proposal, category: str) -> bool:
    """Tell whether a bare name does not show if a rule takes it.

    A rule that asks for dtypes never takes a name of which none are known; in a catch-all, where
    casts hide, the name alone does not tell.
    """
    return bool(proposal.input_dtypes) and category in CATCH_ALL


def _from_declared(proposal: Proposal, ruleset: RuleSet, found: _Gathered) -> None:
    """A declared kernel that the rules in force label otherwise is taken from that rule."""
    matcher = _matcher(ruleset)
    for name in proposal.kernels:
        category, rule = label_now(Signature(KernelName(name)), matcher)
        if category in (UNLABELLED, proposal.category) or rule is None:
            continue
        if _undecided(proposal, category):
            continue
        if _may_take(proposal, rule):
            found.overridden.add(rule.id)
        else:
            found.stolen.setdefault(name, category)


def _from_rule(proposal: Proposal, rule: Rule, example: str, found: _Gathered) -> None:
    if _may_take(proposal, rule):
        found.overridden.add(rule.id)
    else:
        found.examples.setdefault(example, rule.category)


def _may_take(proposal: Proposal, rule: Rule) -> bool:
    """Tell whether a declared override may take a rule's kernels: only from a catch-all."""
    if not is_catch_all(rule):
        return False
    probe = Rule(
        RuleId("proposal"), CategoryId(proposal.category), proposal.kernel, "validated",
        overrides=proposal.overrides,
    )  # fmt: skip
    return declares(probe, rule)


def _applies(
    proposal: Proposal, pattern: Pattern, op: Pattern | None, signature: Signature
) -> bool:
    if not pattern.found_in(signature.name):
        return False
    if op is not None and not (signature.op and op.found_in(signature.op)):
        return False
    wanted, seen = proposal.input_dtypes, signature.input_dtypes
    if len(seen) < len(wanted):
        return False
    return all(want in ("", dtype) for want, dtype in zip(wanted, seen, strict=False))


def applies(proposal: Proposal, signature: Signature) -> bool:
    """Tell whether a proposal, as a rule, would match a signature."""
    op = Pattern(proposal.op) if proposal.op else None
    return _applies(proposal, Pattern(proposal.kernel), op, signature)


def _examples(ruleset: RuleSet) -> Iterator[tuple[Rule, str]]:
    for rule in ruleset.rules:
        for example in rule.examples:
            yield rule, example
