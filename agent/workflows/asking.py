"""Ask for a rule for each family of unlabelled kernels: a model, or the proposer without one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol

from agent import __version__
from agent.core.kernels import Trace
from agent.core.proposals import Origin, RunContext, Verdict
from agent.core.rules import LabelledTrace
from agent.core.source import Candidate
from agent.proposing.budget import Budget, Limits
from agent.proposing.dossier import Dossier, dossier_of
from agent.proposing.families import Family
from agent.proposing.loop import PROMPTS, Asking, first_request, propose_families
from agent.proposing.offline import propose_offline
from agent.proposing.prompts import load_prompts
from agent.proposing.providers.base import Provider
from agent.proposing.providers.choose import choose_provider
from agent.proposing.recorder import Recorder, replies_in
from agent.proposing.results import Asked, Step
from agent.workflows.inputs import OpenInputs
from agent.workflows.workbench import Workbench

Talk = Callable[[str], None]
_DRY_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


class Watcher(Protocol):
    """Who is told how the asking goes."""

    def step(self, step: Step) -> None:
        """See what is being done."""
        ...

    def settled(self, asked: Asked) -> None:
        """See what a family came to."""
        ...


@dataclass(frozen=True, slots=True)
class AskOptions:
    """Who is asked and how much it may cost.

    Attributes:
        model: `openai:NAME`, `anthropic:NAME`, `offline`, or "" for whichever key is set.
        names_only: no text of a checkout is sent.
        cache: replies in the journal answer equal requests.
    """

    model: str = "offline"
    base_url: str = ""
    limits: Limits = field(default_factory=Limits)
    names_only: bool = False
    cache: bool = True


@dataclass(frozen=True)
class AskJob:
    """Families to ask about, under what is known of their run."""

    families: Sequence[Family]
    trace: Trace
    labelled: LabelledTrace
    opened: OpenInputs
    bench: Workbench
    origin: Origin

    def dossiers(self) -> Iterator[Dossier]:
        """Gather what is known of each family, one at a time."""
        for family in self.families:
            yield dossier_of(family, self.trace, self._shortlist, self.opened.context)

    def _shortlist(
        self, name: str, op: str, dtypes: tuple[str, ...], context: RunContext
    ) -> Sequence[Candidate]:
        source = self.opened.source
        return source.shortlist(name, op=op, input_dtypes=dtypes, context=context)


def choose(options: AskOptions, talk: Talk, *, sending: bool = True) -> Provider | None:
    """Choose who is asked; None for the proposer without a model. Nothing is sent.

    Raises:
        UsageError: no such choice, or a key is missing that is needed for `sending`.
    """
    env: Mapping[str, str] = os.environ
    if not sending and (options.base_url or options.model not in ("", "offline")):
        env = {**dict.fromkeys(_DRY_KEYS, "not-sent"), **os.environ}
    return choose_provider(options.model, options.base_url, env, talk)


def ask(
    job: AskJob, provider: Provider | None, options: AskOptions, watcher: Watcher
) -> Iterator[Asked]:
    """Ask about each family in turn; every answer is in the journal before it is given."""
    if provider is None:
        asked = _ask_offline(job, watcher)
    else:
        asking = _asking(job, provider, options, watcher)
        asked = propose_families(list(job.dossiers()), asking)
    for one in asked:
        watcher.settled(one)
        yield one


def requests(job: AskJob, provider: Provider, options: AskOptions) -> Iterator[dict[str, Any]]:
    """Give the body of the first request about each family, exactly as it would be sent."""
    asking = _asking(job, provider, options, None)
    for dossier in (one for one in job.dossiers() if not one.unprovable):
        yield provider.request_body(first_request(dossier, asking))


def run_origin(bench: Workbench, date: str) -> Origin:
    """Give what a proposal's origin says of the run itself."""
    return Origin(run=bench.run, tool=f"label-agent {__version__}", date=date)


def asked_of(origin: Origin, provider: Provider | None) -> Origin:
    """Add who is asked."""
    if provider is None:
        return replace(origin, provider="offline")
    return replace(origin, provider=provider.name, model=provider.model, host=provider.host)


def _asking(
    job: AskJob, provider: Provider, options: AskOptions, watcher: Watcher | None
) -> Asking:
    prompts, digest = load_prompts(PROMPTS)
    journal = job.bench.journal
    known = replies_in(journal.records()) if options.cache else {}
    return Asking(
        provider=provider,
        prompts=prompts,
        prompts_digest=digest,
        source=job.opened.source,
        labelled=job.labelled,
        judge=job.bench.judge,
        budget=Budget(options.limits, time.monotonic),
        recorder=Recorder(journal.append, job.bench.run, known),
        origin=job.origin,
        names_only=options.names_only,
        **({"watch": watcher.step} if watcher else {}),
    )


def _ask_offline(job: AskJob, watcher: Watcher) -> Iterator[Asked]:
    categories = job.bench.place.ruleset.category_ids
    origin = asked_of(job.origin, None)
    for number, dossier in enumerate(job.dossiers(), 1):
        watcher.step(Step(number, len(job.families), dossier.family, "judging", 0))
        made = propose_offline(dossier, categories)
        if isinstance(made, str):
            sourced = bool(dossier.candidates)
            yield Asked(dossier.family, "abstained", reason=made, sourced=sourced)
            continue
        offered = (replace(proposal, origin=origin) for proposal in made)
        yield _first_admitted(dossier.family, map(job.bench.judge, offered))


def _first_admitted(family: Family, judged: Iterator[Verdict]) -> Asked:
    """Judge until one is admitted; else give the first, with why it is not."""
    first = next(judged)
    for verdict in chain([first], judged):
        if verdict.admitted:
            return Asked(family, "admitted", verdict)
    reason = "; ".join(f"{one.code} {one.message}" for one in first.errors)
    return Asked(family, "rejected", first, reason or f"only {first.level}")
