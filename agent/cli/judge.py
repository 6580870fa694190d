"""`label-agent judge`."""

from __future__ import annotations

from pathlib import Path

import click

from agent.cli.options import (
    baseline_option,
    context_option,
    json_option,
    names_option,
    output_option,
    repos_option,
    rules_option,
    salvage_option,
    some_traces,
)
from agent.cli.screen import write_result


@click.command()
@click.argument("file", metavar="FILE.jsonl", help="One proposal a line; - is stdin.")
@some_traces("The run they are for.")
@repos_option
@baseline_option
@names_option
@context_option
@rules_option
@json_option
@output_option
@salvage_option
def judge(
    file: str,
    traces: tuple[str, ...],
    repo: tuple[str, ...],
    baseline: tuple[str, ...],
    names: str,
    context: tuple[str, ...],
    rules: Path | None,
    json: bool,
    output: Path | None,
    salvage: bool,
) -> int:
    """Judge anybody's proposals by the gate the agent's own go through; exit 1 if one is rejected.

    Example: label-agent judge proposals.jsonl trace.json --repo sglang=./sglang --names names.tsv
    """
    from agent.cli.progress import reading_progress
    from agent.render.documents import to_json
    from agent.render.verdicts import verdict_lines, verdicts_document
    from agent.workflows.inputs import RunInputs
    from agent.workflows.judge import judge_file

    inputs = RunInputs(
        traces=traces,
        baseline=baseline,
        repos=repo,
        names=names,
        context=context,
        salvage=salvage,
    )
    judged = judge_file(file, inputs, rules=rules, reading=reading_progress)
    parts = [(one.line, one.verdict, one.findings) for one in judged]
    text = to_json(verdicts_document(parts)) if json else "\n".join(verdict_lines(parts))
    write_result(text, output)
    return 0 if all(one.admitted for one in judged) else 1
