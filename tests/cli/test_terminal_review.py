"""The keys of a review, typed on a real terminal (a pty)."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROMPT = b"[a]ccept [r]eject [e]dit [s]kip [q]uit [?] "
EOF_KEY = "\x04"


class Terminal:
    """A child on a pty: stdin and stderr are the terminal, stdout is a pipe."""

    def __init__(self, **environment: str) -> None:
        self._master, slave = pty.openpty()
        kept = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "TERM": "xterm"}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.play_review"],
            stdin=slave,
            stderr=slave,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**kept, **environment},
            start_new_session=True,
        )
        os.close(slave)
        self.seen = b""

    def answer(self, *keys: str, prompt: bytes = PROMPT) -> None:
        for key in keys:
            self._wait_for(prompt)
            os.write(self._master, key.encode())

    def end(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        out = self._child.stdout.read()
        self._drain()
        os.close(self._master)
        assert self._child.wait(10) == 0, self.seen
        return json.loads(out)  # type: ignore[no-any-return]

    def _wait_for(self, prompt: bytes) -> None:
        deadline, start = time.monotonic() + 30, len(self.seen)
        while prompt not in self.seen[start:]:
            assert time.monotonic() < deadline, self.seen
            self._drain(1)
        self.seen += b"\0"

    def _drain(self, seconds: float = 0) -> None:
        while select.select([self._master], [], [], seconds)[0]:
            try:
                read = os.read(self._master, 65536)
            except OSError:
                return
            if not read:
                return
            self.seen += read
            seconds = 0


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
    terminal = Terminal()
    if keys[0] == "a":
        terminal.answer("a" + EOF_KEY + EOF_KEY)
    else:
        terminal.answer(*keys)
    result = terminal.end()
    assert (result["interactive"], result["states"]) == (True, states)
    assert result["decisions"] == decisions


def test_a_reason_is_asked_for_and_kept() -> None:
    terminal = Terminal()
    terminal.answer("r\n")
    terminal.answer("not ours\n", prompt=b"reason: ")
    terminal.answer("q\n")
    assert terminal.end()["decisions"] == [["reject", "not ours"]]


def test_the_users_editor_changes_the_rule() -> None:
    terminal = Terminal(EDITOR="sed -i s/_my_stage1/_my_stage[1]/", NO_COLOR="1")
    terminal.answer("e\n", "a\n", "q\n")
    result = terminal.end()
    assert result["decisions"][0][0] == "edit"
    assert "_my_stage[1]$'" in result["text"]
    assert b"\x1b" not in terminal.seen


@pytest.mark.parametrize("editor", ["false", "/no/such/editor", "'", "sed -i d"])
def test_an_editor_that_fails_changes_nothing(editor: str) -> None:
    terminal = Terminal(VISUAL=editor)
    terminal.answer("e\n")
    if editor in {"/no/such/editor", "'"}:
        for prompt in (b"kernel [", b"category [", b"op ["):
            terminal.answer("\n", prompt=prompt)
    terminal.answer("q\n")
    result = terminal.end()
    assert (result["states"], result["text"]) == (["pending", "pending"], None)


def test_colour_is_there_on_a_terminal_unless_unwanted() -> None:
    for environment, expected in (
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ):
        terminal = Terminal(**environment)
        terminal.answer("q\n")
        terminal.end()
        assert (b"\x1b[32m" in terminal.seen) is expected
