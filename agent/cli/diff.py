"""`label-agent diff`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli.options import (
    FILE,
    PROFILE_SUFFIX,
    SHORT_LIST,
    DiffFormat,
    Engine,
    chosen_format,
    engine_option,
    flag,
    format_option,
    fresh_option,
    json_option,
    output_option,
    rollup_option,
    rules_option,
    salvage_option,
    scheduler_option,
    several,
    top_option,
)
from agent.cli.screen import (
    refuse_inputs,
    result_width,
    talk,
    talk_findings,
    write_file,
    write_result,
)
from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.compare.gates import GateResult
    from agent.compare.table import TraceDiff
    from agent.render.ordering import Sort


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


@click.command()
@click.argument("base", metavar="BASE", help="The run before: file, folder or glob.")
@click.argument("new", metavar="NEW", help="The run after the change.")
@rules_option
@json_option
@format_option(DiffFormat)
@output_option
@click.option("--svg", metavar="FILE", type=FILE, help="Write the waterfall, too.")
@rollup_option
@top_option
@flag("--kernels", "In CSV: a line for each kernel, not for each category.")
@click.option("--sort", type=click.Choice(SortBy), default=SortBy.time, help="Order of the rows.")
@click.option("--by", type=click.Choice(By), help="Also compare these parts one by one.")
@several(
    "--fail-on",
    "EXPR",
    "Exit 1 when it holds: 'total>1%', 'GEMM>2ms', 'new-category'. Repeatable.",
)
@several("--base-repeat", "RUN", "Another run of BASE, for noise.")
@several("--new-repeat", "RUN", "Another run of NEW, for noise.")
@salvage_option
@flag("--allow-incomplete", "Compare although a side was salvaged.")
@engine_option
@scheduler_option
@fresh_option
def diff(
    base: str,
    new: str,
    rules: Path | None,
    json: bool,
    format: DiffFormat | None,  # noqa: A002 - the option's name
    output: Path | None,
    svg: Path | None,
    rollup: bool,
    top: int | None,
    kernels: bool,
    sort: SortBy,
    by: By | None,
    fail_on: tuple[str, ...],
    base_repeat: tuple[str, ...],
    new_repeat: tuple[str, ...],
    salvage: bool,
    allow_incomplete: bool,
    engine: Engine,
    scheduler: str,
    no_cache: bool,
) -> int:
    """Say what changed between two runs: table, ledger, impact, targets; by rules alone, no LLM.

    Example: label-agent diff bf16/ fp8/ --format html -o report.html
    """
    from agent.cli.progress import reading_progress
    from agent.workflows.diff import DiffOptions, diff_runs
    from agent.workflows.label import Reading

    _spare((output, svg), [base, new, *base_repeat, *new_repeat], rules)
    _refuse_profile(output)
    options = DiffOptions(
        rules=rules,
        reading=Reading(salvage, engine is Engine.dask, scheduler, not no_cache),
        allow_incomplete=allow_incomplete,
        rollup=rollup,
        fail_on=fail_on,
        by=by.value if by else "",
        base_repeats=base_repeat,
        new_repeats=new_repeat,
    )
    form = DiffFormat(chosen_format(format, output, json=json))
    with reading_progress() as progress:
        result, gates = diff_runs(
            base,
            new,
            options,
            progress=progress,
            meanwhile=lambda: importlib.import_module(_WRITERS[form]),
        )
    if svg is not None:
        _draw(result, svg)
    amount = _Amount(top, sort.value, kernels=kernels)
    write_result(_written(result, form, gates, amount), output)
    return _failed(result, form, gates)


def _spare(written: Sequence[Path | None], inputs: Sequence[str], rules: Path | None) -> None:
    """Refuse to write over what is read, or one result over another.

    Raises:
        UsageError: CL001 two of the files are the same one.
    """
    from agent.workflows.rulefile import rule_path

    names = [path for path in written if path is not None]
    if len(set(names)) < len(names):
        message, hint = "--svg and -o name the same file", "name two files"
        raise UsageError("CL001", message, location=str(names[0]), hint=hint)
    for path in written:
        refuse_inputs(path, inputs, rule_path(rules))


def _refuse_profile(output: Path | None) -> None:
    """Refuse a name that `label` gives to a run: what is written here is no such thing.

    Raises:
        UsageError: CL001 the output has that name.
    """
    if output is not None and output.suffix == PROFILE_SUFFIX:
        raise UsageError(
            "CL001",
            "a comparison cannot be kept as a profile, which holds one run",
            location=str(output),
            hint="keep each run with: label-agent label RUN -o RUN.profile",
        )


def _draw(result: TraceDiff, svg: Path) -> None:
    from agent.render.svg import waterfall_svg

    write_file(svg, waterfall_svg(result).encode("utf-8"))
    talk(f"wrote {svg}")


_WRITERS = {
    DiffFormat.json: "agent.render.documents",
    DiffFormat.md: "agent.render.diff_markdown",
    DiffFormat.csv: "agent.render.diff_tables",
    DiffFormat.github: "agent.render.diff_tables",
    DiffFormat.html: "agent.render.html",
    DiffFormat.text: "agent.render.diff_text",
}
"""What writes each format: imported while traces are read."""


@dataclass(frozen=True, slots=True)
class _Amount:
    """How much of a comparison is written, and in what order; without `top`, JSON holds all."""

    top: int | None
    sort: Sort
    kernels: bool

    @property
    def rows(self) -> int:
        """Rows of a list that a person reads."""
        return SHORT_LIST if self.top is None else self.top


def _written(
    result: TraceDiff, form: DiffFormat, gates: Sequence[GateResult], amount: _Amount
) -> str:
    rows, sort = amount.rows, amount.sort
    match form:
        case DiffFormat.json:
            from agent.render.documents import diff_document, to_json

            return to_json(diff_document(result, top=amount.top or 0, gates=gates))
        case DiffFormat.md:
            from agent.render.diff_markdown import diff_markdown

            return diff_markdown(result, top=rows, sort=sort)
        case DiffFormat.csv:
            from agent.render.diff_tables import diff_csv

            return diff_csv(result, kernels=amount.kernels)
        case DiffFormat.github:
            from agent.render.diff_tables import ANNOTATED, diff_github

            return diff_github(result, gates, top=ANNOTATED if amount.top is None else amount.top)
        case DiffFormat.html:
            from agent.render.html import diff_html

            return diff_html(result, sort=sort)
        case DiffFormat.text:
            from agent.render.diff_text import diff_text

            return diff_text(result, width=result_width(), top=rows, sort=sort)


def _failed(result: TraceDiff, form: DiffFormat, gates: Sequence[GateResult]) -> int:
    """Say what the result has no place for, and give the exit code."""
    if form is DiffFormat.csv:
        talk_findings(result.findings)
    failed = [gate for gate in gates if gate.failed]
    for gate in failed:
        talk(f"failed: {gate.expression}: {gate.message}")
    return 1 if failed else 0
