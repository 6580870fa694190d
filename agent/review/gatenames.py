"""What a proposed pattern takes: every kernel name that is known, and to whom it belongs now.

Known are the signatures of the trace under the rules in force, names of a list (with the category
no rule may take from them), and the examples of all rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import re2

from agent.core.kernels import KernelName, Signature, Trace
from agent.core.names import canonical_name
from agent.core.proposals import Finding, Proposal
from agent.core.rules import CATCH_ALL, UNLABELLED, CategoryId, Rule, RuleId, RuleSet
from agent.core.text import shown
from agent.ruleset.match import Matcher, Pattern
from agent.ruleset.overlap import declares
from agent.ruleset.syntax import Node, branches, read_pattern
from agent.source.names import kernel_ref

_SHOWN = 3
_LETTERS = re.compile(r"[A-Za-z]{3}")
_NOTATION = re.compile(r"\b(?:instance|clone|anonymous namespace|lambda|const|void)\b")
_NUMBERED = re.compile(
    r"\bfloat8_copy_kernel_cuda\b.{0,80}?[\[{]lambda\([\w:]+\)(?:#(\d)| \(instance (\d)\))"
)
_FP8_TYPES = {"1": "e4m3fn", "2": "e5m2", "3": "e4m3fnuz", "4": "e5m2fnuz", "5": "e8m0fnu"}
"""What the number after the lambda of `float8_copy_kernel_cuda` stands for, as in PyTorch."""


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


def override_findings(
    proposal: Proposal, ruleset: RuleSet, kernels: Sequence[str]
) -> Iterator[Finding]:
    """Say which overrides name nothing, no catch-all, or nothing that matches the kernels.

    Without kernels, or where only dtypes decide, what an override takes cannot be told.
    """
    matcher = _matcher(ruleset)
    matching = {rule.id for name in kernels for rule in matcher.matching_name(name)}
    for target in proposal.overrides:
        probe = _probe(proposal, target)
        named = [rule for rule in ruleset.rules if declares(probe, rule)]
        said = f'"{shown(target, limit=60)}"'
        if not named:
            yield Finding("E_OVERRIDES", f"it overrides {said}, which is no rule and no category")
        elif not any(map(is_catch_all, named)):
            hint = "kernels with a label of their own are never taken"
            yield Finding("E_OVERRIDES", f"{said} is no catch-all to take from", hint=hint)
        elif matching and matching.isdisjoint(rule.id for rule in named):
            message = f"it overrides {said}, which matches none of its kernels"
            yield Finding("E_OVERRIDES", message, hint="leave it out")


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


def idle_alternatives(pattern: str, kernels: Sequence[str]) -> tuple[str, ...]:
    """Give what alternatives of a pattern spell that no kernel it is for holds.

    Short ones (`1|2`) and those without letters only say where a name may begin or end.
    """
    try:
        variants = list(_variants(read_pattern(pattern)))
    except (ValueError, RecursionError):
        return ()
    spellings = [spelling for name in kernels for spelling in (name, canonical_name(name))]
    spelled = dict.fromkeys(max(_pieces(variant), key=len, default="") for variant in variants)
    return tuple(
        text for text in spelled if text and not any(text in spelling for spelling in spellings)
    )


def _variants(node: Node) -> Iterator[Node]:
    """Yield the pattern once for each telling alternative, with that one alone in its place."""
    for index, part in enumerate(node.parts):
        if node.kind == "alternate":
            if _tells(part):
                yield from _variants(part) if _has_choice(part) else (part,)
        else:
            for variant in _variants(part):
                yield replace(node, parts=(*node.parts[:index], variant, *node.parts[index + 1 :]))


def _has_choice(node: Node) -> bool:
    return any(one.kind == "alternate" and any(map(_tells, one.parts)) for one in node.walk())


def _tells(node: Node) -> bool:
    """Tell whether an alternative spells a part of a name: at least three letters in a row.

    What only profilers write differently, `(instance 3)` for `#3`, is no part of one.
    """
    return any(_LETTERS.search(_NOTATION.sub(" ", piece)) for piece in _pieces(node))


def _pieces(node: Node) -> tuple[str, ...]:
    """Give the texts that every match holds; what is optional or one of several divides them."""
    pieces = [""]
    for part in node.parts if node.kind == "concat" else (node,):
        match part.kind:
            case "literal":
                pieces[-1] += part.text
            case "assertion":
                pass
            case "concat" | "repeat" if part.least:
                first, *rest = _pieces(part if part.kind == "concat" else part.parts[0])
                pieces[-1] += first
                pieces += rest or ([""] if part.kind == "repeat" and part.most != 1 else [])
            case _:
                pieces.append("")
    return tuple(pieces)


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
        elif not _undecided(proposal, category, name):
            found.stolen.setdefault(name, category)
    for rule, example in _examples(ruleset):
        if not pattern.found_in(example):
            continue
        if rule.category == proposal.category:
            found.listed.setdefault(example)
        elif not _undecided(proposal, rule.category, example):
            _from_rule(proposal, rule, example, found)


def _undecided(proposal: Proposal, category: str, name: str) -> bool:
    """Tell whether a bare name does not show if a rule takes it, or shows that it does not.

    A rule that asks for dtypes never takes a name of which none are known; in a catch-all, where
    casts hide, the name alone does not tell. A copy to FP8 is numbered by the type it writes.
    """
    if not proposal.input_dtypes:
        return False
    written = _written(name)
    return category in CATCH_ALL or bool(
        written and not proposal.input_dtypes[0].endswith(f"_{written}")
    )


def _written(name: str) -> str:
    """Give the FP8 type that the name of a copy kernel says it writes; "" when it says none."""
    found = _NUMBERED.search(canonical_name(name))
    return _FP8_TYPES.get(found.group(1) or found.group(2), "") if found is not None else ""


def _from_declared(proposal: Proposal, ruleset: RuleSet, found: _Gathered) -> None:
    """A declared kernel that the rules in force label otherwise is taken from that rule."""
    matcher = _matcher(ruleset)
    for name in proposal.kernels:
        category, rule = label_now(Signature(KernelName(name)), matcher)
        if category in (UNLABELLED, proposal.category) or rule is None:
            continue
        if _undecided(proposal, category, name):
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
    return declares(_probe(proposal, *proposal.overrides), rule)


def _probe(proposal: Proposal, *overrides: str) -> Rule:
    return Rule(
        RuleId("proposal"), CategoryId(proposal.category), proposal.kernel, "validated",
        overrides=overrides,
    )  # fmt: skip


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
