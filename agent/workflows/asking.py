"""Ask for a rule for each family of unlabelled kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent import __version__
from agent.core.kernels import Trace
from agent.core.proposals import Origin, RunContext, Verdict
from agent.core.source import Candidate
from agent.proposing.dossier import dossier_of
from agent.proposing.families import Family
from agent.proposing.offline import propose_offline
from agent.workflows.inputs import OpenInputs
from agent.workflows.workbench import Workbench

Answer = Literal["admitted", "rejected", "abstained", "failed"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What one family came to; `reason` is why there is no admitted proposal."""

    family: Family
    answer: Answer
    verdict: Verdict | None = None
    reason: str = ""


def ask_offline(
    families: Sequence[Family], trace: Trace, opened: OpenInputs, bench: Workbench
) -> Iterator[Asked]:
    """Ask the proposer without a model about each family in turn."""

    def shortlist(
        name: str, op: str, dtypes: tuple[str, ...], context: RunContext
    ) -> Sequence[Candidate]:
        return opened.source.shortlist(name, op=op, input_dtypes=dtypes, context=context)

    origin = Origin("offline", run=bench.run, tool=f"label-agent {__version__}")
    for family in families:
        dossier = dossier_of(family, trace, shortlist, opened.context)
        made = propose_offline(dossier, bench.place.ruleset.category_ids)
        if isinstance(made, str):
            yield Asked(family, "abstained", reason=made)
            continue
        judged = [bench.judge(replace(proposal, origin=origin)) for proposal in made]
        yield _best(family, judged)


def _best(family: Family, judged: Sequence[Verdict]) -> Asked:
    """Take the first that is admitted, else the first with why it is not."""
    for verdict in judged:
        if verdict.admitted:
            return Asked(family, "admitted", verdict)
    reason = "; ".join(finding.message for finding in judged[0].errors)
    return Asked(family, "rejected", judged[0], reason)
