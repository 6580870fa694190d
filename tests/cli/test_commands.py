"""The command tree: every command is listed, has help, and loads nothing but itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agent.cli.app import COMMANDS
from tests.cli.conftest import Run


def test_the_help_lists_every_command(run: Run) -> None:
    done = run("--help")
    listed = [line.split()[0] for line in done.out.split("Commands:\n")[1].splitlines()]
    assert (done.code, listed) == (0, list(COMMANDS))
    assert run().out == done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_says_what_it_does(command: str, run: Run) -> None:
    for option in ("-h", "--help"):
        done = run(command, option)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"Usage: label-agent {command} ")


@pytest.mark.parametrize(
    "arguments", [("no-such",), ("rules", "no-such"), ("diff",), ("diff", "a", "b", "c")]
)
def test_a_wrong_call_is_one_line_and_a_hint(arguments: tuple[str, ...], run: Run) -> None:
    done = run(*arguments)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 2)
    assert done.err.startswith("CL001 ")
    assert "--help lists the options" in done.err


def test_a_command_imports_no_other_command_and_no_slow_library() -> None:
    code = (
        "import sys; from agent.cli import main; main(['diff', '--help']);"
        "print('loaded:', *(name for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("loaded: ")[1].split())
    others = {f"agent.cli.{name}" for name in COMMANDS} - {"agent.cli.diff"}
    assert "agent.cli.diff" in loaded
    assert not loaded & (
        others | {"pydantic", "rich", "re2", "msgspec", "numpy", "multiprocessing"}
    )
