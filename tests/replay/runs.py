"""Whole runs of `propose` with a model, as they are recorded and replayed."""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from agent.cli import main
from agent.ruleset.codec import RULE_FILE
from agent.workflows.demo import prepare_demo
from tests.replay.cassettes import BASE_URL, MODEL

OPENAI_DEMO = "recorded/propose-demo.yaml"
ANTHROPIC_DEMO = "recorded/propose-demo-anthropic.yaml"
SGLANG = "recorded/propose-sglang.yaml"
VOCABULARY_ONLY = "schema = 1\nversion = 1\n"


@dataclass(frozen=True)
class Sglang:
    """A trace of SGLang, and the SGLang wheel it is asked about, unpacked in a git checkout."""

    trace: Path
    wheel: Path


def propose_on_demo(folder: Path, model: str = f"openai:{MODEL}") -> Path:
    """Run `propose` on a fresh demo in `folder`; give the folder of its rules.

    The result is JSON on stdout. `model` is `offline`, or one behind the recorded server.
    """
    laid = prepare_demo(folder)
    with contextlib.chdir(laid.rules):
        main(["propose", "../traces/fp8", "--baseline", "../traces/bf16", *_asked(model)])
    return laid.rules


def propose_on_sglang(folder: Path, sglang: Sglang, model: str = f"openai:{MODEL}") -> Path:
    """Run `propose` on a trace of SGLang without any rule; give the folder of its rules."""
    rules_repository(folder, VOCABULARY_ONLY)
    trace, repo = sglang.trace.resolve(), f"sglang={sglang.wheel.resolve()}"
    with contextlib.chdir(folder):
        main(["propose", str(trace), *_asked(model, repo)])
    return folder


def rules_repository(folder: Path, text: str) -> Path:
    """Commit a rule file in a fresh git repository; give its path."""
    folder.mkdir(parents=True)
    rules = folder / RULE_FILE
    rules.write_text(text, encoding="utf-8")
    for command in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "Replay"),
        ("config", "user.email", "replay@example.invalid"),
        ("add", RULE_FILE),
        ("commit", "-q", "-m", "Rules"),
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return rules


def _asked(model: str, repo: str = "../tinyserve") -> tuple[str, ...]:
    server = () if model == "offline" else ("--base-url", BASE_URL)
    return ("--repo", repo, "--model", model, *server, "--accept", "validated", "--json")
