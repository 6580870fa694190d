"""`label-agent propose`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.options import (
    Declare,
    baseline_option,
    context_option,
    flag,
    json_option,
    names_option,
    output_option,
    repos_option,
    rules_option,
    salvage_option,
    text_option,
    traces_argument,
)
from agent.cli.review import Accept, accept_option
from agent.cli.screen import talk, write_result

if TYPE_CHECKING:
    from agent.cli.proposals import Price
    from agent.workflows.inputs import RunInputs
    from agent.workflows.propose import ProposeOptions, Surroundings


def _limit(
    name: str, default: int, text: str, *, least: int = 0, most: int | None = None
) -> Declare[Any]:
    """Declare an option for a whole number."""
    within = click.IntRange(least, most)
    return click.option(name, metavar="N", type=within, default=default, help=text)


@click.command()
@traces_argument
@repos_option
@baseline_option
@text_option(
    "--model",
    "MODEL",
    "openai:NAME, anthropic:NAME or offline; else the provider whose key is set.",
)
@text_option("--base-url", "URL", "A compatible server: vLLM, SGLang, llama.cpp, Ollama.")
@_limit("--max-turns", 12, "Replies of a model, per family.", least=1, most=100)
@_limit("--max-calls", 200, "Calls to a model, over all; 0 is no limit.")
@_limit("--max-tokens", 1_000_000, "Tokens, over all; 0 is no limit.")
@click.option(
    "--deadline",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=1_800,
    help="Seconds for all asking; 0 is no limit.",
)
@click.option(
    "--min-share",
    metavar="SHARE",
    type=float,
    default=0.001,
    help="Leave out families below this part of GPU time.",
)
@_limit("--max-families", 20, "Ask about at most so many.", least=1, most=1_000)
@flag("--names-only", "Send kernel names, but no text of a checkout.")
@flag("--dry-run", "Print the requests that would be sent; send nothing.")
@flag("--no-cache", "Ask again what was answered before.")
@text_option("--price", "IN/OUT", "What a million tokens cost; the end then says what asking cost.")
@accept_option
@names_option
@context_option
@rules_option
@json_option
@output_option
@salvage_option
def propose(
    traces: tuple[str, ...],
    repo: tuple[str, ...],
    baseline: tuple[str, ...],
    model: str,
    base_url: str,
    max_turns: int,
    max_calls: int,
    max_tokens: int,
    deadline: float,
    min_share: float,
    max_families: int,
    names_only: bool,
    dry_run: bool,
    no_cache: bool,
    price: str,
    accept: Accept | None,
    names: str,
    context: tuple[str, ...],
    rules: Path | None,
    json: bool,
    output: Path | None,
    salvage: bool,
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
    inputs = RunInputs(traces, baseline, repo, names, context, salvage)
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
