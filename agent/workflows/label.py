"""`label`: one run -> its labelled trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.kept import user_folder
from agent.workflows.rulefile import rules_in_force

if TYPE_CHECKING:
    from agent.core.kernels import RankTrace
    from agent.core.rules import LabelledTrace, RuleSet
    from agent.traces.cache import TraceCache

Progress = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read.

    Attributes:
        salvage: damaged ones too.
        dask: on a cluster instead of here; `scheduler` is its address.
        cache: what was kept of large traces is not read again, and what is read is kept.
    """

    salvage: bool = False
    dask: bool = False
    scheduler: str = ""
    cache: bool = False

    def traces(self) -> TraceCache | None:
        """Give where large traces are kept, if they are."""
        if not self.cache:
            return None
        from agent.traces.cache import user_cache

        return user_cache()

    def rules(self, named: Path | None) -> RuleSet:
        """Give the rules in force; `cache` is of traces, and a text always means the same rules."""
        return rules_in_force(named, kept=user_folder())


def label_run(
    paths: Sequence[str],
    *,
    rules: Path | None = None,
    reading: Reading | None = None,
    progress: Progress | None = None,
) -> LabelledTrace:
    """Read one run and label it; the rules are loaded while a large one is read.

    Raises:
        TraceError, RuleFileError: see `agent.errors`.
    """
    reading = reading or Reading()
    if reading.dask:
        return label_there(paths, reading.rules(rules), reading, progress)
    from agent.workflows.readers import Readers

    with Readers(
        [paths],
        salvage=reading.salvage,
        progress=progress,
        cache=reading.traces(),
        needed=_no_events,
    ) as readers:
        from agent.ruleset.match import Matcher  # while the process reads

        (labelled,) = readers.made_of_each(Matcher(reading.rules(rules)).label_trace)
    return labelled


def _no_events(rank: RankTrace) -> bool:
    """Tell that a report of one run looks at no event."""
    del rank
    return False


def label_there(
    paths: Sequence[str], ruleset: RuleSet, reading: Reading, progress: Progress | None
) -> LabelledTrace:
    """Read and label one run on a cluster."""
    from agent.workflows.cluster import label_on_cluster

    client = reading.scheduler or None
    return label_on_cluster(
        paths, ruleset, client=client, salvage=reading.salvage, progress=progress
    )
