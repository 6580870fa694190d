"""Parsed TOML -> `RuleSet`: the strict form of each part, then what must hold between them."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, TypeVar

import re2
from pydantic import BaseModel, ValidationError

from agent.core.proposals import Evidence, Finding
from agent.core.rules import UNLABELLED, Category, CategoryId, Rule, RuleId, RuleSet
from agent.core.text import shown
from agent.core.vocabulary import VOCABULARY
from agent.ruleset.forms import CategoryForm, RuleFileForm, RuleForm
from agent.ruleset.match import Pattern
from agent.ruleset.positions import Place, line_of

SCHEMA = 1
_FormT = TypeVar("_FormT", bound=BaseModel)


@dataclass
class Draft:
    """A rule file on its way: its parsed TOML, the lines of its places, and what is wrong.

    `shipped` says that the file is one of the package, whatever it is called.
    """

    parsed: dict[str, Any]
    lines: Mapping[Place, int]
    source: str
    shipped: bool = False
    found: list[tuple[int, Finding]] = field(default_factory=list)

    def report(self, code: str, message: str, place: Place, hint: str = "") -> None:
        """Add an error at a place of the file."""
        line = line_of(self.lines, place)
        location = f"{self.source}:{line}"
        self.found.append((line, Finding(code, message, location=location, hint=hint)))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything wrong, in the order of the lines."""
        return tuple(finding for _, finding in sorted(self.found))


def assembled(draft: Draft, *, base: RuleSet | None) -> tuple[RuleSet, tuple[Finding, ...]]:
    """Give the rule set of what is usable, and everything wrong with the rest."""
    head = _head(draft)
    declared = _declared(draft)
    version = head.version if head else 1
    name = "builtin" if draft.shipped else PurePath(draft.source).name
    source = f"builtin@{version}" if draft.shipped else name
    rules = _rules(draft, source)
    categories = _categories(declared, base)
    _check_categories(draft, categories)
    own = {rule.id for _, rule in rules}
    kept = [rule for _, rule in rules]
    kept += [rule for rule in (base.rules if base else ()) if rule.id not in own]
    ruleset = RuleSet(
        name=name,
        version=version,
        digest=digest(categories, kept),
        categories=categories,
        rules=tuple(kept),
        extends=head.extends if head else "",
    )
    return ruleset, draft.findings


