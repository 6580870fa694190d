"""Categories, rules, rule sets and labels as values.

Text <-> RuleSet is `agent.ruleset.codec`; applying one is `agent.ruleset.match`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NewType

from agent.core.frames import Tabular
from agent.core.kernels import Signature, SignatureStats, Trace, copies_of, kernels_of
from agent.core.proposals import Evidence, Origin
from agent.core.text import counted, shown

RuleId = NewType("RuleId", str)
CategoryId = NewType("CategoryId", str)
Grade = Literal["validated", "vendor", "inferred"]
GRADES: tuple[Grade, ...] = ("validated", "vendor", "inferred")

UNLABELLED = CategoryId("Unlabelled")
"""The category of a kernel no rule matches; no rule can name it."""

CATCH_ALL = frozenset({CategoryId("Elementwise"), CategoryId("Misc")})
"""Categories that hold kernels for want of a better one: a more telling rule may take from them."""


@dataclass(frozen=True, slots=True)
class Category:
    """One row of the report; `rollup` is the coarser row it folds into with `--rollup`, or ""."""

    id: CategoryId
    title: str
    rollup: str = ""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Who accepted a rule: a git author (`Name <mail>`) and an ISO date."""

    author: str
    date: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the rule file.

    A rule matches a signature when `kernel` is found in the raw or the canonical name (RE2,
    case-sensitive), and, where given, `op` is found in the launching op and `input_dtypes` equal
    the op's first dtypes position by position ("" matches any). A rule with `op` or `input_dtypes`
    never matches a signature whose op or dtypes are unknown; one with `dtypes_unknown` matches only
    signatures whose dtypes are.
    """

    id: RuleId
    category: CategoryId
    kernel: str
    grade: Grade
    op: str = ""
    input_dtypes: tuple[str, ...] = ()
    dtypes_unknown: bool = False
    overrides: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    proposed_by: Origin | None = None
    accepted_by: Acceptance | None = None
    note: str = ""
    source: str = ""
    """`builtin@3` or the file's name, and `line` within it: where a reader finds the rule."""
    line: int = 0

    @property
    def by_name_alone(self) -> bool:
        """Tell whether the name decides, whatever is known of the launch."""
        return not (self.op or self.input_dtypes or self.dtypes_unknown)


@dataclass(frozen=True)
class RuleSet:
    """Rules in order, first match wins; a file's own rules stand before those it extends.

    `digest` is sha256 (hex) over the meaning of the whole set, the extended file included.
    """

    name: str
    version: int
    digest: str
    categories: tuple[Category, ...]
    rules: tuple[Rule, ...]
    extends: str = ""

    @cached_property
    def category_ids(self) -> frozenset[CategoryId]:
        """Every declared category; `Unlabelled` is not one."""
        return frozenset(category.id for category in self.categories)

    @cached_property
    def by_id(self) -> Mapping[RuleId, Rule]:
        """Rules by id."""
        return {rule.id: rule for rule in self.rules}

    def rollup_of(self, category: CategoryId) -> str:
        """Give the coarser row of a category (itself where none is declared)."""
        return self._rollups.get(category, category)

    @cached_property
    def _rollups(self) -> dict[CategoryId, str]:
        rollups = {category.id: category.rollup or str(category.id) for category in self.categories}
        rollups[UNLABELLED] = "Others"
        return rollups


@dataclass(frozen=True, slots=True)
class Label:
    """The category of one signature and the rule that decided; no rule means unlabelled.

    `also` are rules of *other* categories that match too and lost by order.
    """

    category: CategoryId
    rule_id: RuleId | None = None
    grade: Grade | None = None
    also: tuple[RuleId, ...] = ()

    def __post_init__(self) -> None:
        """Hold the invariant: no rule id means `Unlabelled`, and the reverse."""
        if (self.rule_id is None) != (self.category == UNLABELLED):
            message = "a label without a rule is Unlabelled, and only that"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Kernel time by how well its label is founded, in ns; the four add up to the trace's total."""

    validated: int = 0
    vendor: int = 0
    inferred: int = 0
    unlabelled: int = 0

    @property
    def total(self) -> int:
        """All kernel time."""
        return self.validated + self.vendor + self.inferred + self.unlabelled


@dataclass(frozen=True, slots=True)
class CategoryTotal:
    """One category's kernels over all ranks."""

    category: CategoryId
    count: int
    time_ns: int


@dataclass(frozen=True, repr=False)
class LabelledTrace(Tabular):
    """A trace with a label for each of its signatures under one rule set.

    As a table: one row for each signature, copies and fills included.
    """

    trace: Trace
    ruleset: RuleSet
    labels: Mapping[Signature, Label]
    _all: Mapping[Signature, SignatureStats] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sum the ranks once."""
        object.__setattr__(self, "_all", self.trace.stats)

    def __repr__(self) -> str:
        """Give one line: the run, its kernels and their time, the rules."""
        run = self.trace
        figures = f"{counted(run.count, 'kernel')}, {run.kernel_ns:,} ns"
        rules = f"{shown(self.ruleset.name)}@{self.ruleset.version}"
        return f"<LabelledTrace {shown(run.name)}: {figures}, rules {rules}>"

    @cached_property
    def stats(self) -> Mapping[Signature, SignatureStats]:
        """Signature table of the kernels over all ranks: what categories and coverage add up."""
        return kernels_of(self._all)

    @cached_property
    def copies(self) -> Mapping[Signature, SignatureStats]:
        """Copies and fills over all ranks: shown beside the kernels, never added to their time."""
        return copies_of(self._all)

    def columns(self) -> dict[str, list[Any]]:
        """Give signatures with label and sums as columns, in the order of the signatures."""
        labels = [self.labels.get(signature) for signature in self._all]
        columns: dict[str, list[Any]] = {
            name: [getattr(signature, name) for signature in self._all]
            for name in ("name", "op", "replayed", "work")
        }
        columns["input_dtypes"] = [list(signature.input_dtypes) for signature in self._all]
        columns["category"] = [label and label.category for label in labels]
        columns["rule"] = [label and label.rule_id for label in labels]
        columns["grade"] = [label and label.grade for label in labels]
        for name in ("count", "time_ns", "min_ns", "max_ns"):
            columns[name] = [getattr(stats, name) for stats in self._all.values()]
        return columns

    @cached_property
    def categories(self) -> tuple[CategoryTotal, ...]:
        """Totals per category present in the trace, most time first, then by name."""
        sums: dict[CategoryId, tuple[int, int]] = {}
        for signature, stats in self.stats.items():
            category = self.labels[signature].category
            count, time_ns = sums.get(category, (0, 0))
            sums[category] = (count + stats.count, time_ns + stats.time_ns)
        totals = [CategoryTotal(category, *sums[category]) for category in sums]
        return tuple(sorted(totals, key=lambda total: (-total.time_ns, total.category)))

    @cached_property
    def coverage(self) -> Coverage:
        """Kernel time by grade."""
        sums = {"validated": 0, "vendor": 0, "inferred": 0, "unlabelled": 0}
        for signature, stats in self.stats.items():
            sums[self.labels[signature].grade or "unlabelled"] += stats.time_ns
        return Coverage(**sums)
