"""Options that several commands share, spelled once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE...",
        help="Files, folders or globs that together are one run.",
        show_default=False,
    ),
]
RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        metavar="FILE",
        help="Rule file; else label-rules.toml found upwards, else the built-in one.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON (with a schema number).")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write to FILE instead of stdout.",
        show_default=False,
    ),
]
SalvageOption = Annotated[
    bool,
    typer.Option("--salvage", help="Read what is whole of a damaged file; reports say INCOMPLETE."),
]
FreshOption = Annotated[
    bool,
    typer.Option("--no-cache", help="Read every file anew, and keep nothing of it."),
]
RollupOption = Annotated[
    bool, typer.Option("--rollup", help="Fold categories into their coarser rows.")
]
TopOption = Annotated[
    int | None,
    typer.Option(
        "--top",
        min=0,
        max=10_000,
        help="Rows of kernel lists; else 10, in JSON all.",
        show_default=False,
    ),
]
SHORT_LIST, EVERYTHING = 10, 1_000_000
KernelsOption = Annotated[
    bool, typer.Option("--kernels", help="Show each category's kernels, and by which rule.")
]
ReposOption = Annotated[
    list[str] | None,
    typer.Option(
        "--repo",
        metavar="[NAME=]DIR",
        help="A source checkout; may be given several times.",
        show_default=False,
    ),
]
ContextOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        metavar="KEY=VALUE",
        help="What is known of the run: backend=rocm, arch=gfx942, attention=aiter, model=MLA.",
        show_default=False,
    ),
]
NamesOption = Annotated[
    str,
    typer.Option(
        "--names",
        metavar="TSV",
        help="Names with categories that no rule may steal (kernel_name, category).",
        show_default=False,
    ),
]
BaselineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline",
        metavar="BASE",
        help="The run before the change; may be given several times.",
        show_default=False,
    ),
]


class Engine(StrEnum):
    """Where files are read."""

    local = "local"
    dask = "dask"


EngineOption = Annotated[
    Engine,
    typer.Option("--engine", help="Read files here, or on a Dask cluster (fsspec paths)."),
]
SchedulerOption = Annotated[
    str,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="The Dask scheduler; else a cluster on this machine.",
        show_default=False,
    ),
]


PROFILE_SUFFIX = ".profile"
"""Ends the name of what `label` keeps of a run."""

FORMAT_HELP = "How to write the result; else by the suffix of -o, else text."


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
