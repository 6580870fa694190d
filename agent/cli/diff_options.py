"""Options that only `diff` has."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.options import FORMAT_HELP, DiffFormat


class SortBy(StrEnum):
    """How rows are ordered."""

    time = "time"
    delta = "delta"
    calls = "calls"
    name = "name"


class By(StrEnum):
    """Which parts of the runs are compared as well."""

    stage = "stage"
    rank = "rank"
    stream = "stream"


Base = Annotated[str, typer.Argument(metavar="BASE", help="The run before: file, folder or glob.")]
New = Annotated[str, typer.Argument(metavar="NEW", help="The run after the change.")]
FormatOption = Annotated[
    DiffFormat | None, typer.Option("--format", help=FORMAT_HELP, show_default=False)
]
SvgOption = Annotated[
    Path | None,
    typer.Option("--svg", metavar="FILE", help="Write the waterfall, too.", show_default=False),
]
SortOption = Annotated[SortBy, typer.Option("--sort", help="Order of the rows.")]
ByOption = Annotated[
    By | None,
    typer.Option("--by", help="Also compare these parts one by one.", show_default=False),
]
FailOnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="EXPR",
        help="Exit 1 when it holds: 'total>1%', 'GEMM>2ms', 'new-category'. Repeatable.",
        show_default=False,
    ),
]
BaseRepeatOption = Annotated[
    list[str] | None,
    typer.Option(
        "--base-repeat", metavar="RUN", help="Another run of BASE, for noise.", show_default=False
    ),
]
NewRepeatOption = Annotated[
    list[str] | None,
    typer.Option(
        "--new-repeat", metavar="RUN", help="Another run of NEW, for noise.", show_default=False
    ),
]
KernelRowsOption = Annotated[
    bool, typer.Option("--kernels", help="In CSV: a line for each kernel, not for each category.")
]
IncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Compare although a side was salvaged.")
]
