"""`review`: go on with proposals kept from earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from agent.core.proposals import Finding, Verdict
from agent.core.text import shown
from agent.errors import JournalError
from agent.review.journal import Journal
from agent.review.records import Kept, KeptRun, kept_in
from agent.review.repository import RuleRepository
from agent.review.session import NOT_REACHED, Console, Outcome, review
from agent.workflows.inputs import Reading, inputs_of, open_inputs
from agent.workflows.workbench import Workbench, ready_repository
from agent.workflows.workplace import Workplace, open_workplace


@dataclass(frozen=True, slots=True)
class ReviewOptions:
    """How kept proposals are decided: by a person, by a flag, or not at all."""

    rules: Path | None = None
    accept_validated: bool = False
    interactive: bool = False

    @property
    def decides(self) -> bool:
        """Tell whether rules can be accepted in this run."""
        return self.accept_validated or self.interactive


@dataclass(frozen=True, slots=True)
class ReviewResult:
    """What became of each proposal; `rule_file` as the working folder sees it."""

    outcomes: tuple[Outcome, ...]
    rule_file: str
    findings: tuple[Finding, ...] = ()

    @property
    def kept(self) -> int:
        """Proposals that wait for a review."""
        return sum(outcome.state in {"pending", "skipped"} for outcome in self.outcomes)


def review_kept(
    options: ReviewOptions, console: Console, *, reading: Reading = nullcontext
) -> ReviewResult:
    """Decide on what earlier runs kept; without a way to decide, only list it.

    Raises:
        LabelAgentError: see `agent.errors`; what was decided before stays decided.
    """
    place = open_workplace(options.rules)
    journal = Journal(place.journal)
    kept = kept_in(journal.records(), str(place.journal))
    if not options.decides:
        listed = tuple(Outcome(verdict, "pending") for verdict in kept.pending)
        return ReviewResult(listed, place.name, journal.findings)
    if not kept.pending:
        return ReviewResult((), place.name, journal.findings)
    if elsewhere := place.elsewhere():
        console.line(shown(elsewhere))
    with journal:
        place, kept, repository = open_for_commits(place, journal, options)
        outcomes: list[Outcome] = []
        for run_id, verdicts in _by_run(kept):
            if any(outcome.reason == NOT_REACHED for outcome in outcomes):
                outcomes += (Outcome(left, "pending", reason=NOT_REACHED) for left in verdicts)
                continue
            bench = _bench(place, journal, kept, run_id, reading)
            outcomes += decide(verdicts, bench, repository, console, options)
            place = bench.place
        return ReviewResult(tuple(outcomes), place.name, journal.findings)


def open_for_commits(
    place: Workplace, journal: Journal, options: ReviewOptions
) -> tuple[Workplace, Kept, RuleRepository]:
    """Finish what a crash cut off, and make sure that a commit can go well.

    Raises:
        ReviewError: it cannot.
    """
    kept = kept_in(journal.records(), str(place.journal))
    repository, changed = ready_repository(place, journal, kept)
    if changed:
        place = open_workplace(options.rules)
        kept = kept_in(journal.records(), str(place.journal))
    return place, kept, repository


def decide(
    verdicts: Sequence[Verdict],
    bench: Workbench,
    repository: RuleRepository,
    console: Console,
    options: ReviewOptions,
) -> tuple[Outcome, ...]:
    """Hold one review over the verdicts of a run."""
    return review(
        verdicts, bench.desk(repository), console, accept_validated=options.accept_validated
    )


def _by_run(kept: Kept) -> list[tuple[str, list[Verdict]]]:
    """Group what is pending by the run that judged it, oldest first."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in kept.pending:
        groups.setdefault(kept.run_of[verdict.proposal.id], []).append(verdict)
    return list(groups.items())


def _bench(
    place: Workplace, journal: Journal, kept: Kept, run_id: str, reading: Reading
) -> Workbench:
    """Open the traces and checkouts of a kept run again, each checkout at the same commit."""
    run = _run(kept, run_id, place)
    inputs, commits = inputs_of(run, place)
    opened = open_inputs(inputs, commits=commits, reading=reading)
    return Workbench(
        place,
        journal,
        run_id,
        opened.trace,
        opened.judge,
        opened.read,
        recorded=dict(kept.verdicts),
    )


def _run(kept: Kept, run_id: str, place: Workplace) -> KeptRun:
    run = kept.runs.get(run_id)
    if run is None:
        hint = "run propose again: what was asked before is not asked again"
        where = str(place.journal)
        raise JournalError("JR007", "the journal lacks a run's inputs", location=where, hint=hint)
    return run
