"""What the review writes into the journal: verdicts, decisions, intents and commits.

Value <-> JSON; anything else the journal holds belongs to whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from agent.core.proposals import Decision, Evidence, Finding, Origin, Pin, Proposal, Verdict
from agent.errors import JournalError
from agent.review.journal import Record

RUN, VERDICT, DECISION, INTENT, COMMIT = "run", "verdict", "decision", "intent", "commit"


@dataclass(frozen=True, slots=True)
class KeptRun:
    """The inputs of a run, so that a review can read them again.

    Paths are relative to the folder that holds the journal's folder; `repos` are (name, folder,
    commit); `rules` and `names` are "" where none was named; `context` as `KEY=VALUE`; `date` is
    the day of the first such run, and no part of the id.
    """

    id: str
    traces: tuple[str, ...]
    baseline: tuple[str, ...] = ()
    repos: tuple[tuple[str, str, str], ...] = ()
    rules: str = ""
    names: str = ""
    salvage: bool = False
    context: tuple[str, ...] = ()
    date: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """An accepted change that is about to be written and committed; it is the decision, too.

    `name` is the rule file relative to its work tree, `before` is "" where it is new, `by` the
    reviewer.
    """

    proposal_id: str
    rule_id: str
    name: str
    before: str
    after: str
    message: str
    by: str


@dataclass(frozen=True)
class Kept:
    """What a journal says of proposals: each id once, with the last word on it.

    Attributes:
        runs: the runs by their id.
        verdicts: every verdict that was ever given, the last one per proposal.
        run_of: the run that last judged a proposal.
        decisions: the last decision per proposal; an edited proposal is decided with "edit".
        intents: the last intent per proposal.
        commits: the commit per proposal.
    """

    runs: Mapping[str, KeptRun] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    run_of: Mapping[str, str] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    intents: Mapping[str, Intent] = field(default_factory=dict)
    commits: Mapping[str, str] = field(default_factory=dict)

    @property
    def pending(self) -> tuple[Verdict, ...]:
        """Admitted and not yet decided, or skipped: in the order they were judged."""
        return tuple(
            verdict
            for proposal_id, verdict in self.verdicts.items()
            if verdict.admitted and not self.settled(proposal_id)
        )

    @property
    def unfinished(self) -> tuple[Intent, ...]:
        """Accepted changes whose commit was never reported."""
        return tuple(
            intent for proposal_id, intent in self.intents.items() if self._accepted(proposal_id)
        )

    def settled(self, proposal_id: str) -> bool:
        """Tell whether nobody has to be asked about a proposal any more."""
        decision = self.decisions.get(proposal_id)
        if decision is None or decision.action == "skip":
            return False
        return decision.action != "accept" or proposal_id in self.commits

    def _accepted(self, proposal_id: str) -> bool:
        decision = self.decisions.get(proposal_id)
        accepted = decision is not None and decision.action == "accept"
        return accepted and proposal_id not in self.commits


def kept_in(records: Iterable[Record], path: str = "") -> Kept:
    """Read the review's records; later ones win. Records of other kinds are left alone.

    Raises:
        JournalError: a record of ours that cannot be read (`JR007`).
    """
    tables = _Tables()
    for record in records:
        try:
            _take(tables, record)
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            what = f'a record of kind "{record.kind}" cannot be read'
            where = f"{path}:{record.seq}"
            raise JournalError("JR007", what, location=where, hint="move the journal away") from err
    return Kept(**{entry.name: getattr(tables, entry.name) for entry in fields(tables)})


@dataclass
class _Tables:
    """What `Kept` is made of, while it is read."""

    runs: dict[str, KeptRun] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    run_of: dict[str, str] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)


def _take(tables: _Tables, record: Record) -> None:
    data = record.data
    match record.kind:
        case "run":
            run = _run(data)
            tables.runs[run.id] = run
        case "verdict":
            verdict = verdict_from(data["verdict"])
            tables.verdicts[verdict.proposal.id] = verdict
            tables.run_of[verdict.proposal.id] = data["run"]
        case "decision":
            tables.decisions[data["proposal_id"]] = Decision(**data)
        case "intent":
            intent = Intent(**data)
            tables.intents[intent.proposal_id] = intent
            decision = Decision(intent.proposal_id, "accept", intent.by)
            tables.decisions[intent.proposal_id] = decision
        case "commit":
            tables.commits[data["proposal_id"]] = data["commit"]


def run_record(run: KeptRun) -> dict[str, Any]:
    """Give a run as JSON."""
    return asdict(run)


def _run(value: Mapping[str, Any]) -> KeptRun:
    lists = {key: tuple(value[key]) for key in ("traces", "baseline", "context")}
    repos = tuple((name, folder, commit) for name, folder, commit in value["repos"])
    return KeptRun(**{**value, **lists, "repos": repos})


def verdict_record(verdict: Verdict, run: str = "") -> dict[str, Any]:
    """Give a verdict of a run as JSON."""
    return {"run": run, "verdict": asdict(verdict)}


def verdict_from(value: Mapping[str, Any]) -> Verdict:
    """Give the verdict that `verdict_record` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is not one.
    """
    return Verdict(
        **{
            **value,
            "proposal": _proposal(value["proposal"]),
            "findings": tuple(Finding(**finding) for finding in value["findings"]),
            "evidence": tuple(map(_evidence, value["evidence"])),
            "matched": tuple(value["matched"]),
        }
    )


def _proposal(value: Mapping[str, Any]) -> Proposal:
    lists = {key: tuple(value[key]) for key in ("input_dtypes", "kernels", "overrides")}
    evidence = tuple(map(_evidence, value["evidence"]))
    return Proposal(**{**value, **lists, "evidence": evidence, "origin": Origin(**value["origin"])})


def _evidence(value: Mapping[str, Any]) -> Evidence:
    first, last = value["lines"]
    pin = value["pin"]
    return Evidence(**{**value, "lines": (first, last), "pin": pin and _pin(pin)})


def _pin(value: Mapping[str, Any]) -> Pin:
    return Pin(**{**value, "guards": tuple(value["guards"])})
