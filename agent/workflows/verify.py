"""`verify`: is the source that each rule cites still there, at the commit checked out now?"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.proposals import Evidence
from agent.core.rules import Rule, RuleId, RuleSet
from agent.core.source import RepoInfo
from agent.errors import ReviewError, UsageError
from agent.source.verify import NEEDS_A_PERSON, EvidenceStatus


@dataclass(frozen=True)
class RuleStatus:
    """One rule with what became of each piece of its evidence."""

    rule: Rule
    evidence: tuple[EvidenceStatus, ...]

    @property
    def needs_person(self) -> bool:
        """Tell whether a person has to look at it."""
        return any(one.status in NEEDS_A_PERSON for one in self.evidence)


@dataclass(frozen=True)
class RuleFileUpdate:
    """A rule file with the line numbers and pins of moved evidence written anew."""

    path: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        """Give the change as a unified diff."""
        name = self.path.name
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
        return "".join(lines)


@dataclass(frozen=True)
class VerifyReport:
    """The rules that have evidence, in order; `update` where the rule file was rewritten."""

    ruleset: RuleSet
    repos: tuple[RepoInfo, ...]
    rules: tuple[RuleStatus, ...]
    update: RuleFileUpdate | None = None

    @property
    def needs_person(self) -> bool:
        """Tell whether any rule has to be looked at by a person: exit 1."""
        return any(rule.needs_person for rule in self.rules)


def verify_rules(
    repos: Sequence[str], *, rules: Path | None = None, update: bool = False
) -> VerifyReport:
    """Find the evidence of every rule in force again in the checkouts at their HEAD.

    With `update`, the lines and pins of evidence that merely moved are rewritten in the rule file,
    for the user to look at and commit; nothing is committed here.

    Raises:
        UsageError: no checkout is given, none that a rule cites, or the built-in file would have
            to be changed.
        RuleFileError, SourceError: the rules or a checkout cannot be used.
        ReviewError: the rule file cannot be written.
    """
    from agent.source.index import open_sources
    from agent.workflows.inputs import named_repos
    from agent.workflows.rulefile import rules_in_force

    if not repos:
        raise UsageError("VF001", "no checkout to verify against", hint="--repo [NAME=]DIR")
    ruleset = rules_in_force(rules)
    named = named_repos(repos)
    index = open_sources(named)
    try:
        _check_cited(named, ruleset)
        statuses = tuple(
            RuleStatus(rule, tuple(index.verify(entry) for entry in rule.evidence))
            for rule in ruleset.rules
            if rule.evidence
        )
    finally:
        index.close()
    written = _update(statuses, rules) if update else None
    return VerifyReport(ruleset, index.repos(), statuses, written)


def _check_cited(named: Sequence[tuple[str, Path]], ruleset: RuleSet) -> None:
    """Refuse checkouts of which nothing would be checked: that looks like success."""
    cited = sorted({entry.repo for rule in ruleset.rules for entry in rule.evidence})
    names = [name for name, _ in named]
    if not cited or set(cited) & set(names):
        return
    called = " or ".join(f'"{name}"' for name in names)
    message = f"no rule cites a checkout called {called}; cited: {', '.join(cited)}"
    hint = f"give it the name the rules use: --repo {cited[0]}={named[0][1]}"
    raise UsageError("VF003", message, hint=hint)


def _update(statuses: Sequence[RuleStatus], rules: Path | None) -> RuleFileUpdate | None:
    """Write moved evidence into the rule file; None when nothing moved."""
    from agent.review.replace import replace_file
    from agent.ruleset.editing import with_evidence
    from agent.workflows.workplace import open_workplace

    moved = {rule.rule.id: _moved(rule) for rule in statuses}
    moved = {rule_id: entries for rule_id, entries in moved.items() if entries}
    if not moved:
        return None
    place = open_workplace(rules)
    own = _own(moved, statuses, place.name)
    if place.text is None or not own:
        return None
    after = with_evidence(place.text, own)
    try:
        replace_file(place.path, after.encode("utf-8"))
    except OSError as err:
        message = f"the rule file cannot be written: {err.strerror}"
        raise ReviewError("VF002", message, location=place.name) from err
    return RuleFileUpdate(place.path, place.text, after)


def _own(
    moved: Mapping[RuleId, tuple[Evidence, ...]], statuses: Sequence[RuleStatus], name: str
) -> dict[RuleId, tuple[Evidence, ...]]:
    """Keep the rules that stand in the user's own file: shipped ones are never changed."""
    sources = {status.rule.id: status.rule.source for status in statuses}
    return {
        rule_id: entries
        for rule_id, entries in moved.items()
        if Path(sources[rule_id]).name == Path(name).name
    }


def _moved(status: RuleStatus) -> tuple[Evidence, ...]:
    """Give a rule's evidence with what moved at its new place; empty when nothing moved."""
    if not any(one.status == "MOVED" for one in status.evidence):
        return ()
    return tuple(
        one.found if one.status == "MOVED" and one.found is not None else one.evidence
        for one in status.evidence
    )
