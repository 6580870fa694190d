"""The inputs of a run opened once: traces, checkouts, protected names, and the gate over them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from agent.core.kernels import Trace
from agent.core.proposals import Evidence, Proposal, RunContext, Verdict
from agent.core.rules import RuleSet
from agent.core.source import SourceIndex
from agent.errors import CommitMismatch, UsageError
from agent.review.records import KeptRun, run_record
from agent.workflows.context import context_of
from agent.workflows.label import Progress
from agent.workflows.workplace import Workplace

Reading = Callable[[], AbstractContextManager[Progress | None]]


@dataclass(frozen=True, slots=True)
class RunInputs:
    """What a run works on as the user named it: repos are `[NAME=]DIR`, context is `KEY=VALUE`."""

    traces: tuple[str, ...] = ()
    baseline: tuple[str, ...] = ()
    repos: tuple[str, ...] = ()
    names: str = ""
    context: tuple[str, ...] = ()
    salvage: bool = False


@dataclass(frozen=True)
class OpenInputs:
    """Inputs that were read; `names` are kernel names with the category no rule may take."""

    trace: Trace | None
    baseline: Trace | None
    source: SourceIndex
    names: Mapping[str, str]
    context: RunContext

    def read(self, entry: Evidence, first: int, last: int) -> tuple[str, ...]:
        """Give lines of a piece of evidence's file at its commit.

        Raises:
            SourceError: no such file, or the checkout was opened at another commit.
        """
        opened = {repo.name: repo.commit for repo in self.source.repos()}
        if opened.get(entry.repo) != entry.commit:
            what = f"{entry.repo} is read at another commit than {entry.commit[:12]}"
            raise CommitMismatch("SC002", what)
        return self.source.read(entry.repo, entry.path, first, last)

    def judge(self, proposal: Proposal, ruleset: RuleSet) -> Verdict:
        """Ask the gate."""
        from agent.review.gate import judge_proposal

        return judge_proposal(
            proposal,
            ruleset=ruleset,
            names=self.names,
            source=self.source,
            context=self.context,
            trace=self.trace,
            baseline=self.baseline,
        )


def open_inputs(
    inputs: RunInputs,
    *,
    commits: Mapping[str, str] | None = None,
    reading: Reading = nullcontext,
) -> OpenInputs:
    """Read what a run works on; the cheap things first, so that a wrong path costs no wait.

    `commits` pins checkouts by name; without it each is read at its HEAD. `reading` gives the
    progress of reading traces and ends it before anything else is shown.

    Raises:
        UsageError, SourceError, TraceError, RuleFileError: see `agent.errors`.
    """
    from agent.source.index import open_sources
    from agent.traces.reader import read_trace

    names = _names(inputs.names)
    source = open_sources(named_repos(inputs.repos), commits=dict(commits or {}))
    context_of(None, inputs.context)
    with reading() as progress:
        trace, baseline = (
            read_trace(paths, salvage=inputs.salvage, context=True, progress=progress)
            if paths
            else None
            for paths in (inputs.traces, inputs.baseline)
        )
    return OpenInputs(trace, baseline, source, names, context_of(trace, inputs.context))


def named_repos(texts: Sequence[str]) -> list[tuple[str, Path]]:
    """Read `[NAME=]DIR` options; the name is else the folder's.

    Raises:
        UsageError: no name, or one name twice.
    """
    named: dict[str, Path] = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not equals or "/" in name or Path(text).exists():
            name, folder = Path(text).resolve().name, text
        if not name or not folder:
            raise UsageError("RV019", f'--repo "{text}" names no checkout', hint="--repo NAME=DIR")
        if name in named:
            hint = "give each a name of its own: --repo NAME=DIR"
            raise UsageError("RV019", f'two checkouts are called "{name}"', hint=hint)
        named[name] = Path(folder)
    return list(named.items())


def kept_run(inputs: RunInputs, source: SourceIndex, place: Workplace, rules: str) -> KeptRun:
    """Give the inputs as the journal keeps them; equal inputs give an equal id."""
    commits = {repo.name: repo.commit for repo in source.repos()}
    repos = tuple(
        (name, place.relative(str(folder)), commits.get(name, ""))
        for name, folder in named_repos(inputs.repos)
    )
    run = KeptRun(
        id="",
        traces=tuple(map(place.relative, inputs.traces)),
        baseline=tuple(map(place.relative, inputs.baseline)),
        repos=repos,
        rules=place.relative(rules) if rules else "",
        names=place.relative(inputs.names) if inputs.names else "",
        salvage=inputs.salvage,
        context=inputs.context,
    )
    digest = hashlib.sha256(json.dumps(run_record(run)).encode()).hexdigest()
    return replace(run, id=digest[:12])


def inputs_of(run: KeptRun, place: Workplace) -> tuple[RunInputs, dict[str, str]]:
    """Give back the inputs of a kept run, and the commit each checkout was read at."""
    inputs = RunInputs(
        traces=tuple(map(place.absolute, run.traces)),
        baseline=tuple(map(place.absolute, run.baseline)),
        repos=tuple(f"{name}={place.absolute(folder)}" for name, folder, _ in run.repos),
        names=place.absolute(run.names) if run.names else "",
        context=run.context,
        salvage=run.salvage,
    )
    return inputs, {name: commit for name, _, commit in run.repos if commit}


def _names(path: str) -> dict[str, str]:
    if not path:
        return {}
    from agent.ruleset.namelist import read_names

    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as err:
        raise UsageError("RV020", "the list of names is not UTF-8", location=path) from err
    except OSError as err:
        what = f"cannot read the list of names: {err.strerror}"
        raise UsageError("RV020", what, location=path, hint="check --names") from err
    return {str(entry.name): str(entry.category) for entry in read_names(text, source=path)}
