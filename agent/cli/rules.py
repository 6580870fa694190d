"""`label-agent rules …`: lint, list, show, test, import, upgrade."""

from __future__ import annotations

from pathlib import Path

import click

from agent.cli.options import (
    FILE,
    flag,
    json_option,
    output_option,
    rules_option,
    some_traces,
    text_option,
)
from agent.cli.screen import talk, write_result


@click.group()
def rules() -> None:
    """Check, read, test and import rule files."""


@rules.command()
@some_traces("Also check against a run.")
@rules_option
@text_option(
    "--since", "REV", "List the names of the run that changed category since this git revision."
)
@json_option
@output_option
def lint(
    traces: tuple[str, ...], rules: Path | None, since: str, json: bool, output: Path | None
) -> int:
    """Check a rule file and list everything wrong with it, as FILE:LINE.

    Example: label-agent rules lint --since HEAD~3 run/
    """
    from agent.cli.progress import reading_progress
    from agent.render.documents import to_json
    from agent.render.rules_report import lint_document, lint_text
    from agent.workflows.rules import lint_file

    with reading_progress() as progress:
        report = lint_file(rules, traces=traces, since=since, progress=progress)
    parts = (report.ruleset, report.findings, report.moves)
    text = to_json(lint_document(*parts)) if json else lint_text(*parts)
    write_result(text, output)
    return 1 if report.failed else 0


@rules.command("list")
@rules_option
@text_option("--category", "ID", "Only this one.")
@json_option
@output_option
def list_(rules: Path | None, category: str, json: bool, output: Path | None) -> int:
    """List the rules in force, in the order in which they are tried.

    Example: label-agent rules list --category MLA
    """
    from agent.render.documents import to_json
    from agent.render.rules_report import rules_document, rules_text
    from agent.workflows.rules import list_rules

    ruleset, listed = list_rules(rules, category=category)
    text = to_json(rules_document(ruleset, listed)) if json else rules_text(ruleset, listed)
    write_result(text, output)
    return 0


@rules.command()
@click.argument("rule_id", metavar="ID", help="The rule's id.")
@rules_option
@json_option
@output_option
def show(rule_id: str, rules: Path | None, json: bool, output: Path | None) -> int:
    """Show one rule with its examples and evidence, and the page of its category.

    Example: label-agent rules show mla.aiter-asm
    """
    from agent.render.documents import to_json
    from agent.render.rules_report import rule_document, rule_text
    from agent.workflows.rules import show_rule

    found = show_rule(rule_id, rules)
    text = (
        to_json(rule_document(found.rule))
        if json
        else rule_text(found.rule, found.category, found.page)
    )
    write_result(text, output)
    return 0


@rules.command("test")
@click.argument("names", metavar="NAMES.tsv", type=FILE, help="Columns kernel_name and category.")
@rules_option
@json_option
@output_option
def check(names: Path, rules: Path | None, json: bool, output: Path | None) -> int:
    """Say which names of a list the rules label otherwise or not at all; exit 1 if any.

    Example: label-agent rules test names.tsv
    """
    from agent.render.documents import to_json
    from agent.render.rules_report import names_document, names_text
    from agent.workflows.rules import check_names_file

    report = check_names_file(names, rules)
    write_result(to_json(names_document(report)) if json else names_text(report), output)
    return 1 if report.wrong or report.unlabelled else 0


@rules.command("import")
@click.argument(
    "file", metavar="FILE", type=FILE, help="gputrc2graph JSON, or CSV category,pattern."
)
@text_option("--engine", "NAME", "Which engine of the JSON.")
@text_option("--model", "NAME", "Which model of the JSON.")
@click.option(
    "--map",
    "pairs",
    metavar="THEIRS=OURS",
    multiple=True,
    help="Use one of our categories for one of theirs.",
)
@output_option
@flag("--force", "Replace the file named with -o.")
def import_(
    file: Path, engine: str, model: str, pairs: tuple[str, ...], output: Path | None, force: bool
) -> int:
    """Make a rule file of another tool's rules; what cannot be said in it is reported.

    Example: label-agent rules import sglang_engine_model.json --model ds -o label-rules.toml
    """
    from agent.errors import UsageError
    from agent.workflows.rules import import_file

    if output is not None and output.is_file() and not force:
        raise UsageError(
            "CL006", "there is a file already", location=str(output), hint="--force replaces it"
        )
    mapping = _mapping(pairs)
    target = str(output) if output is not None else "imported rules"
    report = import_file(file, engine=engine, model=model, categories=mapping, target=target)
    for finding in report.findings:
        where = f"{finding.location}: " if finding.location else ""
        talk(f"{where}{finding.code} {finding.message}")
    write_result(report.imported.text, output)
    if output is not None:
        talk("it extends nothing: where it is in force, the built-in rules are not")
    return 1 if any(finding.severity == "error" for finding in report.findings) else 0


@rules.command()
@some_traces("Show what would move in a run.")
@rules_option
@flag("--write", "Write the upgraded file.")
@json_option
def upgrade(traces: tuple[str, ...], rules: Path | None, write: bool, json: bool) -> int:
    """Show what extending the newest built-in rules would relabel, before it applies.

    Example: label-agent rules upgrade run/
    """
    from agent.cli.progress import reading_progress
    from agent.render.documents import to_json
    from agent.render.rules_report import upgrade_document, upgrade_text
    from agent.workflows.rules import preview_upgrade, write_upgrade

    with reading_progress() as progress:
        preview = preview_upgrade(rules, traces=traces, progress=progress)
    parts = (preview.current, preview.newest, preview.moves)
    write_result(to_json(upgrade_document(*parts)) if json else upgrade_text(*parts))
    if write and preview.needed:
        write_upgrade(preview)
        talk(f"wrote {preview.path}")
    return 0


def _mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    from agent.errors import UsageError

    mapping: dict[str, str] = {}
    for pair in pairs:
        theirs, equals, ours = pair.rpartition("=")
        if not equals or not theirs or not ours:
            raise UsageError(
                "CL001", f"--map {pair!r} is not THEIRS=OURS", hint="--map 'nccl=Comm'"
            )
        mapping[theirs] = ours
    return mapping
