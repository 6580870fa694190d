"""`propose`: what is unlabelled -> proposals -> the gate -> a review -> the rule file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from agent.compare.figures import fraction_of
from agent.core.kernels import Trace
from agent.core.proposals import Origin, Verdict
from agent.core.rules import RuleSet
from agent.errors import UsageError
from agent.proposing.families import rank_families
from agent.proposing.results import Asked
from agent.review.journal import Journal
from agent.review.records import RUN, Kept, KeptRun, kept_in, run_record
from agent.review.repository import RuleRepository
from agent.review.session import Console, Outcome, State
from agent.ruleset.match import label_trace
from agent.workflows.asking import (
    AskJob,
    AskOptions,
    Talk,
    Watcher,
    ask,
    asked_of,
    choose,
    requests,
    run_origin,
)
from agent.workflows.inputs import OpenInputs, Reading, RunInputs, kept_run, open_inputs
from agent.workflows.review import ReviewOptions, ReviewResult, decide, open_for_commits
from agent.workflows.workbench import Workbench
from agent.workflows.workplace import Workplace, open_workplace


@dataclass(frozen=True, slots=True)
class ProposeOptions:
    """What is asked about, who is asked, and what happens with the answers.

    `min_share` is a part of 1; families below it are left out.
    """

    review: ReviewOptions = field(default_factory=ReviewOptions)
    asking: AskOptions = field(default_factory=AskOptions)
    min_share: float = 0.001
    max_families: int = 20


@dataclass(frozen=True)
class Surroundings:
    """Where a run is shown: the review, what is said, how reading and asking go."""

    console: Console
    talk: Talk
    watcher: Watcher
    reading: Reading = nullcontext


@dataclass(frozen=True, slots=True)
class ProposeResult:
    """What became of each family that was asked about, and of each proposal.

    `unlabelled` and `min_share` are parts of 1: what was open, and what was too small to ask about.
    `origin` says who was asked, and of which run.
    """

    asked: tuple[Asked, ...]
    review: ReviewResult
    unlabelled: Fraction = Fraction(0)
    min_share: float = 0.0
    origin: Origin = field(default_factory=Origin)


def propose_rules(
    inputs: RunInputs, options: ProposeOptions, around: Surroundings
) -> ProposeResult:
    """Propose rules for what a run leaves unlabelled, and let them be decided on.

    Raises:
        LabelAgentError: see `agent.errors`; what was answered and decided before is kept.
    """
    _check(inputs, options)
    provider = choose(options.asking, around.talk)
    place = open_workplace(options.review.rules)
    if elsewhere := place.elsewhere():
        around.talk(elsewhere)
    opened = None if options.review.decides else open_inputs(inputs, reading=around.reading)
    with Journal(place.journal) as journal:
        repository = None
        kept = kept_in(journal.records(), str(place.journal))
        if options.review.decides:
            place, kept, repository = open_for_commits(place, journal, options.review)
        opened = opened or open_inputs(inputs, reading=around.reading)
        run = kept_run(inputs, opened.source, place, str(options.review.rules or ""))
        job = _job(_recorded(run, journal, kept, repository), opened, place, journal, kept, options)
        asked = tuple(ask(job, provider, options.asking, around.watcher))
        outcomes = _decided(asked, job.bench, kept, repository, around.console, options.review)
        reviewed = ReviewResult(outcomes, place.name, journal.findings)
        coverage = job.labelled.coverage
        unlabelled = fraction_of(coverage.unlabelled, coverage.total)
        origin = asked_of(job.origin, provider)
        return ProposeResult(asked, reviewed, unlabelled, options.min_share, origin)


def dry_run(
    inputs: RunInputs, options: ProposeOptions, around: Surroundings
) -> tuple[dict[str, Any], ...]:
    """Give the requests that would be sent first, one a family; sends and keeps nothing.

    Raises:
        LabelAgentError: see `agent.errors`.
    """
    _check(inputs, options)
    provider = choose(options.asking, around.talk, sending=False)
    place = open_workplace(options.review.rules)
    journal = Journal(place.journal)
    if provider is None:
        around.talk("offline: nothing would be sent")
        return ()
    opened = open_inputs(inputs, reading=around.reading)
    run = kept_run(inputs, opened.source, place, str(options.review.rules or ""))
    job = _job(run, opened, place, journal, Kept(), options)
    return tuple(requests(job, provider, options.asking))


def _check(inputs: RunInputs, options: ProposeOptions) -> None:
    if not inputs.traces:
        raise UsageError("RV022", "no trace is named", hint="label-agent propose TRACE --repo DIR")
    if not inputs.repos:
        hint = "add --repo DIR: a checkout of what the trace ran, at the commit it ran"
        what = "a rule needs evidence from source, and no checkout is named"
        raise UsageError("RV022", what, hint=hint)
    if not 0 <= options.min_share <= 1:
        hint = "0.001 is a tenth of a per cent"
        raise UsageError("RV022", "--min-share is a part of 1", hint=hint)


def _recorded(
    run: KeptRun, journal: Journal, kept: Kept, repository: RuleRepository | None
) -> KeptRun:
    """Give the run as it was recorded first, or record it now.

    Its day is the one git would write into a commit now, where there is a repository.
    """
    known = kept.runs.get(run.id)
    if known is not None:
        return known
    today = repository.acceptance().date if repository else datetime.now(UTC).date().isoformat()
    dated = replace(run, date=today)
    journal.append(RUN, run_record(dated))
    return dated


def _job(
    run: KeptRun,
    opened: OpenInputs,
    place: Workplace,
    journal: Journal,
    kept: Kept,
    options: ProposeOptions,
) -> AskJob:
    """Set up the asking."""
    trace = _trace(opened)
    recorded = dict(kept.verdicts)
    bench = Workbench(place, journal, run.id, trace, opened.judge, opened.read, recorded)
    labelled = label_trace(trace, place.ruleset)
    families = rank_families(
        labelled,
        None if opened.baseline is None else opened.baseline.stats,
        min_share=options.min_share,
        max_families=options.max_families,
    )
    return AskJob(families, trace, labelled, opened, bench, run_origin(bench, run.date))


def _trace(opened: OpenInputs) -> Trace:
    if opened.trace is None:
        raise UsageError("RV022", "no trace is named")
    return opened.trace


def _decided(
    asked: Sequence[Asked],
    bench: Workbench,
    kept: Kept,
    repository: RuleRepository | None,
    console: Console,
    options: ReviewOptions,
) -> tuple[Outcome, ...]:
    """Let what is admitted be decided; what a person decided before is not asked again."""
    verdicts = _distinct(one.verdict for one in asked if one.verdict is not None)
    admitted = [one for one in verdicts if one.admitted]
    fresh = [one for one in admitted if _again(one, kept, bench.place.ruleset)]
    before = [_earlier(one, kept) for one in admitted if one not in fresh]
    refused = [Outcome(one, "refused") for one in verdicts if not one.admitted]
    if repository is None:
        pending = (Outcome(one, "pending") for one in fresh)
        return (*pending, *before, *refused)
    return (*decide(fresh, bench, repository, console, options), *before, *refused)


def _again(verdict: Verdict, kept: Kept, ruleset: RuleSet) -> bool:
    """Tell whether somebody has to be asked: undecided, or accepted and since taken out again."""
    proposal_id = verdict.proposal.id
    if not kept.settled(proposal_id):
        return True
    intent = kept.intents.get(proposal_id)
    accepted = kept.decisions[proposal_id].action == "accept"
    return accepted and (intent is None or intent.rule_id not in ruleset.by_id)


def _earlier(verdict: Verdict, kept: Kept) -> Outcome:
    """Give what was decided in an earlier run."""
    decision = kept.decisions[verdict.proposal.id]
    reason = f"decided before: {decision.reason}" if decision.reason else "decided before"
    state: State = "accepted" if decision.action == "accept" else "rejected"
    return Outcome(verdict, state, reason=reason)


def _distinct(verdicts: Iterable[Verdict]) -> list[Verdict]:
    return list({verdict.proposal.id: verdict for verdict in verdicts}.values())
