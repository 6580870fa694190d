"""Rules against each other's names: who shadows whom, what overlaps, who wins nothing on a trace.

A name is matched here whatever its op and dtypes, for an example has none: a rule with conditions
may win it, one without always does. Only rules whose dtypes exclude each other never meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agent.core.kernels import Trace
from agent.core.proposals import Finding
from agent.core.rules import Rule, RuleId, RuleSet
from agent.core.text import shown
from agent.ruleset.match import Matcher

_MAX_NAMED = 5
"""How many overlaps of one rule are named each; a pattern like `.*` overlaps all others."""


def declares(rule: Rule, other: Rule) -> bool:
    """Tell whether a rule declares that it overrides another.

    `overrides` names rule ids, all ids below one (`elementwise.*`), or a whole category.
    """
    return any(
        target in (other.id, other.category)
        or (target.endswith(".*") and other.id.startswith(target[:-1]))
        for target in rule.overrides
    )


def never_meet(one: Rule, other: Rule) -> bool:
    """Tell whether the dtypes that two rules ask for rule out a launch that both match."""
    if one.dtypes_unknown or other.dtypes_unknown:
        return any(one.input_dtypes) or any(other.input_dtypes)
    pairs = zip(one.input_dtypes, other.input_dtypes, strict=False)
    return any(left and right and left != right for left, right in pairs)


@dataclass
class RuleNames:
    """A rule set with what matches each name, asked once a name."""

    ruleset: RuleSet
    matcher: Matcher = field(init=False)
    _known: dict[str, tuple[Rule, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compile the rules."""
        self.matcher = Matcher(self.ruleset)

    def matching(self, name: str) -> tuple[Rule, ...]:
        """Give the rules that match a name, in order."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self.matcher.matching_name(name)
        return known


def overlap_findings(
    names: RuleNames, own: tuple[Rule, ...], trace: Trace | None = None
) -> Iterator[tuple[Rule, Finding]]:
    """Find examples that another rule takes, rules that never decide, and undeclared overlaps."""
    mine = {rule.id for rule in own}
    for rule in own:
        yield from _shadow_findings(names, rule)
    sources = [(rule, name) for rule in names.ruleset.rules for name in rule.examples]
    overlaps = _overlaps(names, (name for _, name in sources), mine)
    seen = {signature.name for signature in trace.stats} if trace is not None else set()
    for pair, name in _overlaps(names, sorted(seen), mine).items():
        overlaps.setdefault(pair, name)
    rules = names.ruleset.by_id
    named: Counter[RuleId] = Counter()
    for (winner, loser), name in overlaps.items():
        blamed = rules[winner] if winner in mine else rules[loser]
        named[blamed.id] += 1
        if named[blamed.id] <= _MAX_NAMED:
            yield blamed, _overlap(rules[winner], rules[loser], name)
    for rule_id, count in named.items():
        if count > _MAX_NAMED:
            message = f'rule "{rule_id}" overlaps {count - _MAX_NAMED} more rules in this way'
            yield rules[rule_id], Finding("RS026", message, hint="narrow its pattern")


def _overlap(winner: Rule, loser: Rule, name: str) -> Finding:
    message = (
        f'rule "{winner.id}" ({winner.category}) also takes from "{loser.id}" '
        f'({loser.category}): "{shown(name, limit=200)}"'
    )
    hint = f'if that is meant, declare it in "{winner.id}": overrides = ["{loser.id}"]'
    return Finding("RS026", message, hint=hint)


def trace_findings(
    names: RuleNames, own: tuple[Rule, ...], trace: Trace
) -> Iterator[tuple[Rule, Finding]]:
    """Note rules that win nothing on a trace, and who takes what they match."""
    losses: dict[RuleId, Counter[RuleId]] = {}
    winners: set[RuleId] = set()
    for signature in trace.stats:
        matching = names.matcher.matching(signature)
        winners.update(rule.id for rule in matching[:1])
        for loser in matching[1:]:
            losses.setdefault(loser.id, Counter())[matching[0].id] += 1
    for rule in own:
        if rule.id not in winners:
            yield rule, Finding("RS031", _wins_nothing(rule, losses.get(rule.id, {})), "note")


def _wins_nothing(rule: Rule, takers: Mapping[RuleId, int]) -> str:
    if not takers:
        return f'rule "{rule.id}" matches nothing on this trace'
    by_whom = ", ".join(f'"{taker}" takes {count}' for taker, count in sorted(takers.items()))
    return f'rule "{rule.id}" wins nothing on this trace: of the names it matches {by_whom}'


def _shadow_findings(names: RuleNames, rule: Rule) -> Iterator[tuple[Rule, Finding]]:
    matched = [name for name in rule.examples if rule in names.matching(name)]
    takers = [_taker(names, rule, name) for name in matched]
    if takers and all(takers):
        who = ", ".join(sorted({f'"{taker.id}"' for taker in takers if taker}))
        message = f'rule "{rule.id}" never decides: {who} before it takes all its examples'
        yield rule, Finding("RS024", message)
    for name, taker in zip(matched, takers, strict=True):
        if taker is not None and taker.category != rule.category:
            message = (
                f'"{taker.id}" takes an example of "{rule.id}" and labels it {taker.category}: '
                f'"{shown(name, limit=200)}"'
            )
            yield rule, Finding("RS025", message)


def _taker(names: RuleNames, rule: Rule, name: str) -> Rule | None:
    """Give the rule before this one that takes a name whatever its op and dtypes."""
    for other in names.matching(name):
        if other.id == rule.id:
            return None
        if other.by_name_alone:
            return other
    return None


def _overlaps(
    names: RuleNames, texts: Iterable[str], mine: set[RuleId]
) -> dict[tuple[RuleId, RuleId], str]:
    """Give undeclared pairs of winner and loser of different categories, each with one name."""
    found: dict[tuple[RuleId, RuleId], str] = {}
    for name in texts:
        matching = names.matching(name)
        for index, winner in enumerate(matching):
            for loser in matching[index + 1 :]:
                if loser.category == winner.category or not {winner.id, loser.id} & mine:
                    continue
                if not declares(winner, loser) and not never_meet(winner, loser):
                    found.setdefault((winner.id, loser.id), name)
    return found
