"""Places in a TOML text agree with what a TOML parser reads there."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.bundled import bundled_folder
from agent.ruleset.positions import line_of, line_table, statements

TRICKY = r'''# [[rule]] in a comment
schema = 1   # version = 3
title = """a "quoted" [[rule]]
# no comment \""" still """""  # ends with two quotes
other = \'''it\'s [[rule]]
\'''
"quoted key".'dotted' . plain = 1979-05-27T07:32:00Z

[[rule]] # first
id = "x # y"
kernel = 'a]]\'
examples = [ # [[rule]]
  'one ]', "two \" [", """three
lines""",
  [ 'nested', { a = 1, b = ['#'] } ],
]

[[ rule . evidence ]]
lines = [1,
2]
[[rule.evidence]]
path = 'second'
[rule.proposed_by]
model = "m"

  [[rule]]
  id = 'last'
inline = { a.b = "}", c = [1, 2] }
[[rule.evidence]]
path = 'of the last'
'''.replace(r"\'''", "'''").replace(r"it\'s", "it's")


def value_at(parsed: Any, place: tuple[str | int, ...]) -> Any:
    for step in place:
        parsed = parsed[step]
    return parsed


def check(text: str) -> None:
    parsed = tomllib.loads(text)
    found = statements(text)
    for statement in found:
        assert text.count("\n", 0, statement.start) + 1 == statement.line
        value = value_at(parsed, statement.place)
        if statement.kind == "key":
            written = text[statement.value : statement.end]
            assert tomllib.loads(f"v = {written}")["v"] == value
        else:
            assert isinstance(value, dict)
    assert sum(
        1 for s in found if s.place[:1] == ("rule",) and s.kind == "array" and len(s.place) == 2
    ) == (len(parsed.get("rule", [])))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_each_statement_holds_the_value_the_parser_reads(newline: str) -> None:
    check(TRICKY.replace("\n", newline))


def test_the_shipped_rule_file() -> None:
    check((bundled_folder("rules") / "builtin.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("place", "marker"),
    [
        (("rule", 0), "[[rule]] # first"),
        (("rule", 0, "kernel"), "kernel = "),
        (("rule", 0, "examples", 0), "'one ]'"),
        (("rule", 0, "examples", 3), "'nested'"),
        (("rule", 0, "evidence", 1, "path"), "path = 'second'"),
        (("rule", 1, "id"), "id = 'last'"),
        (("rule", 1, "evidence", 0, "path"), "path = 'of the last'"),
        (("rule", 1, "missing"), "  [[rule]]"),
        (("nowhere",), "# [[rule]] in a comment"),
    ],
)
def test_a_place_has_its_line_or_that_of_what_is_around_it(
    place: tuple[str | int, ...], marker: str
) -> None:
    line = line_of(line_table(TRICKY), place)
    assert TRICKY.splitlines()[line - 1].lstrip().startswith(marker.lstrip()) or (
        marker in TRICKY.splitlines()[line - 1]
    )


STRINGS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20).map(
        lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    ),
    st.text(
        st.characters(exclude_characters="'", exclude_categories=("Cs", "Cc")), max_size=20
    ).map(lambda text: f"'{text}'"),
    st.text(alphabet="a'\"[]#\n{}=, ", max_size=20).map(
        lambda text: "'''" + text.replace("'''", "''").rstrip("'") + "'''"
    ),
    st.text(alphabet="a'\"[]#\n{}=, ", max_size=20).map(
        lambda text: '"""' + text.replace('"""', '\\"""') + ' """'
    ),
)
VALUES = st.recursive(
    st.one_of(STRINGS, st.integers(0, 99).map(str), st.sampled_from(["true", "1.5", "1979-05-27"])),
    lambda inner: st.lists(inner, max_size=3).map(
        lambda parts: "[ # [\n" + ",\n".join(parts) + "\n]"
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(["a", "b-c", "'d [[x]]'", '"e = #"', "f"])
TABLES = st.dictionaries(KEYS, VALUES, max_size=3)
HEADERS = st.sampled_from(
    ["[[rule]]", "[[ rule ]] # [[rule]]", "[[rule.evidence]]", "  [[category]]"]
)


@given(TABLES, st.lists(st.tuples(HEADERS, TABLES), max_size=5), st.booleans())
def test_any_layout(
    root: dict[str, str], tables: list[tuple[str, dict[str, str]]], final_newline: bool
) -> None:
    lines = [f"{key} = {value}" for key, value in root.items()]
    seen_rule = False
    for header, table in tables:
        if "evidence" in header and not seen_rule:
            continue
        seen_rule = seen_rule or header.lstrip().startswith(("[[rule]]", "[[ rule ]]"))
        lines += ["", header, *(f"{key} = {value} # '\"[" for key, value in table.items())]
    check("\n".join(lines) + ("\n" if final_newline else ""))
