"""A review played without a terminal, a checkout or git."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agent.core.kernels import Trace
from agent.core.proposals import Decision, Evidence, Pin, Proposal, Verdict
from agent.core.rules import Acceptance
from agent.errors import SourceError
from agent.review.commit import Committed
from agent.review.draft import Draft, draft_rule
from agent.review.session import Desk
from agent.ruleset.codec import load_builtin, parse_rules
from tests.builders import evidence, proposal, signature, stats, trace

ADA = Acceptance("Ada Reviewer <ada@example.invalid>", "2026-02-03")
GATES = ("findings", "level", "admitted", "dtypes_unknown")
"""What of a verdict is the gate's, not the proposal's."""
SOURCE = tuple(f"line {number}" for number in range(1, 41))


def pin(**fields: object) -> Pin:
    values: dict[str, object] = {
        "commit": "0" * 40,
        "mode": "100644",
        "blob": "1" * 40,
        "node": "function_definition",
        "qualname": "Backend.forward",
        "guards": ("+self.fp8",),
        "snippet_sha256": "2" * 64,
        "grammar": "python 0.25.0",
    }
    return Pin(**{**values, **fields})  # type: ignore[arg-type]


def verdict(name: str = "_my_stage2", category: str = "Attention", **fields: object) -> Verdict:
    given = {key: fields.pop(key) for key in GATES if key in fields}
    values: dict[str, object] = {
        "id": f"id-{name}",
        "category": category,
        "kernel": f"^{name}$",
        "kernels": (name,),
        "evidence": (evidence(lines=(10, 11)),),
    }
    wanted = proposal(**{**values, **fields})
    pinned = tuple(replace(entry, pin=pin()) for entry in wanted.evidence)
    rest = {"admitted": True, "level": "L3", "evidence": pinned, "matched": wanted.kernels, **given}
    return Verdict(wanted, **rest)  # type: ignore[arg-type]


def small_trace(*names: str) -> Trace:
    wanted = names or ("_my_stage2", "_my_stage1", "Memcpy DtoD (Device -> Device)")
    return trace({signature(name): stats(2, 3_000_500) for name in wanted})


@dataclass
class FakeConsole:
    """Answers from a list, then the end of the input."""

    answers: list[str | None] = field(default_factory=list)
    edits: list[str | Callable[[str], str] | None] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    offered: list[str] = field(default_factory=list)

    def line(self, text: str, style: str = "plain") -> None:
        self.lines.append(text)

    def ask(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        return self.answers.pop(0) if self.answers else None

    def edit(self, text: str) -> str | None:
        self.offered.append(text)
        change = self.edits.pop(0) if self.edits else None
        return change(text) if callable(change) else change

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class FakeDesk:
    """Keeps the rule file in memory; `gate` says what is judged, by kernel pattern."""

    trace: Trace = field(default_factory=small_trace)
    gate: dict[str, Verdict] = field(default_factory=dict)
    text: str | None = None
    decisions: list[Decision] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)

    def judge(self, wanted: Proposal) -> Verdict:
        found = self.gate.get(wanted.kernel)
        if found is None:
            pinned = tuple(replace(entry, pin=pin()) for entry in wanted.evidence)
            return Verdict(wanted, True, "L3", evidence=pinned, matched=wanted.kernels)
        return replace(found, proposal=wanted)

    def draft(self, wanted: Verdict) -> Draft:
        rules = load_builtin() if self.text is None else parse_rules(self.text)
        return draft_rule(wanted, ADA, text=self.text, ruleset=rules, trace=self.trace)

    def accept(self, wanted: Verdict, draft: Draft, decision: Decision) -> Committed:
        if self.failures:
            raise self.failures.pop(0)
        self.decisions.append(decision)
        self.text = draft.after
        return Committed("c" * 40, "main")

    def read(self, entry: Evidence, first: int, last: int) -> Sequence[str]:
        if entry.path == "gone.py":
            raise SourceError("SC002", "no such file")
        return SOURCE[first - 1 : last]

    def desk(self) -> Desk:
        return Desk(
            self.judge, self.draft, self.accept, self.decisions.append, self.read, ADA.author
        )
