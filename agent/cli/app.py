"""The command tree: one module per command, imported here and nowhere else."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli.demo import demo
from agent.cli.diff import diff
from agent.cli.judge import judge
from agent.cli.label import label
from agent.cli.propose import propose
from agent.cli.review import review
from agent.cli.rules import rules_app
from agent.cli.verify import verify

app = typer.Typer(
    name="label-agent",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from agent import __version__
        from agent.cli.screen import write_result

        write_result(f"label-agent {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Say what a change in an LLM serving stack costs, from two GPU traces.

    First: label-agent label TRACE. With a second trace: label-agent diff BASE NEW. --debug on any
    command shows the traceback of an error.
    """


for command in (demo, label, propose, review, judge, diff, verify):
    app.command()(command)
app.add_typer(rules_app, name="rules")
