"""A list of kernel names with their categories, and what a rule file makes of it.

The list is tab-separated with a header that names at least `kernel_name` and `category`; other
columns are ignored. There is no quoting: a name is what stands between two tabs.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.core.kernels import KernelName, Signature
from agent.core.proposals import Finding
from agent.core.rules import UNLABELLED, CategoryId, RuleSet
from agent.core.text import shown
from agent.ruleset.failure import rule_file_error
from agent.ruleset.match import Matcher

_COLUMNS = ("kernel_name", "category")


@dataclass(frozen=True, slots=True)
class ExpectedName:
    """One line of a list."""

    name: KernelName
    category: CategoryId
    line: int


@dataclass(frozen=True, slots=True)
class WrongName:
    """A name that the rules label otherwise than the list."""

    name: KernelName
    expected: CategoryId
    got: CategoryId
    line: int


@dataclass(frozen=True, slots=True)
class NamesReport:
    """How a list of names fares; `total = right + len(wrong) + len(unlabelled)`."""

    total: int
    right: int
    wrong: tuple[WrongName, ...]
    unlabelled: tuple[KernelName, ...]

    @property
    def clean(self) -> bool:
        """Tell whether no name is labelled wrong; an unlabelled one is not wrong."""
        return not self.wrong


def read_names(text: str, *, source: str = "names.tsv") -> tuple[ExpectedName, ...]:
    """Read a list of names.

    Raises:
        RuleFileError: a column is missing, a row is too short, or two rows contradict each other;
            it carries all findings.
    """
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    header = lines[0].split("\t")
    missing = [column for column in _COLUMNS if column not in header]
    if missing:
        message = f"the header has no column {' and no column '.join(missing)}"
        hint = "the first line names the columns, separated by a tab: kernel_name, category"
        raise rule_file_error([Finding("RS040", message, location=f"{source}:1", hint=shown(hint))])
    at = [header.index(column) for column in _COLUMNS]
    names: list[ExpectedName] = []
    findings: list[Finding] = []
    seen: dict[str, ExpectedName] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split("\t")
        entry = _entry(cells, at, number)
        if entry is None:
            message = f"a row without a name and a category: {shown(line, limit=80)}"
            findings.append(Finding("RS041", message, location=f"{source}:{number}"))
            continue
        first = seen.setdefault(entry.name, entry)
        if first.category != entry.category:
            message = (
                f'"{shown(entry.name, limit=80)}" is {entry.category}, '
                f"but {first.category} in line {first.line}"
            )
            findings.append(Finding("RS042", message, location=f"{source}:{number}"))
        names.append(entry)
    if findings:
        raise rule_file_error(findings)
    return tuple(names)


def check_names(ruleset: RuleSet, text: str, *, source: str = "names.tsv") -> NamesReport:
    """Label every name of a list and compare, by name alone: a list knows no op and no dtypes.

    Raises:
        RuleFileError: the list cannot be read.
    """
    matcher = Matcher(ruleset)
    expected = read_names(text, source=source)
    wrong: list[WrongName] = []
    unlabelled: list[KernelName] = []
    for entry in expected:
        got = matcher.label(Signature(entry.name)).category
        if got == entry.category:
            continue
        if got == UNLABELLED:
            unlabelled.append(entry.name)
        else:
            wrong.append(WrongName(entry.name, entry.category, got, entry.line))
    right = len(expected) - len(wrong) - len(unlabelled)
    return NamesReport(len(expected), right, tuple(wrong), tuple(unlabelled))


def _entry(cells: list[str], at: list[int], line: int) -> ExpectedName | None:
    if len(cells) <= max(at):
        return None
    name, category = (cells[index] for index in at)
    return ExpectedName(KernelName(name), CategoryId(category), line) if name and category else None
