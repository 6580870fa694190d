"""The command tree: one module per command, each imported when it is called or listed."""

from __future__ import annotations

import importlib

import click

COMMANDS = ("demo", "label", "propose", "review", "judge", "diff", "verify", "rules")
"""Names of commands, and of the modules and functions that are them; in the order of the help."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the names in order."""
        del ctx
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called.

        Raises:
            NoSuchCommand: there is none of that name; it has those that are nearly named so.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as err:
            raise click.NoSuchCommand(err.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command: one that is not asked for costs no time."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"agent.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - a test imports them all
        return command


def _print_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    del option
    if wanted:
        from agent import __version__
        from agent.cli.screen import write_result

        write_result(f"label-agent {__version__}")
        ctx.exit()


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.option(
    "--version",
    is_flag=True,
    callback=_print_version,
    is_eager=True,
    expose_value=False,
    help="Print the version and stop.",
)
def app() -> None:
    """Say what a change in an LLM serving stack costs, from two GPU traces.

    First: label-agent label TRACE. With a second trace: label-agent diff BASE NEW. --debug on any
    command shows the traceback of an error.
    """
