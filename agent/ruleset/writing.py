"""Values -> TOML text: strings that hold a pattern without escapes, rules, whole files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent.core.proposals import Evidence, Finding, Origin, Pin
from agent.core.rules import Category, Rule
from agent.core.text import shown
from agent.ruleset.failure import rule_file_error

_LINE_WIDTH = 100
_NOT_LITERAL = re.compile(r"['\x00-\x08\x0a-\x1f\x7f]")
_NOT_MULTILINE = re.compile(r"'''|'\Z|[\x00-\x08\x0b-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        '"': '\\"',
        "\b": "\\b",
        "\t": "\\t",
        "\n": "\\n",
        "\f": "\\f",
        "\r": "\\r",
        **{
            chr(code): f"\\u{code:04x}"
            for code in (*range(0x20), 0x7F)
            if code not in (8, 9, 10, 12, 13)
        },
    }
)


def toml_string(value: str) -> str:
    """Write a string: literal where TOML allows it (no escapes), else basic.

    Raises:
        RuleFileError: the text has lone surrogates, which no UTF-8 file can hold.
    """
    if _SURROGATE.search(value):
        message = f'text that is not Unicode cannot be written: "{shown(value, limit=80)}"'
        hint = "leave this name out of the rule's examples"
        raise rule_file_error([Finding("RS012", message, hint=hint)])
    if not _NOT_LITERAL.search(value):
        return f"'{value}'"
    if "\n" in value and not _NOT_MULTILINE.search(value):
        return f"'''\n{value}'''"
    return f'"{value.translate(_ESCAPES)}"'


def toml_strings(values: Iterable[str]) -> str:
    """Write a list of strings, one a line where they do not fit on one."""
    written = [toml_string(value) for value in values]
    line = f"[{', '.join(written)}]"
    if len(line) <= _LINE_WIDTH - len("input_dtypes = "):
        return line
    return "[\n" + "".join(f"  {text},\n" for text in written) + "]"


def evidence_values(entry: Evidence) -> dict[str, str]:
    """Give the keys of one `[[rule.evidence]]` with their TOML values, empty ones left out."""
    first, last = entry.lines
    values = {
        "kind": toml_string(entry.kind),
        "repo": toml_string(entry.repo),
        "commit": toml_string(entry.commit),
        "path": toml_string(entry.path),
        "lines": f"[{first}, {last}]",
    }
    for key in ("symbol", "guard", "snippet"):
        if text := getattr(entry, key):
            values[key] = toml_string(text)
    return {**values, **(_pin_values(entry.pin) if entry.pin else {})}


def rule_text(rule: Rule) -> str:
    """Write one `[[rule]]` with its evidence and authorship; ends with a line end."""
    return "\n".join(_rule_lines(rule)) + "\n"


def file_text(
    *,
    version: int,
    extends: str = "",
    categories: Iterable[Category] = (),
    rules: Iterable[Rule] = (),
) -> str:
    """Write a whole rule file."""
    head = ["schema = 1", f"version = {version}"]
    if extends:
        head.append(f"extends = {toml_string(extends)}")
    blocks = ["\n".join(head) + "\n"]
    blocks += [category_text(category) for category in categories]
    blocks += [rule_text(rule) for rule in rules]
    return "\n".join(blocks)


def category_text(category: Category) -> str:
    """Write one `[[category]]`; ends with a line end."""
    lines = ["[[category]]", f"id = {toml_string(category.id)}"]
    lines.append(f"title = {toml_string(category.title)}")
    if category.rollup:
        lines.append(f"rollup = {toml_string(category.rollup)}")
    return "\n".join(lines) + "\n"


def _rule_lines(rule: Rule) -> Iterator[str]:
    yield "[[rule]]"
    for key in ("id", "category", "kernel", "op"):
        if key == "kernel" or getattr(rule, key):
            yield f"{key} = {toml_string(getattr(rule, key))}"
    if rule.input_dtypes:
        yield f"input_dtypes = {toml_strings(rule.input_dtypes)}"
    if rule.dtypes_unknown:
        yield "dtypes_unknown = true"
    if rule.overrides:
        yield f"overrides = {toml_strings(rule.overrides)}"
    yield f"grade = {toml_string(rule.grade)}"
    if rule.note:
        yield f"note = {toml_string(rule.note)}"
    for key in ("examples", "counterexamples"):
        if values := getattr(rule, key):
            yield f"{key} = {toml_strings(values)}"
    for entry in rule.evidence:
        yield from ("", "[[rule.evidence]]")
        yield from (f"{key} = {value}" for key, value in evidence_values(entry).items())
    yield from _authorship(rule)


def _authorship(rule: Rule) -> Iterator[str]:
    if rule.proposed_by is not None:
        yield from ("", "[rule.proposed_by]")
        yield from (f"{key} = {toml_string(text)}" for key, text in _origin(rule.proposed_by))
    if rule.accepted_by is not None:
        yield from ("", "[rule.accepted_by]")
        yield f"author = {toml_string(rule.accepted_by.author)}"
        yield f"date = {toml_string(rule.accepted_by.date)}"


def _origin(origin: Origin) -> Iterator[tuple[str, str]]:
    for key in Origin.__dataclass_fields__:
        if text := getattr(origin, key):
            yield key, text


def _pin_values(pin: Pin) -> dict[str, str]:
    values: dict[str, str] = {}
    for key in ("blob", "mode", "node", "qualname", "snippet_sha256", "grammar", "trace_match"):
        if text := getattr(pin, key):
            values[key] = toml_string(text)
    if pin.guards:
        values["guards"] = toml_strings(pin.guards)
    if pin.parse != "clean":
        values["parse"] = toml_string(pin.parse)
    return values
