"""What a review can do: judge under the rules in force, draft, record, write and commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from agent.core.kernels import Trace
from agent.core.proposals import Decision, Proposal, Verdict
from agent.core.rules import RuleSet
from agent.errors import ReviewError
from agent.review.commit import Committed, commit_rule_file
from agent.review.display import ReadSource
from agent.review.draft import Draft, draft_rule
from agent.review.journal import Journal
from agent.review.message import commit_message
from agent.review.records import COMMIT, DECISION, INTENT, VERDICT, Intent, Kept, verdict_record
from agent.review.recover import finish
from agent.review.repository import RuleRepository, check_ready, open_repository
from agent.review.session import Desk
from agent.workflows.workplace import Workplace

Gate = Callable[[Proposal, RuleSet], Verdict]


@dataclass
class Workbench:
    """One run's trace, sources and gate over the rule file, which changes with each acceptance.

    Attributes:
        run: the id of the run, as the journal knows it.
        recorded: the last verdicts in the journal, by proposal.
    """

    place: Workplace
    journal: Journal
    run: str
    trace: Trace | None
    gate: Gate
    read: ReadSource
    recorded: dict[str, Verdict] = field(default_factory=dict)
    _judged: dict[tuple[str, str], Verdict] = field(default_factory=dict)

    def judge(self, proposal: Proposal) -> Verdict:
        """Ask the gate under the rules in force now, and record what is new."""
        key = (proposal.id, self.place.ruleset.digest)
        if key not in self._judged:
            verdict = self.gate(proposal, self.place.ruleset)
            if self.recorded.get(proposal.id) != verdict:
                self.journal.append(VERDICT, verdict_record(verdict, self.run))
            self._judged[key] = self.recorded[proposal.id] = verdict
        return self._judged[key]

    def desk(self, repository: RuleRepository) -> Desk:
        """Give what a review session needs, committing to `repository`."""

        def draft(verdict: Verdict) -> Draft:
            return draft_rule(
                verdict,
                repository.acceptance(),
                text=self.place.text,
                ruleset=self.place.ruleset,
                name=self.place.name,
                trace=self.trace,
            )

        def accept(verdict: Verdict, drafted: Draft, decision: Decision) -> Committed:
            return self._accept(repository, verdict, drafted, decision)

        def decide(decision: Decision) -> None:
            self.journal.append(DECISION, asdict(decision))

        reviewer = repository.acceptance().author
        return Desk(self.judge, draft, accept, decide, self.read, reviewer)

    def _accept(
        self, repository: RuleRepository, verdict: Verdict, draft: Draft, decision: Decision
    ) -> Committed:
        message, proposal_id = commit_message(draft), verdict.proposal.id
        intent = Intent(
            proposal_id,
            draft.rule.id,
            repository.name,
            draft.before or "",
            draft.after,
            message,
            decision.by,
        )
        self.journal.append(INTENT, asdict(intent))
        before = None if draft.before is None else draft.before.encode()
        try:
            done = commit_rule_file(repository, before, draft.after.encode(), message)
        except ReviewError as err:
            skipped = Decision(proposal_id, "skip", decision.by, f"not committed: {err}")
            self.journal.append(DECISION, asdict(skipped))
            raise
        self.journal.append(COMMIT, {"proposal_id": proposal_id, "commit": done.commit})
        self.place = self.place.with_text(draft.after)
        return done


def ready_repository(place: Workplace, journal: Journal, kept: Kept) -> tuple[RuleRepository, bool]:
    """Open the rule file's repository for commits, after finishing what a crash cut off.

    The flag tells whether the rule file was changed by that, so that it must be read again.

    Raises:
        ReviewError: a commit of the rule file alone cannot go well now.
    """
    repository = open_repository(place.path)
    changed = False
    for intent in kept.unfinished:
        if intent.name != repository.name:
            continue
        done = finish(intent, repository)
        if done is None:
            reason = "the rule file went on without it"
            skipped = Decision(intent.proposal_id, "skip", intent.by, reason)
            journal.append(DECISION, asdict(skipped))
            continue
        changed = True
        record = {"proposal_id": intent.proposal_id, "commit": done.commit}
        journal.append(COMMIT, record)
    check_ready(repository)
    return repository, changed
