"""The keys of a review, typed on a real terminal (a pty)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.terminals import EOF_KEY, Terminal

PLAY = ("-m", "tests.cli.play_review")


def _end(terminal: Terminal) -> dict[str, Any]:
    return json.loads(terminal.end())  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("keys", "states", "decisions"),
    [
        (["\n", "\n", "y\n", EOF_KEY], ["pending", "pending"], []),
        (["a", EOF_KEY + EOF_KEY], ["pending", "pending"], []),
        (["a\n", "s\n"], ["accepted", "skipped"], [["accept", ""], ["skip", ""]]),
        (["q\n"], ["pending", "pending"], []),
        (["?\n", "s\n", "\x1b[A\n", "s\n"], ["skipped", "skipped"], [["skip", ""]] * 2),
    ],
    ids=["Enter and the end", "a without Enter", "accept and skip", "quit", "help, arrow keys"],
)
def test_keys_on_a_terminal(keys: list[str], states: list[str], decisions: list[Any]) -> None:
    terminal = Terminal(PLAY)
    if keys[0] == "a":
        terminal.answer("a" + EOF_KEY + EOF_KEY)
    else:
        terminal.answer(*keys)
    result = _end(terminal)
    assert (result["interactive"], result["states"]) == (True, states)
    assert result["decisions"] == decisions


def test_a_reason_is_asked_for_and_kept() -> None:
    terminal = Terminal(PLAY)
    terminal.answer("r\n")
    terminal.answer("not ours\n", prompt=b"reason: ")
    terminal.answer("q\n")
    assert _end(terminal)["decisions"] == [["reject", "not ours"]]


def test_the_users_editor_changes_the_rule() -> None:
    terminal = Terminal(PLAY, EDITOR="sed -i s/_my_stage1/_my_stage[1]/", NO_COLOR="1")
    terminal.answer("e\n", "a\n", "q\n")
    result = _end(terminal)
    assert result["decisions"][0][0] == "edit"
    assert "_my_stage[1]$'" in result["text"]
    assert b"\x1b" not in terminal.seen


@pytest.mark.parametrize("editor", ["false", "/no/such/editor", "'", "sed -i d"])
def test_an_editor_that_fails_changes_nothing(editor: str) -> None:
    terminal = Terminal(PLAY, VISUAL=editor)
    terminal.answer("e\n")
    if editor in {"/no/such/editor", "'"}:
        for prompt in (b"kernel [", b"category [", b"op ["):
            terminal.answer("\n", prompt=prompt)
    terminal.answer("q\n")
    result = _end(terminal)
    assert (result["states"], result["text"]) == (["pending", "pending"], None)


def test_colour_is_there_on_a_terminal_unless_unwanted() -> None:
    for environment, expected in (
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ):
        terminal = Terminal(PLAY, **environment)
        terminal.answer("q\n")
        terminal.end()
        assert (b"\x1b[32m" in terminal.seen) is expected
