"""A proposal as TOML that a person can edit, and back; the gate judges the result afresh."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable

from agent.core.proposal_form import proposal_from
from agent.core.proposals import Evidence, Finding, Proposal
from agent.core.text import shown
from agent.errors import RuleFileError
from agent.ruleset.writing import toml_string

_HEAD = """\
# Change what you like, save and close; the gate judges the result again.
# Leave the file empty to change nothing. Evidence is checked at the commit it names.
"""


def edit_text(proposal: Proposal) -> str:
    """Give a proposal as TOML.

    Raises:
        RuleFileError: a name in it cannot be written as UTF-8.
    """
    fields = [f"{key} = {_safe(getattr(proposal, key))}" for key in ("category", "kernel", "op")]
    lists = ("input_dtypes", "overrides", "kernels")
    fields += [f"{key} = {_safe_list(getattr(proposal, key))}" for key in lists]
    fields.append(f"rationale = {_safe(proposal.rationale)}")
    blocks = [_HEAD + "\n".join(fields), *map(_evidence, proposal.evidence)]
    return "\n\n".join(blocks) + "\n"


def edited(text: str) -> Proposal | Finding | None:
    """Read an edited text; None where nothing is left of it.

    The proposal carries no origin: the caller knows whose it was.
    """
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError) as err:
        return Finding("E_SCHEMA", f"not TOML: {shown(str(err), limit=300)}")
    if not value:
        return None
    return proposal_from(value)


def with_change(proposal: Proposal, key: str, text: str) -> Proposal | Finding:
    """Give the proposal with one text field changed, checked like any other."""
    try:
        whole = tomllib.loads(edit_text(proposal))
    except (RuleFileError, ValueError) as err:
        return Finding("E_SCHEMA", shown(str(err), limit=300))
    return proposal_from({**whole, key: text})


def _evidence(entry: Evidence) -> str:
    first, last = entry.lines
    must = ("kind", "repo", "commit", "path")
    may = [key for key in ("symbol", "guard", "snippet") if getattr(entry, key)]
    fields = [f"{key} = {_safe(getattr(entry, key))}" for key in (*must, *may)]
    return "\n".join(["[[evidence]]", *fields, f"lines = [{first}, {last}]"])


def _safe_list(values: Iterable[str]) -> str:
    written = [_safe(value) for value in values]
    if len(written) < 2:
        return f"[{''.join(written)}]"
    return "[\n" + "".join(f"  {value},\n" for value in written) + "]"


def _safe(text: str) -> str:
    """Write a string so that an editor shows its hidden characters as escapes."""
    if all(shown(char) == char for char in text if char not in "\n\t"):
        return toml_string(text)
    escaped = "".join(
        char if shown(char) == char and char not in '"\\' else f"\\U{ord(char):08x}"
        for char in text
    )
    return f'"{escaped}"'
