"""`label-agent review`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import click

from agent.cli.options import json_option, output_option, rules_option
from agent.cli.screen import talk, write_result


class Accept(StrEnum):
    """What is accepted without asking anybody."""

    validated = "validated"


accept_option = click.option(
    "--accept",
    type=click.Choice(Accept),
    help="Accept, unasked, what is source-validated and conflicts with no rule.",
)


@click.command()
@rules_option
@accept_option
@json_option
@output_option
def review(rules: Path | None, accept: Accept | None, json: bool, output: Path | None) -> int:
    """Go on with proposals kept from earlier runs: see each change as a diff, and decide.

    Without a terminal and without --accept it lists them.

    Example: label-agent review
    """
    from agent.cli.progress import reading_progress
    from agent.cli.proposals import outcomes_json, outcomes_text
    from agent.cli.terminal import TerminalConsole
    from agent.render.documents import to_json
    from agent.workflows.review import ReviewOptions, review_kept

    console = TerminalConsole()
    options = ReviewOptions(rules, accept is not None, console.interactive)
    result = review_kept(options, console, reading=reading_progress)
    if not result.outcomes:
        talk("no proposals are kept: label-agent propose TRACE --repo DIR makes some")
    if json:
        write_result(to_json(outcomes_json(result, "review")), output)
    else:
        write_result("\n".join(outcomes_text(result)), output)
    return 1 if any(outcome.state == "refused" for outcome in result.outcomes) else 0
