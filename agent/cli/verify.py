"""`label-agent verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli.options import JsonOption, OutputOption, ReposOption, RulesOption
from agent.cli.screen import talk, write_result


def verify(
    repo: ReposOption = None,
    rules: RulesOption = None,
    update: Annotated[
        bool, typer.Option("--update", help="Rewrite line numbers that moved, as a diff to review.")
    ] = False,
    json: JsonOption = False,
    output: OutputOption = None,
) -> int:
    """Check the evidence of every rule against a checkout again; exit 1 when one needs a person.

    Example: label-agent verify --repo ./sglang --repo ./aiter
    """
    from agent.render.documents import to_json
    from agent.render.evidence_report import evidence_status_document, evidence_status_text
    from agent.workflows.verify import verify_rules

    report = verify_rules(repo or (), rules=rules, update=update)
    parts = [(one.rule, one.evidence) for one in report.rules]
    if json:
        text = to_json(evidence_status_document(report.ruleset, report.repos, parts))
    else:
        text = evidence_status_text(report.repos, parts)
        if report.update is not None:
            text += "\n" + report.update.diff
    write_result(text, output)
    if report.update is not None:
        talk(f"wrote {report.update.path.name}; look at the change and commit it")
    return 1 if report.needs_person else 0
