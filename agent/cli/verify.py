"""`label-agent verify`."""

from __future__ import annotations

from pathlib import Path

import click

from agent.cli.options import flag, json_option, output_option, repos_option, rules_option
from agent.cli.screen import talk, write_result


@click.command()
@repos_option
@rules_option
@flag("--update", "Rewrite line numbers that moved, as a diff to review.")
@json_option
@output_option
def verify(
    repo: tuple[str, ...], rules: Path | None, update: bool, json: bool, output: Path | None
) -> int:
    """Check the evidence of every rule against a checkout again; exit 1 when one needs a person.

    Example: label-agent verify --repo ./sglang --repo ./aiter
    """
    from agent.render.documents import to_json
    from agent.render.evidence_report import evidence_status_document, evidence_status_text
    from agent.workflows.verify import verify_rules

    report = verify_rules(repo, rules=rules, update=update)
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
