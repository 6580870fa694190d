"""`label-agent label`."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli.options import (
    JsonOption,
    LabelFormat,
    OutputOption,
    RollupOption,
    RulesOption,
    SalvageOption,
    TopOption,
    Traces,
)
from agent.cli.screen import result_width, write_result


def label(
    traces: Traces,
    rules: RulesOption = None,
    json: JsonOption = False,
    format: Annotated[  # noqa: A002 - the option's name
        LabelFormat, typer.Option("--format", help="How to write the result.")
    ] = LabelFormat.text,
    output: OutputOption = None,
    top: TopOption = 10,
    rollup: RollupOption = False,
    salvage: SalvageOption = False,
) -> int:
    """Label every GPU kernel of one run: category table, coverage, top unlabelled kernels.

    -o FILE.profile keeps the run as a small table that `diff` reads in place of the traces.

    Example: label-agent label run/*.trace.json.gz --format md
    """
    from agent.cli.progress import reading_progress
    from agent.workflows.label import label_run

    with reading_progress() as progress:
        labelled = label_run(traces, rules=rules, salvage=salvage, progress=progress)
    wanted = LabelFormat.json if json else format
    write_result(_rendered(labelled, wanted, top=top, rollup=rollup), output)
    return 0