def digest(categories: Iterable[Category], rules: Iterable[Rule]) -> str:
    """Give sha256 (hex) over what decides and justifies labels, in order.

    Comments, layout, examples, notes and authorship do not count; order, grades and evidence do.
    """
    meaning = {
        "categories": [[c.id, c.title, c.rollup] for c in sorted(categories, key=lambda c: c.id)],
        "rules": [_meaning(rule) for rule in rules],
    }
    text = json.dumps(meaning, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _meaning(rule: Rule) -> list[object]:
    dtypes, overrides = list(rule.input_dtypes), list(rule.overrides)
    evidence = [_evidence_meaning(entry) for entry in rule.evidence]
    return [
        rule.id, rule.category, rule.kernel, rule.op, dtypes, overrides, rule.grade, evidence,
        *(["dtypes_unknown"] if rule.dtypes_unknown else []),
    ]  # fmt: skip


def _evidence_meaning(entry: Evidence) -> list[object]:
    place = [entry.kind, entry.repo, entry.commit, entry.path, list(entry.lines)]
    return [*place, entry.symbol, entry.guard]


def _head(draft: Draft) -> RuleFileForm | None:
    """Check everything outside the lists of categories and rules."""
    outside = {key: value for key, value in draft.parsed.items() if key not in ("category", "rule")}
    schema = outside.get("schema")
    if type(schema) is int and schema != SCHEMA:
        hint = f"this release reads schema = {SCHEMA}"
        draft.report("RS004", f"unknown schema {schema}", ("schema",), hint=hint)
    for key in ("category", "rule"):
        if not isinstance(draft.parsed.get(key, []), list):
            draft.report("RS003", f"{key} must be a list of tables: [[{key}]]", (key,))
    return _form(draft, RuleFileForm, outside, ())


def _declared(draft: Draft) -> dict[CategoryId, Category]:
    declared: dict[CategoryId, Category] = {}
    for index, value in enumerate(_tables(draft, "category")):
        place = ("category", index)
        form = _form(draft, CategoryForm, value, place)
        if form is None:
            continue
        if form.id == UNLABELLED:
            draft.report("RS011", f'"{UNLABELLED}" cannot be declared', (*place, "id"))
        elif form.id in declared:
            draft.report("RS011", f'category "{form.id}" is declared twice', (*place, "id"))
        else:
            declared[CategoryId(form.id)] = form.value()
    return declared


def _categories(
    declared: Mapping[CategoryId, Category], base: RuleSet | None
) -> tuple[Category, ...]:
    """Give the vocabulary, then what the extended file and this one declare, each once."""
    known = {CategoryId(i): Category(CategoryId(i), title, row) for i, title, row in VOCABULARY}
    known.update({category.id: category for category in (base.categories if base else ())})
    known.update(declared)
    return tuple(known.values())


def _rules(draft: Draft, source: str) -> list[tuple[Place, Rule]]:
    rules: list[tuple[Place, Rule]] = []
    seen: dict[RuleId, int] = {}
    for index, value in enumerate(_tables(draft, "rule")):
        place = ("rule", index)
        form = _form(draft, RuleForm, value, place)
        if form is None:
            _check_rest(draft, value, place)
            continue
        line = line_of(draft.lines, place)
        rule = form.value(source, line)
        works = _patterns_work(draft, rule, place)
        _check_dtypes(draft, rule, place)
        if (first := seen.setdefault(rule.id, line)) != line:
            message = f'rule id "{rule.id}" is used twice, first in line {first}'
            draft.report("RS005", message, (*place, "id"))
        elif works:
            rules.append((place, rule))
    return rules


def _tables(draft: Draft, key: str) -> list[object]:
    value = draft.parsed.get(key, [])
    return value if isinstance(value, list) else []


def _form(draft: Draft, form: type[_FormT], value: object, place: Place) -> _FormT | None:
    try:
        return form.model_validate(value)
    except ValidationError as err:
        for error in err.errors(include_url=False, include_context=False):
            where = tuple(error["loc"])
            what = ".".join(str(part) for part in where)
            prefix = f"{shown(what, limit=100)}: " if what else ""
            message = prefix + _what(error["type"], error["msg"], error.get("input"))
            draft.report("RS003", message, (*place, *where))
        return None


def _what(kind: str, message: str, value: object) -> str:
    if kind == "extra_forbidden":
        return "unknown key"
    if kind == "missing":
        return "missing"
    text = message[:1].lower() + message[1:]
    return f"{text}, not {shown(repr(value), limit=60)}"


def _patterns_work(draft: Draft, rule: Rule, place: Place) -> bool:
    """Compile a rule's patterns and run its examples; False when a pattern does not compile."""
    kernel = _compiled(draft, rule.kernel, (*place, "kernel"))
    op = _compiled(draft, rule.op, (*place, "op")) if rule.op else kernel
    if kernel is None or op is None:
        return False
    for index, name in enumerate(rule.examples):
        if not kernel.found_in(name):
            message = f'rule "{rule.id}" does not match its example "{shown(name, limit=200)}"'
            draft.report("RS008", message, (*place, "examples", index))
    for index, name in enumerate(rule.counterexamples):
        if kernel.found_in(name):
            message = f'rule "{rule.id}" matches its counterexample "{shown(name, limit=200)}"'
            draft.report("RS009", message, (*place, "counterexamples", index))
    return True


def _check_dtypes(draft: Draft, rule: Rule, place: Place) -> None:
    if rule.dtypes_unknown and rule.input_dtypes:
        message = "input_dtypes and dtypes_unknown exclude each other: the rule would match nothing"
        draft.report("RS003", message, (*place, "dtypes_unknown"))


def _check_rest(draft: Draft, value: object, place: Place) -> None:
    """Check the patterns of a rule whose form is wrong, so that one run shows all."""
    if isinstance(value, dict):
        for key in ("kernel", "op"):
            if isinstance(pattern := value.get(key), str):
                _compiled(draft, pattern, (*place, key))


def _compiled(draft: Draft, pattern: str, place: Place) -> Pattern | None:
    try:
        return Pattern(pattern)
    except re2.error as err:
        reason = err.args[0].decode("utf-8", "replace") if err.args else "unknown error"
        message = f'"{shown(pattern, limit=200)}" is not a pattern RE2 accepts: {shown(reason)}'
        draft.report("RS007", message, place, hint="RE2 has no lookaround and no backreference")
        return None


def _check_categories(draft: Draft, categories: tuple[Category, ...]) -> None:
    known: set[str] = {category.id for category in categories}
    for index, value in enumerate(_tables(draft, "rule")):
        named = value.get("category") if isinstance(value, dict) else None
        if not isinstance(named, str) or named in known:
            continue
        near = difflib.get_close_matches(named, sorted(known), n=1)
        hint = f'did you mean "{near[0]}"?' if near else "declare it with [[category]]"
        if named == UNLABELLED:
            hint = "it means that no rule matches, so no rule can name it"
        message = f'unknown category "{shown(named, limit=100)}"'
        draft.report("RS006", message, ("rule", index, "category"), hint=hint)
