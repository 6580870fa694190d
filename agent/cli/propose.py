"""`label-agent propose`."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli.judge import BaselineOption, ContextOption, NamesOption
from agent.cli.options import (
    JsonOption,
    OutputOption,
    ReposOption,
    RulesOption,
    SalvageOption,
    Traces,
)
from agent.cli.review import AcceptOption
from agent.cli.screen import write_result

ShareOption = Annotated[
    float,
    typer.Option("--min-share", help="Leave out families below this part of GPU time."),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Who proposes: offline works from definitions and words alone, without any model.",
    ),
]
FamiliesOption = Annotated[
    int, typer.Option("--max-families", min=1, max=1_000, help="Ask about at most so many.")
]


def propose(
    traces: Traces,
    repo: ReposOption = None,
    baseline: BaselineOption = None,
    names: NamesOption = "",
    context: ContextOption = None,
    rules: RulesOption = None,
    model: ModelOption = "offline",
    min_share: ShareOption = 0.001,
    max_families: FamiliesOption = 20,
    accept: AcceptOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
    salvage: SalvageOption = False,
) -> int:
    """Propose rules for unlabelled kernels, prove them against the source, and review them.

    Accepted rules go into label-rules.toml and are committed there, one commit a rule. Without a
    terminal and without --accept the proposals are kept for `label-agent review`.

    Example: label-agent propose new/ --baseline base/ --repo ./sglang --repo ./aiter
    """
    from agent.cli.progress import reading_progress
    from agent.cli.terminal import TerminalConsole
    from agent.render.documents import to_json
    from agent.workflows.inputs import RunInputs
    from agent.workflows.propose import ProposeOptions, propose_rules
    from agent.workflows.report import proposals_json, proposals_text
    from agent.workflows.review import ReviewOptions

    _require_offline(model)
    console = TerminalConsole()
    inputs = RunInputs(
        traces=tuple(traces),
        baseline=tuple(baseline or ()),
        repos=tuple(repo or ()),
        names=names,
        context=tuple(context or ()),
        salvage=salvage,
    )
    options = ProposeOptions(
        review=ReviewOptions(rules, accept is not None, console.interactive),
        min_share=min_share,
        max_families=max_families,
    )
    result = propose_rules(inputs, options, console, reading=reading_progress)
    text = to_json(proposals_json(result)) if json else "\n".join(proposals_text(result))
    write_result(text, output)
    return 1 if any(one.state == "refused" for one in result.review.outcomes) else 0


def _require_offline(model: str) -> None:
    if model != "offline":
        from agent.errors import UsageError

        raise UsageError(
            "PR001", f"no proposer is called {model!r}", hint="leave --model out, or give offline"
        )
