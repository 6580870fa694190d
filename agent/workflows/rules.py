"""`rules`: lint, list, show, test, import and upgrade a rule file; nothing here prints."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.bundled import bundled_folder
from agent.core.kernels import Trace
from agent.core.proposals import Finding
from agent.core.rules import Category, Rule, RuleId, RuleSet
from agent.core.text import counted, shown
from agent.errors import RuleFileError, UsageError
from agent.ruleset.importers import ImportedRules
from agent.ruleset.moves import Move
from agent.ruleset.namelist import NamesReport
from agent.workflows.label import Progress
from agent.workflows.rulefile import rule_path, rules_in_force, shown_path

_FOUND_ON_LOAD = frozenset({"RS005", "RS006", "RS008", "RS009"})


@dataclass(frozen=True)
class LintReport:
    """What lint says of a rule file; `moves` only against an earlier version and a trace."""

    ruleset: RuleSet
    findings: tuple[Finding, ...]
    moves: tuple[Move, ...] = ()

    @property
    def failed(self) -> bool:
        """Tell whether there is an error; warnings and notes do not fail a file."""
        return any(finding.severity == "error" for finding in self.findings)


@dataclass(frozen=True)
class ShownRule:
    """One rule with its category and the text of the category's page ("" where it has none)."""

    rule: Rule
    category: Category
    page: str


@dataclass(frozen=True)
class ImportReport:
    """An imported rule file, and what lint says of it."""

    imported: ImportedRules
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class UpgradePreview:
    """What extending the newest shipped rules would relabel; `text` is the file with it."""

    path: Path
    current: str
    newest: str
    text: str
    moves: tuple[Move, ...] = field(default=())

    @property
    def needed(self) -> bool:
        """Tell whether there is a newer version."""
        return self.current != self.newest


def lint_file(
    path: Path | None = None,
    *,
    traces: Sequence[str] = (),
    since: str = "",
    progress: Progress | None = None,
) -> LintReport:
    """Lint the rule file named, found upwards, or shipped; with traces also against their names.

    Raises:
        RuleFileError: the file cannot be read, is not TOML, or has no version at `since`.
        UsageError: `since` without a trace.
        TraceError, SourceError: a trace cannot be read, git cannot be run.
    """
    from agent.ruleset.lint import lint_rules

    if since and not traces:
        message = "--since compares the labels of a trace, and none was given"
        raise UsageError("RS014", message, hint="rules lint --since REV TRACE")
    named = rule_path(path)
    ruleset, on_load = _checked(named)
    trace = _read(traces, progress)
    linted = lint_rules(ruleset, trace=trace, source=shown_path(named))
    findings = [*on_load, *(f for f in linted if f.code not in _FOUND_ON_LOAD)]
    findings += _shipped_findings(ruleset, shown_path(named))
    moves: tuple[Move, ...] = ()
    if since and trace is not None:
        moves = _moves_since(named, since, ruleset, trace)
        findings += [_moved(move, ruleset, shown_path(named)) for move in moves]
    return LintReport(ruleset, tuple(sorted(set(findings), key=_place)), moves)


def list_rules(path: Path | None = None, *, category: str = "") -> tuple[RuleSet, tuple[Rule, ...]]:
    """Give the rules in force in order, of one category where it is named.

    Raises:
        RuleFileError: the file cannot be used.
        UsageError: no such category.
    """
    ruleset = rules_in_force(path)
    if not category:
        return ruleset, ruleset.rules
    if category not in ruleset.category_ids:
        raise _unknown("RS006", "category", category, list(ruleset.category_ids))
    return ruleset, tuple(rule for rule in ruleset.rules if rule.category == category)


def show_rule(rule_id: str, path: Path | None = None) -> ShownRule:
    """Give one rule with its category's page.

    Raises:
        RuleFileError: the file cannot be used.
        UsageError: no such rule.
    """
    ruleset = rules_in_force(path)
    rule = ruleset.by_id.get(RuleId(rule_id))
    if rule is None:
        raise _unknown("RS013", "rule", rule_id, list(ruleset.by_id))
    category = next(entry for entry in ruleset.categories if entry.id == rule.category)
    page = bundled_folder("rules") / f"{category.id}.md"
    return ShownRule(rule, category, page.read_text(encoding="utf-8") if page.is_file() else "")


