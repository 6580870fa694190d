"""`label-agent judge`."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli.options import (
    BaselineOption,
    ContextOption,
    JsonOption,
    NamesOption,
    OutputOption,
    ReposOption,
    RulesOption,
    SalvageOption,
)
from agent.cli.screen import write_result


def judge(
    file: Annotated[
        str, typer.Argument(metavar="FILE.jsonl", help="One proposal a line; - is stdin.")
    ],
    traces: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TRACE...]", help="The run they are for.", show_default=False),
    ] = None,
    repo: ReposOption = None,
    baseline: BaselineOption = None,
    names: NamesOption = "",
    context: ContextOption = None,
    rules: RulesOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
    salvage: SalvageOption = False,
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
        traces=tuple(traces or ()),
        baseline=tuple(baseline or ()),
        repos=tuple(repo or ()),
        names=names,
        context=tuple(context or ()),
        salvage=salvage,
    )
    judged = judge_file(file, inputs, rules=rules, reading=reading_progress)
    parts = [(one.line, one.verdict, one.findings) for one in judged]
    text = to_json(verdicts_document(parts)) if json else "\n".join(verdict_lines(parts))
    write_result(text, output)
    return 0 if all(one.admitted for one in judged) else 1
