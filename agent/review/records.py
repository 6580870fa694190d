"""What the review writes into the journal: verdicts, decisions, intents and commits.

Value <-> JSON; anything else the journal holds belongs to whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agent.core.proposals import Decision, Evidence, Finding, Origin, Pin, Proposal, Verdict
from agent.errors import JournalError
from agent.review.journal import Record

VERDICT, DECISION, INTENT, COMMIT = "verdict", "decision", "intent", "commit"


@dataclass(frozen=True, slots=True)
class Intent:
    """An accepted change that is about to be written and committed.

    `before` is "" for a new file; `root` and `name` are the work tree and the file in it.
    """

    proposal_id: str
    rule_id: str
    name: str
    before: str
    after: str
    message: str


@dataclass(frozen=True)
class Kept:
    """What a journal says of proposals: each id once, with the last word on it.

    Attributes:
        verdicts: every verdict that was ever given, the last one per proposal.
        decisions: the last decision per proposal; an edited proposal is decided with "edit".
        intents: the last intent per proposal.
        commits: the commit per proposal.
    """

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
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
    verdicts: dict[str, Verdict] = {}
    decisions: dict[str, Decision] = {}
    intents: dict[str, Intent] = {}
    commits: dict[str, str] = {}
    for record in records:
        try:
            match record.kind:
                case "verdict":
                    verdict = verdict_from(record.data["verdict"])
                    verdicts[verdict.proposal.id] = verdict
                case "decision":
                    decision = Decision(**record.data)
                    decisions[decision.proposal_id] = decision
                case "intent":
                    intent = Intent(**record.data)
                    intents[intent.proposal_id] = intent
                case "commit":
                    commits[record.data["proposal_id"]] = record.data["commit"]
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            what = f'a record of kind "{record.kind}" cannot be read'
            where = f"{path}:{record.seq}"
            raise JournalError("JR007", what, location=where, hint="move the journal away") from err
    return Kept(verdicts, decisions, intents, commits)


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """Give a verdict as JSON."""
    return {"verdict": asdict(verdict)}


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