def check_names_file(names: Path, path: Path | None = None) -> NamesReport:
    """Compare a list of names with what the rules in force make of them.

    Raises:
        RuleFileError: the rule file cannot be used, or the list cannot be read.
    """
    from agent.ruleset.files import read_rule_text
    from agent.ruleset.namelist import check_names

    ruleset = rules_in_force(path)
    return check_names(
        ruleset, read_rule_text(names, what="list of names"), source=shown_path(names)
    )


def import_file(
    path: Path,
    *,
    engine: str = "",
    model: str = "",
    categories: Mapping[str, str] | None = None,
    target: str = "imported rules",
) -> ImportReport:
    """Make a rule file of another tool's rules: JSON of gputrc2graph, else CSV.

    Findings of the result are located in `target`.

    Raises:
        RuleFileError: the file has neither form; it carries all findings.
        UsageError: engine or model must be chosen.
    """
    from agent.ruleset.codec import parse_rules
    from agent.ruleset.files import read_rule_text
    from agent.ruleset.importers import import_csv, import_gputrc2graph
    from agent.ruleset.lint import lint_rules

    text, source = read_rule_text(path, what="file to import"), shown_path(path)
    if path.suffix.lower() == ".json" or text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        imported = import_gputrc2graph(
            text, engine=engine, model=model, categories=categories, source=source
        )
    else:
        imported = import_csv(text, categories=categories, source=source)
    linted = lint_rules(parse_rules(imported.text, source=target), source=target)
    return ImportReport(imported, (*imported.findings, *linted))


def preview_upgrade(
    path: Path | None = None, *, traces: Sequence[str] = (), progress: Progress | None = None
) -> UpgradePreview:
    """Say what extending the newest shipped rules would relabel; nothing is written.

    Raises:
        RuleFileError: the file cannot be used, or extends nothing.
        TraceError: a trace cannot be read.
    """
    from agent.ruleset.codec import builtin_version
    from agent.ruleset.editing import with_extends
    from agent.ruleset.files import read_rule_text

    named = rule_path(path)
    ruleset = rules_in_force(named)
    newest = f"builtin@{builtin_version()}"
    if not ruleset.extends:
        raise RuleFileError(
            "RS010",
            "it extends nothing, so there is nothing to upgrade",
            location=shown_path(named),
            hint="name a rule file that extends the built-in rules, with --rules",
        )
    text = read_rule_text(named)
    changed = text if ruleset.extends == newest else with_extends(text, newest)
    trace = _read(traces, progress)
    moves = upgrade_preview(text, trace) if trace is not None else ()
    return UpgradePreview(named, ruleset.extends, newest, changed, moves)


def upgrade_preview(text: str, trace: Trace) -> tuple[Move, ...]:
    """List the names of a trace that a rule file would label otherwise on the newest shipped rules.

    Raises:
        RuleFileError: the text cannot be used, before or after, or extends nothing.
    """
    from agent.ruleset.codec import builtin_version, parse_rules
    from agent.ruleset.editing import with_extends
    from agent.ruleset.moves import moved_names

    after = parse_rules(with_extends(text, f"builtin@{builtin_version()}"))
    return moved_names(trace, parse_rules(text), after)


def write_upgrade(preview: UpgradePreview) -> None:
    """Write the upgraded file in one step, unless it changed since the preview.

    Raises:
        RuleFileError: the file changed meanwhile.
    """
    from agent.review.replace import replace_file
    from agent.ruleset.codec import parse_rules
    from agent.ruleset.editing import with_extends
    from agent.ruleset.files import read_rule_text

    text = read_rule_text(preview.path)
    if with_extends(text, preview.newest) != preview.text:
        message = "the rule file changed since the preview"
        raise RuleFileError("RS012", message, location=shown_path(preview.path))
    parse_rules(preview.text, source=shown_path(preview.path))
    replace_file(preview.path, preview.text.encode("utf-8"))


