"""Prompts are files; their inputs are exact, and foreign text cannot pass for theirs."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.source import KernelOrigin
from agent.core.text import is_plain
from agent.errors import UsageError
from agent.proposing.loop import PROMPTS
from agent.proposing.prompts import load_prompt, load_prompts, quoted, read_prompt

NEEDED = {
    "triton": ("jit-decorated definition", "one launch"),
    "gluon": ("jit-decorated definition", "one launch"),
    "triton-repr": ("definition, or", "`template`", "at least 8 literal", "one launch"),
    "flydsl": ("definition, or", "`template`", "at least 8 literal", "one launch"),
    "hip-global": ("__global__ definition", "the build lists", "launch or a call"),
    "aiter-asm": ("row of the table", "GPU of the run", "call that leads to it"),
    "ck": ("`instantiation`", "the build lists", "call that leads to it"),
    "aten-cast": (
        "line that converts",
        "guard",
        "[destination, source]",
        "^aten::copy_$",
        "absent",
    ),
    "aten": ("line that calls it", "`op` or a stack", "only Elementwise"),
    "inductor": ("`@torch.compile`", "operators of the name", "`emission`"),
    "external": ("nothing is enough", "abstain"),
}
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


@pytest.mark.parametrize("origin", sorted(set(get_args(KernelOrigin)) - {"unknown"}))
def test_the_task_states_the_evidence_that_every_origin_needs(origin: str) -> None:
    text = load_prompt("system").text.partition("The evidence, by origin:\n")[2]
    stated = " ".join(text.partition("\n\n")[0].split()).split("- ")
    [line] = [one for one in stated if origin in re.findall(r"[\w-]+", re.split("[:(]", one)[0])]
    assert [part for part in NEEDED[origin] if part not in line] == []
