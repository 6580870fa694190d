"""`label-agent judge`."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli.options import JsonOption, OutputOption, ReposOption, RulesOption, SalvageOption
from agent.cli.screen import write_result

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