def _checked(path: Path) -> tuple[RuleSet, tuple[Finding, ...]]:
    from agent.ruleset.codec import checked_rules
    from agent.ruleset.files import is_shipped, read_rule_text

    return checked_rules(read_rule_text(path), source=shown_path(path), shipped=is_shipped(path))


def _read(traces: Sequence[str], progress: Progress | None) -> Trace | None:
    if not traces:
        return None
    from agent.traces.reader import read_trace

    return read_trace(traces, progress=progress)


def _shipped_findings(ruleset: RuleSet, source: str) -> list[Finding]:
    """Note a newer shipped version, and shipped rules that the file replaces."""
    from agent.ruleset.codec import builtin_version, load_builtin

    _, at, number = ruleset.extends.partition("builtin@")
    if not at or not number.isascii() or not number.isdecimal():
        return []
    findings: list[Finding] = []
    version = int(number)
    if version < builtin_version():
        message = f"extends {ruleset.extends}; this release ships builtin@{builtin_version()}"
        hint = "label-agent rules upgrade TRACE shows what that relabels"
        findings.append(Finding("RS033", message, "note", location=f"{source}:1", hint=hint))
    try:
        shipped = load_builtin(version).by_id
    except RuleFileError:
        return findings
    for rule in ruleset.rules:
        if rule.source != ruleset.extends and rule.id in shipped:
            message = f'rule "{rule.id}" replaces the shipped rule of that id'
            findings.append(Finding("RS034", message, "note", location=f"{source}:{rule.line}"))
    return findings


def _moves_since(path: Path, since: str, after: RuleSet, trace: Trace) -> tuple[Move, ...]:
    from agent.ruleset.codec import parse_rules
    from agent.ruleset.files import is_shipped
    from agent.ruleset.moves import moved_names

    text = _text_at(path, since)
    return moved_names(trace, parse_rules(text, source=path.name, shipped=is_shipped(path)), after)


def _text_at(path: Path, revision: str) -> str:
    """Read a file as it was at a git revision, from git's objects alone."""
    from agent.errors import SourceError
    from agent.source.gitprocess import run_git

    file = path.resolve()
    commit = f"{revision}^{{commit}}"
    try:
        found = run_git(file.parent, "rev-parse", "--verify", "--end-of-options", commit)
        blob = f"{found.decode().strip()}:./{file.name}"
        content = run_git(file.parent, "cat-file", "blob", blob)
        return content.decode("utf-8")
    except (SourceError, UnicodeDecodeError) as err:
        if isinstance(err, SourceError) and err.code == "CL005":
            raise
        message = f'no version of {path.name} at "{shown(revision, limit=60)}"'
        hint = "give a commit, a tag or a branch that holds the file"
        raise RuleFileError("RS014", message, location=shown_path(path), hint=hint) from err


def _moved(move: Move, after: RuleSet, source: str) -> Finding:
    """Note a name that changed category, at the rule that decides it now."""
    rule = after.by_id.get(move.rule_after) if move.rule_after else None
    by = f' by "{rule.id}"' if rule else ""
    message = (
        f'"{shown(move.name, limit=200)}" was {move.before}, is {move.after}{by}: '
        f"{counted(move.count, 'call')}, {move.time_ns / 1e6:.3f} ms"
    )
    extended = bool(rule and after.extends and rule.source == after.extends)
    where = f"{rule.source if extended else source}:{rule.line}" if rule else source
    return Finding("RS032", message, "note", location=where)


def _unknown(code: str, what: str, wanted: str, known: list[str]) -> UsageError:
    folded = {name.casefold(): name for name in sorted(known)}
    near = difflib.get_close_matches(wanted.casefold(), folded, n=1)
    near += [name for name in folded if name.startswith(f"{wanted.casefold()}.")][:1]
    hint = f"did you mean {folded[near[0]]}?" if near else "label-agent rules list shows all"
    return UsageError(code, f'no {what} "{shown(wanted, limit=60)}"', hint=hint)


def _place(finding: Finding) -> tuple[str, int, Finding]:
    source, _, line = finding.location.rpartition(":")
    return (source, int(line), finding) if line.isdecimal() else (finding.location, 0, finding)
