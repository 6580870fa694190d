"""The public surface is what `__all__` says, and it can be imported without the slow libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agent

SLOW = ("openai", "anthropic", "git", "tree_sitter", "rich", "numpy")


def test_every_public_name_exists() -> None:
    for name in agent.__all__:
        assert getattr(agent, name) is not None


def test_the_contract_of_the_design_is_public() -> None:
    functions = {
        "read_trace",
        "load_rules",
        "label_trace",
        "lint_rules",
        "judge_proposal",
        "compare_traces",
    }
    assert functions | {"__version__"} <= set(agent.__all__)
    assert sorted(agent.__all__) == agent.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = agent.no_such_name


def test_importing_the_package_loads_no_slow_library() -> None:
    code = f"import sys, agent, agent.cli; print([m for m in {SLOW!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_program_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "agent", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"label-agent {agent.__version__}\n"
