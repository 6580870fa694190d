"""`label-agent propose`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.options import (
    BaselineOption,
    ContextOption,
    JsonOption,
    NamesOption,
    OutputOption,
    ReposOption,
    RulesOption,
    SalvageOption,
    Traces,
)
from agent.cli.review import AcceptOption
from agent.cli.screen import talk, write_result

if TYPE_CHECKING:
    from agent.cli.proposals import Price
    from agent.workflows.inputs import RunInputs
    from agent.workflows.propose import ProposeOptions, Surroundings

ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="openai:NAME, anthropic:NAME or offline; else the provider whose key is set.",
        show_default=False,
    ),
]
BaseUrlOption = Annotated[
    str,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="A compatible server: vLLM, SGLang, llama.cpp, Ollama.",
        show_default=False,
    ),
]
TurnsOption = Annotated[
    int, typer.Option("--max-turns", min=1, max=100, help="Replies of a model, per family.")
]
CallsOption = Annotated[
    int, typer.Option("--max-calls", min=0, help="Calls to a model, over all; 0 is no limit.")
]
TokensOption = Annotated[
    int, typer.Option("--max-tokens", min=0, help="Tokens, over all; 0 is no limit.")
]
DeadlineOption = Annotated[
    float, typer.Option("--deadline", min=0, help="Seconds for all asking; 0 is no limit.")
]
ShareOption = Annotated[
    float, typer.Option("--min-share", help="Leave out families below this part of GPU time.")
]
FamiliesOption = Annotated[
    int, typer.Option("--max-families", min=1, max=1_000, help="Ask about at most so many.")
]
NamesOnlyOption = Annotated[
    bool, typer.Option("--names-only", help="Send kernel names, but no text of a checkout.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the requests that would be sent; send nothing.")
]
PriceOption = Annotated[
    str,
    typer.Option(
        "--price",
        metavar="IN/OUT",
        help="What a million tokens cost; the end then says what asking cost.",
        show_default=False,
    ),
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Ask again what was answered before.")
]


def propose(
    traces: Traces,
    repo: ReposOption = None,
    baseline: BaselineOption = None,
    model: ModelOption = "",
    base_url: BaseUrlOption = "",
    max_turns: TurnsOption = 12,
    max_calls: CallsOption = 200,
    max_tokens: TokensOption = 1_000_000,
    deadline: DeadlineOption = 1_800,
    min_share: ShareOption = 0.001,
    max_families: FamiliesOption = 20,
    names_only: NamesOnlyOption = False,
    dry_run: DryRunOption = False,
    no_cache: NoCacheOption = False,
    price: PriceOption = "",
    accept: AcceptOption = None,
    names: NamesOption = "",
    context: ContextOption = None,
    rules: RulesOption = None,
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
    from agent.cli.proposals import read_price
    from agent.cli.terminal import TerminalConsole
    from agent.cli.watching import asking_lines
    from agent.proposing.budget import Limits
    from agent.workflows.asking import AskOptions
    from agent.workflows.inputs import RunInputs
    from agent.workflows.propose import ProposeOptions, Surroundings
    from agent.workflows.review import ReviewOptions

    paid = read_price(price)
    ran, before, repos = (tuple(entries or ()) for entries in (traces, baseline, repo))
    inputs = RunInputs(ran, before, repos, names, tuple(context or ()), salvage)
    limits = Limits(max_turns, max_calls, max_tokens, deadline)
    console = TerminalConsole()
    options = ProposeOptions(
        ReviewOptions(rules, accept is not None, console.interactive),
        AskOptions(model, base_url, limits, names_only, not no_cache),
        min_share,
        max_families,
    )
    with asking_lines() as watcher:
        around = Surroundings(console, talk, watcher, reading_progress)
        if dry_run:
            return _show_requests(inputs, options, around, output)
        return _propose(inputs, options, around, _Result(paid, json, output))


@dataclass(frozen=True, slots=True)
class _Result:
    """How the result is written."""

    price: Price | None
    json: bool
    output: Path | None


def _show_requests(
    inputs: RunInputs, options: ProposeOptions, around: Surroundings, output: Path | None
) -> int:
    from agent.cli.proposals import requests_json
    from agent.render.documents import to_json
    from agent.workflows.propose import dry_run

    write_result(to_json(requests_json(dry_run(inputs, options, around))), output)
    return 0


def _propose(inputs: RunInputs, options: ProposeOptions, around: Surroundings, how: _Result) -> int:
    from agent.cli.proposals import exit_code, proposals_json, proposals_text
    from agent.render.documents import to_json
    from agent.workflows.propose import propose_rules

    result = propose_rules(inputs, options, around)
    if how.json:
        write_result(to_json(proposals_json(result, how.price)), how.output)
    else:
        write_result("\n".join(proposals_text(result, how.price)), how.output)
    return exit_code(result)
