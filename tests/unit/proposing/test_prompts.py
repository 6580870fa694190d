"""Prompts are files; their inputs are exact, and foreign text cannot pass for theirs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.text import is_plain
from agent.errors import UsageError
from agent.proposing.loop import PROMPTS
from agent.proposing.prompts import load_prompt, load_prompts, quoted, read_prompt

GOOD = "---\nname: p\nversion: 3\ninputs: a, b\n---\n{{ a }} and {{b}}\n"


def test_a_prompt_is_filled_by_name() -> None:
    prompt = read_prompt(GOOD, "p")
    assert prompt.filled(a="1", b="{{ a }}") == "1 and {{ a }}\n"
    assert prompt.reference == "p@3"


@pytest.mark.parametrize(
    "content",
    [
        "no front matter",
        GOOD.replace("inputs: a, b", "inputs: a"),
        GOOD.replace("inputs: a, b", "inputs: a, b, c"),
        GOOD.replace("version: 3", "version: x"),
        GOOD.replace("name: p", "name: q"),
        GOOD.replace("name: p", "shell: q"),
        GOOD.replace("version: 3\n", ""),
    ],
    ids=[
        "no front matter",
        "undeclared",
        "unused",
        "version",
        "name",
        "unknown key",
        "missing key",
    ],
)
def test_a_malformed_prompt_is_an_error(content: str) -> None:
    with pytest.raises(UsageError, match="PR004"):
        read_prompt(content, "p")


@pytest.mark.parametrize("values", [{"a": "1"}, {"a": "1", "b": "2", "c": "3"}])
def test_a_missing_or_unknown_input_is_an_error(values: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="PR004"):
        read_prompt(GOOD, "p").filled(**values)


def test_the_digest_changes_with_any_prompt() -> None:
    assert read_prompt(GOOD, "p").digest != read_prompt(GOOD + " ", "p").digest
    assert len(load_prompts(PROMPTS)[1]) == 64


def test_every_shipped_prompt_can_be_read() -> None:
    assert [load_prompt(name).name for name in PROMPTS] == list(PROMPTS)


@given(st.lists(st.text(), max_size=5))
def test_every_line_of_foreign_text_is_marked(lines: list[str]) -> None:
    out = quoted(lines)
    assert all(line.startswith("| ") for line in out.split("\n")) or not lines
    assert all(is_plain(line) for line in out.split("\n"))


def test_long_lists_are_cut_with_a_note() -> None:
    assert quoted(["x"] * 5, most=2).endswith("(3 more lines were left out)")
