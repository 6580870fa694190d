"""The strict forms of a rule file as a person writes it, and their core values.

Unknown keys and wrong types are errors; nothing is repaired. Text <-> forms is
`agent.ruleset.codec`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agent.core.proposals import Evidence, EvidenceKind, Origin, ParseQuality, Pin
from agent.core.rules import Acceptance, Category, CategoryId, Grade, Rule, RuleId

Line = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(max_length=10_000)]
Name = Annotated[str, Field(min_length=1, max_length=20_000)]
Sha = Annotated[str, Field(pattern=r"\A(?:[0-9a-f]{40}|sha256:[0-9a-f]{64})\z")]
IdText = Annotated[str, Field(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\z", max_length=100)]
CategoryText = Annotated[str, Field(pattern=r"\A[A-Za-z][A-Za-z0-9_.-]*\z", max_length=60)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CategoryForm(_Form):
    """One `[[category]]`."""

    id: CategoryText
    title: Text
    rollup: Annotated[str, Field(max_length=60)] = ""

    def value(self) -> Category:
        """Give the core value."""
        return Category(CategoryId(self.id), self.title, self.rollup)


class EvidenceForm(_Form):
    """One `[[rule.evidence]]`; the keys from `blob` on are what the gate measured."""

    kind: EvidenceKind
    repo: Annotated[str, Field(min_length=1, max_length=100)]
    commit: Sha
    path: Annotated[str, Field(min_length=1, max_length=1_000)]
    lines: Annotated[list[Line], Field(min_length=2, max_length=2)]
    symbol: Text = ""
    guard: Text = ""
    snippet: Text = ""
    blob: Text = ""
    mode: Text = ""
    node: Text = ""
    qualname: Text = ""
    guards: list[Text] = []
    snippet_sha256: Text = ""
    grammar: Text = ""
    parse: ParseQuality = "clean"
    trace_match: Text = ""

    def value(self) -> Evidence:
        """Give the core value; evidence without a blob is not pinned."""
        return Evidence(
            self.kind,
            self.repo,
            self.commit,
            self.path,
            (self.lines[0], self.lines[1]),
            self.symbol,
            self.guard,
            self.snippet,
            self._pin() if self.blob else None,
        )

    def _pin(self) -> Pin:
        return Pin(
            self.commit,
            self.mode,
            self.blob,
            self.node,
            self.qualname,
            tuple(self.guards),
            self.snippet_sha256,
            self.grammar,
            self.parse,
            self.trace_match,
        )


class OriginForm(_Form):
    """`[rule.proposed_by]`."""

    provider: Text = ""
    model: Text = ""
    model_returned: Text = ""
    host: Text = ""
    fingerprint: Text = ""
    prompt: Text = ""
    prompt_digest: Text = ""
    run: Text = ""
    tool: Text = ""
    date: Text = ""

    def value(self) -> Origin:
        """Give the core value."""
        return Origin(**self.model_dump())


class AcceptanceForm(_Form):
    """`[rule.accepted_by]`."""

    author: Text
    date: Text


class RuleForm(_Form):
    """One `[[rule]]`."""

    id: IdText
    category: Text
    kernel: Annotated[str, Field(max_length=10_000)]
    op: Text = ""
    input_dtypes: Annotated[list[Text], Field(max_length=8)] = []
    dtypes_unknown: bool = False
    overrides: list[Text] = []
    grade: Grade
    note: Text = ""
    examples: list[Name] = []
    counterexamples: list[Name] = []
    evidence: list[EvidenceForm] = []
    proposed_by: OriginForm | None = None
    accepted_by: AcceptanceForm | None = None

    def value(self, source: str, line: int) -> Rule:
        """Give the core value, with where it stands."""
        accepted = self.accepted_by
        return Rule(
            id=RuleId(self.id),
            category=CategoryId(self.category),
            kernel=self.kernel,
            grade=self.grade,
            op=self.op,
            input_dtypes=tuple(self.input_dtypes),
            dtypes_unknown=self.dtypes_unknown,
            overrides=tuple(self.overrides),
            examples=tuple(self.examples),
            counterexamples=tuple(self.counterexamples),
            evidence=tuple(entry.value() for entry in self.evidence),
            proposed_by=self.proposed_by.value() if self.proposed_by else None,
            accepted_by=Acceptance(accepted.author, accepted.date) if accepted else None,
            note=self.note,
            source=source,
            line=line,
        )


class RuleFileForm(_Form):
    """A whole rule file."""

    schema_: Annotated[int, Field(alias="schema")]
    version: Annotated[int, Field(ge=1)]
    extends: Text = ""
    category: list[CategoryForm] = []
    rule: list[RuleForm] = []
