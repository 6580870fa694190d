"""An admitted verdict -> the next text of the rule file, its diff and what it moves; pure.

Nothing is written here: `agent.review.commit` writes exactly the text that was drafted.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent.core.kernels import Trace
from agent.core.names import canonical_name
from agent.core.proposals import Origin, Verdict
from agent.core.rules import Acceptance, CategoryId, Rule, RuleId, RuleSet
from agent.review.gatenames import is_catch_all
from agent.review.naming import new_rule_id
from agent.ruleset.codec import builtin_version, parse_rules
from agent.ruleset.editing import with_rule
from agent.ruleset.failure import rule_file_error
from agent.ruleset.files import RULE_FILE
from agent.ruleset.lint import lint_rules
from agent.ruleset.match import Matcher, Pattern
from agent.ruleset.moves import Move as NameMove
from agent.ruleset.moves import moved_names
from agent.ruleset.overlap import declares
from agent.ruleset.writing import file_text

MAX_EXAMPLES, MAX_COUNTEREXAMPLES = 5, 2
MAX_NEAR_NAME = 250
"""Names longer than this are no near misses: they would drown the rule in the diff."""
_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]{2,}")
_HEAD = re.compile(r"[^<(]*")
_COMMON = frozenset({"void", "kernel", "const", "int", "float"})
"""Words that make no two kernels look alike."""


@dataclass(frozen=True, slots=True)
class Move:
    """Kernels that change their category; `rules` are those that labelled them before."""

    category_from: CategoryId
    category_to: CategoryId
    names: int
    count: int
    time_ns: int
    rules: tuple[RuleId, ...] = ()


@dataclass(frozen=True, slots=True)
class Moves:
    """What a new rule changes on one trace; `total_ns` is all its kernel time.

    `kernels` are the names that move with their counts and times, most time first.
    """

    moves: tuple[Move, ...] = ()
    kernels: tuple[tuple[str, int, int], ...] = ()
    total_ns: int = 0

    @property
    def names(self) -> int:
        """Distinct raw names that move."""
        return len(self.kernels)

    @property
    def count(self) -> int:
        """Events that move."""
        return sum(move.count for move in self.moves)

    @property
    def time_ns(self) -> int:
        """Kernel time that moves."""
        return sum(move.time_ns for move in self.moves)


@dataclass(frozen=True, slots=True)
class Draft:
    """The rule file with one more rule; `before` is None where the file is new."""

    rule: Rule
    ruleset: RuleSet
    before: str | None
    after: str
    diff: tuple[str, ...]
    moves: Moves


def draft_rule(
    verdict: Verdict,
    acceptance: Acceptance,
    *,
    text: str | None,
    ruleset: RuleSet,
    name: str = RULE_FILE,
    trace: Trace | None = None,
) -> Draft:
    """Draft the rule file that holds the admitted rule.

    `text` is the rule file now (None: there is none) and `ruleset` what it means; `name` is how
    the diff calls it.

    Raises:
        ValueError: the verdict does not admit.
        RuleFileError: the text cannot take the rule, or lint would fail because of it.
    """
    if not verdict.admitted or verdict.level < "L3":
        message = "only an admitted, source-validated proposal becomes a rule"
        raise ValueError(message)
    rule = _rule(verdict, acceptance, ruleset, trace)
    if text is None:
        after = file_text(version=1, extends=f"builtin@{builtin_version()}", rules=[rule])
    else:
        after = with_rule(text, rule, before=_overridden(rule, ruleset, name))
    extended = parse_rules(after, source=name)
    _check_clean(extended, rule.id, name)
    return Draft(
        rule,
        extended,
        text,
        after,
        unified_diff(text, after, name),
        what_moves(trace, ruleset, extended),
    )


def unified_diff(before: str | None, after: str, name: str) -> tuple[str, ...]:
    """Give the lines of the unified diff, without line ends."""
    old = "/dev/null" if before is None else f"a/{name}"
    lines = difflib.unified_diff(
        _lines(before or ""), _lines(after), fromfile=old, tofile=f"b/{name}", lineterm=""
    )
    return tuple(part for line in lines for part in line.split("\n"))


def what_moves(trace: Trace | None, old: RuleSet, new: RuleSet) -> Moves:
    """Compare the labels of a trace under two rule sets."""
    if trace is None:
        return Moves()
    moved = moved_names(trace, old, new)
    groups: dict[tuple[CategoryId, CategoryId], list[NameMove]] = {}
    for one in moved:
        groups.setdefault((one.before, one.after), []).append(one)
    moves = [_move(key, members) for key, members in groups.items()]
    moves.sort(key=lambda move: (-move.time_ns, move.category_from, move.category_to))
    return Moves(tuple(moves), _kernels(moved), trace.kernel_ns)


def _check_clean(extended: RuleSet, added: RuleId, name: str) -> None:
    """Refuse a rule that makes lint fail; what was wrong before it is not its fault."""
    line = extended.by_id[added].line
    found = [
        finding
        for finding in lint_rules(extended, source=name)
        if finding.severity == "error"
        and (finding.location == f"{name}:{line}" or f'"{added}"' in finding.message)
    ]
    if found:
        raise rule_file_error(found)


def _rule(verdict: Verdict, acceptance: Acceptance, ruleset: RuleSet, trace: Trace | None) -> Rule:
    proposal = verdict.proposal
    examples = _examples(verdict)
    rule = Rule(
        id=new_rule_id(proposal.category, proposal.kernel, ruleset.by_id),
        category=CategoryId(proposal.category),
        kernel=proposal.kernel,
        grade="validated",
        op=proposal.op,
        input_dtypes=proposal.input_dtypes,
        dtypes_unknown=verdict.dtypes_unknown,
        overrides=proposal.overrides,
        examples=examples,
        counterexamples=_near_misses(verdict, examples, ruleset, trace),
        evidence=verdict.evidence,
        proposed_by=None if proposal.origin == Origin() else proposal.origin,
        accepted_by=acceptance,
    )
    return replace(rule, overrides=(*rule.overrides, *_also_overridden(rule, ruleset)))


def _also_overridden(rule: Rule, ruleset: RuleSet) -> tuple[RuleId, ...]:
    """Give rules that would take its names next, of a catch-all it takes from by declaration."""
    pattern, matcher, found = Pattern(rule.kernel), Matcher(ruleset), dict[RuleId, None]()
    known = (name for other in ruleset.rules for name in other.examples if pattern.found_in(name))
    for name in (*rule.examples, *known) if rule.overrides else ():
        takers = [one for one in matcher.matching_name(name) if is_catch_all(one)]
        declared = {one.category for one in takers if declares(rule, one)}
        found.update(
            dict.fromkeys(
                one.id for one in takers if one.category in declared and not declares(rule, one)
            )
        )
    return tuple(found)


def _examples(verdict: Verdict) -> tuple[str, ...]:
    pattern = Pattern(verdict.proposal.kernel)
    names = dict.fromkeys((*verdict.proposal.kernels, *verdict.matched))
    found = [name for name in names if _is_unicode(name) and pattern.found_in(name)]
    return tuple(found[:MAX_EXAMPLES])


def _near_misses(
    verdict: Verdict, examples: Sequence[str], ruleset: RuleSet, trace: Trace | None
) -> tuple[str, ...]:
    """Give names that look most like the examples and do not match: of the trace and the rules."""
    pattern, wanted = Pattern(verdict.proposal.kernel), _words(examples)
    names: set[str] = {signature.name for signature in trace.stats} if trace else set()
    for rule in ruleset.rules:
        if rule.category != verdict.proposal.category:
            names.update(rule.examples)
    near = [
        (-len(wanted & _words([name])), len(name), name)
        for name in names
        if len(name) <= MAX_NEAR_NAME and _is_unicode(name) and not pattern.found_in(name)
    ]
    close = sorted(entry for entry in near if entry[0])
    return tuple(name for *_, name in close[:MAX_COUNTEREXAMPLES])


def _overridden(rule: Rule, ruleset: RuleSet, name: str) -> RuleId | None:
    """Give the first rule of the same file that the new one overrides: it goes before that."""
    for other in ruleset.rules:
        if other.id in rule.overrides and other.source == name:
            return other.id
    return None


def _move(key: tuple[CategoryId, CategoryId], members: Sequence[NameMove]) -> Move:
    return Move(
        *key,
        names=len({one.name for one in members}),
        count=sum(one.count for one in members),
        time_ns=sum(one.time_ns for one in members),
        rules=tuple(sorted({one.rule_before for one in members if one.rule_before})),
    )


def _kernels(moved: Iterable[NameMove]) -> tuple[tuple[str, int, int], ...]:
    sums: dict[str, tuple[int, int]] = {}
    for one in moved:
        count, time_ns = sums.get(one.name, (0, 0))
        sums[one.name] = (count + one.count, time_ns + one.time_ns)
    rows = [(name, *sums[name]) for name in sums]
    return tuple(sorted(rows, key=lambda row: (-row[2], row[0])))


def _words(names: Iterable[str]) -> set[str]:
    """Give the words of the names themselves, template arguments and parameters left out."""
    heads = (_HEAD.match(canonical_name(name)) for name in names)
    found = (word.lower() for head in heads if head for word in _WORD.findall(head[0]))
    return set(found) - _COMMON


def _lines(text: str) -> list[str]:
    """Split at line feeds only, as git does."""
    lines = text.split("\n")
    ending = lines.pop()
    return [*lines, f"{ending}\n\\ No newline at end of file"] if ending else lines


def _is_unicode(name: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in name)
