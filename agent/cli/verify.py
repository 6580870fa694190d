"""`label-agent verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli.options import JsonOption, OutputOption, ReposOption, RulesOption
from agent.cli.screen import write_result


def verify(
    repo: ReposOption = None,
    rules: RulesOption = None,
    update: Annotated[
        bool, typer.Option("--update", help="Rewrite line numbers that moved, as a diff to review.")
    ] = False,
    json: JsonOption = False,
    output: OutputOption = None,
) -> int:
    """Check the evidence of every rule against a checkout again; exit 1 when one needs a person.

    Example: label-agent verify --repo ./sglang
    """
    raise NotImplementedError
