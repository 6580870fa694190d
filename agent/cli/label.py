"""`label-agent label`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli.options import (
    EVERYTHING,
    PROFILE_SUFFIX,
    SHORT_LIST,
    Engine,
    LabelFormat,
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
    top_option,
    traces_argument,
)
from agent.cli.screen import (
    refuse_inputs,
    result_width,
    talk,
    talk_findings,
    write_file,
    write_result,
)

if TYPE_CHECKING:
    from agent.core.rules import LabelledTrace


@click.command()
@traces_argument
@rules_option
@json_option
@format_option(LabelFormat)
@output_option
@top_option
@flag("--kernels", "Show each category's kernels, and by which rule.")
@rollup_option
@salvage_option
@engine_option
@scheduler_option
@fresh_option
def label(
    traces: tuple[str, ...],
    rules: Path | None,
    json: bool,
    format: LabelFormat | None,  # noqa: A002 - the option's name
    output: Path | None,
    top: int | None,
    kernels: bool,
    rollup: bool,
    salvage: bool,
    engine: Engine,
    scheduler: str,
    no_cache: bool,
) -> int:
    """Label every GPU kernel of one run: category table, coverage, top unlabelled kernels.

    -o FILE.profile keeps the run as a small table beside the report, without its events and steps;
    `label` and `diff` read it like a trace.

    Example: label-agent label run/*.trace.json.gz --format md
    """
    from agent.cli.progress import reading_progress
    from agent.workflows.label import Reading, label_run
    from agent.workflows.rulefile import rule_path

    refuse_inputs(output, traces, rule_path(rules))
    reading = Reading(salvage, engine is Engine.dask, scheduler, not no_cache)
    with reading_progress() as progress:
        labelled = label_run(traces, rules=rules, reading=reading, progress=progress)
    if output is not None and output.suffix == PROFILE_SUFFIX:
        from agent.traces.profile import write_profile

        write_file(output, write_profile(labelled.trace))
        talk(f"wrote {output}")
        output = None
    form = LabelFormat(chosen_format(format, output, json=json))
    if form is LabelFormat.csv:
        from agent.compare.sides import summarise
        from agent.render.selection import label_findings

        talk_findings(label_findings(labelled, summarise(labelled)))
    write_result(_written(labelled, form, _Amount(top, kernels=kernels, rollup=rollup)), output)
    return 0


@dataclass(frozen=True, slots=True)
class _Amount:
    """How much of a run is written; without `top`, documents hold everything."""

    top: int | None
    kernels: bool
    rollup: bool

    @property
    def rows(self) -> int:
        """Rows of a list that a person reads."""
        return SHORT_LIST if self.top is None else self.top


def _written(labelled: LabelledTrace, form: LabelFormat, amount: _Amount) -> str:
    from agent.render import label_report
    from agent.render.documents import label_document, to_json

    rows, rollup = amount.rows, amount.rollup
    per_category = rows if amount.kernels else 0
    match form:
        case LabelFormat.json:
            top = EVERYTHING if amount.top is None else amount.top
            return to_json(
                label_document(labelled, top=top, rollup=rollup, kernels=amount.top or 0)
            )
        case LabelFormat.md:
            return label_report.label_markdown(
                labelled, top=rows, rollup=rollup, kernels=per_category
            )
        case LabelFormat.csv:
            return label_report.label_csv(labelled, rollup=rollup, kernels=amount.kernels)
        case LabelFormat.html:
            from agent.render.html import label_html

            return label_html(labelled, rollup=rollup)
        case LabelFormat.text:
            return label_report.label_text(
                labelled, width=result_width(), top=rows, rollup=rollup, kernels=per_category
            )
