"""Options that several commands share, spelled once."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
Declare = Callable[[_Command], _Command]
"""What declares an argument or an option of a command: used as `@option` above it."""


class _File(click.Path):
    """A file; an empty name, as of a variable that is not set, is not the current folder."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as in click
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - as in click
        """Refuse an empty name."""
        if value == "":
            self.fail("the name of the file is empty", param, ctx)
        return super().convert(value, param, ctx)


FILE = _File(path_type=Path)


def text_option(name: str, metavar: str, text: str) -> Declare[Any]:
    """Declare an option for a text; "" where it is not given."""
    return click.option(name, metavar=metavar, default="", show_default=False, help=text)


def flag(name: str, text: str) -> Declare[Any]:
    """Declare an option without a value."""
    return click.option(name, is_flag=True, help=text)


def several(name: str, metavar: str, text: str) -> Declare[Any]:
    """Declare an option that may be given several times."""
    return click.option(name, metavar=metavar, multiple=True, help=text)


def some_traces(text: str) -> Declare[Any]:
    """Declare arguments that together are one run, if there are any."""
    return click.argument("traces", metavar="[TRACE...]", nargs=-1, help=text)


traces_argument = click.argument(
    "traces",
    metavar="TRACE...",
    nargs=-1,
    required=True,
    help="Files, folders or globs that together are one run.",
)
rules_option = click.option(
    "--rules",
    metavar="FILE",
    type=FILE,
    help="Rule file; else label-rules.toml found upwards, else the built-in one.",
)
json_option = flag("--json", "Write JSON (with a schema number).")
output_option = click.option(
    "-o", "--output", metavar="FILE", type=FILE, help="Write to FILE instead of stdout."
)
salvage_option = flag("--salvage", "Read what is whole of a damaged file; reports say INCOMPLETE.")
fresh_option = flag("--no-cache", "Read every trace anew, and keep nothing of it.")
rollup_option = flag("--rollup", "Fold categories into their coarser rows.")
top_option = click.option(
    "--top",
    metavar="N",
    type=click.IntRange(0, 10_000),
    help="Rows of kernel lists; else 10, in JSON all.",
)
SHORT_LIST, EVERYTHING = 10, 1_000_000
repos_option = several("--repo", "[NAME=]DIR", "A source checkout; may be given several times.")
context_option = several(
    "--context",
    "KEY=VALUE",
    "What is known of the run: backend=rocm, arch=gfx942, attention=aiter, model=MLA.",
)
names_option = text_option(
    "--names",
    "TSV",
    "Names with categories that no rule may steal (kernel_name, category).",
)
baseline_option = several(
    "--baseline", "BASE", "The run before the change; may be given several times."
)


class Engine(StrEnum):
    """Where files are read."""

    local = "local"
    dask = "dask"


engine_option = click.option(
    "--engine",
    type=click.Choice(Engine),
    default=Engine.local,
    help="Read files here, or on a Dask cluster (fsspec paths).",
)
scheduler_option = text_option(
    "--scheduler", "ADDRESS", "The Dask scheduler; else a cluster on this machine."
)


PROFILE_SUFFIX = ".profile"
"""Ends the name of what `label` keeps of a run."""


class LabelFormat(StrEnum):
    """How `label` can be written."""

    text = "text"
    md = "md"
    csv = "csv"
    html = "html"
    json = "json"


class DiffFormat(StrEnum):
    """How `diff` can be written."""

    text = "text"
    md = "md"
    csv = "csv"
    html = "html"
    json = "json"
    github = "github"


def format_option(formats: type[StrEnum]) -> Declare[Any]:
    """Declare how a result can be written."""
    text = "How to write the result; else by the suffix of -o, else text."
    return click.option("--format", type=click.Choice(formats), help=text)


def chosen_format(asked: StrEnum | None, output: Path | None, *, json: bool) -> str:
    """Give the format to write: --json, --format, the suffix of the output file, or text.

    Raises:
        UsageError: CL001 two formats are asked for.
    """
    if json:
        if asked is not None and asked.value != "json":
            from agent.errors import UsageError

            raise UsageError(
                "CL001", f"--json and --format {asked.value} are two formats", hint="give one"
            )
        return "json"
    if asked is not None:
        return asked.value
    suffix = output.suffix.lstrip(".").lower() if output is not None else ""
    return suffix if suffix in {"md", "csv", "html", "json"} else "text"
