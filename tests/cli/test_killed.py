"""SIGKILL and Ctrl-C at random moments: nothing is asked twice, no accepted rule is lost.

`LABEL_AGENT_KILLS` says how many processes each test ends; the moments follow from the seed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.review.journal import Journal, journal_path
from agent.ruleset.codec import load_rules
from agent.workflows.demo import prepare_demo
from tests.unit.proposing.model_server import Answer, ModelServer, completion, serving
from tests.unit.review.worktrees import RULES, git

pytestmark = pytest.mark.block_network(allowed_hosts=["127.0.0.1"])

KILLS = int(os.environ.get("LABEL_AGENT_KILLS", "3"))
CATEGORIES = {"latent_dec": "MLA", "expert_gate_pick": "TopK", "_rotate_pairs": "RoPE"}
RUN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
RUN += "from agent.cli import run; run()"


def answer(body: dict[str, Any]) -> Answer:
    """Look once, then propose what the demo's families are, or abstain."""
    time.sleep(0.05)
    case, turns = body["messages"][1]["content"], len(body["messages"])
    name = case.partition("Names (calls, time, name):\n")[2].partition("\n")[0]
    category = next((CATEGORIES[known] for known in CATEGORIES if known in name), None)
    note = f"turn {turns}"
    if category is None:
        action: dict[str, Any] = {"do": "abstain", "reason": "a copy"}
    elif turns == 2:
        action = {"do": "search_source", "text": "forward"}
    else:
        action = {"do": "submit_proposal", "category": category, "candidates": [1]}
    return completion(json.dumps({"note": note, "action": action}))


@dataclass
class Runs:
    """Processes of `propose --accept validated` on one demo, against one server."""

    rules: Path
    server: ModelServer

    def propose(self) -> subprocess.Popen[str]:
        return self._start(
            *("propose", "../traces/fp8", "--baseline", "../traces/bf16", "--repo", "../tinyserve"),
            *("--model", "openai:m", "--base-url", self.server.url),
        )

    def review(self) -> subprocess.Popen[str]:
        return self._start("review")

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments, "--accept", "validated", "--json"],
            cwd=self.rules,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_PROXY": "127.0.0.1"},
        )

    def kept(self) -> int:
        """Count the replies in the journal: a torn line is none."""
        records = Journal(journal_path(self.rules)).records()
        return sum(record.kind == "turn" for record in records)

    def commits(self) -> list[str]:
        return git(self.rules, "log", "--format=%s").splitlines()


def finished(child: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = child.communicate(timeout=120)
    assert "Traceback" not in err, err
    return dict(json.loads(out))


@pytest.fixture
def whole_run_s(tmp_path: Path) -> float:
    """How long a run takes that nobody ends, so that the moments fall inside one."""
    with serving(answer) as server:
        runs = Runs(prepare_demo(tmp_path / "whole").rules, server)
        began = time.monotonic()
        finished(runs.propose())
        return time.monotonic() - began


def _end_at_random(runs: Runs, how: signal.Signals, seconds: float) -> tuple[int, str]:
    child = runs.propose()
    try:
        _, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(how)
        _, err = child.communicate(timeout=60)
    return child.returncode, err


def _check_end(runs: Runs, lost: int) -> None:
    """Whatever came before: a review goes on, a run settles the rest, the rule file is whole."""
    for start in (runs.review, runs.propose):
        proposals = finished(start())["proposals"]
        assert {one["decision"] for one in proposals} <= {"accepted"}

    added = [subject for subject in runs.commits() if subject.startswith("Add rule")]
    assert len(added) == len(set(added)) == 3
    assert {str(rule.category) for rule in load_rules(runs.rules / RULES).rules} >= set(
        CATEGORIES.values()
    )
    assert git(runs.rules, "status", "--porcelain") == ""
    asked = Counter(json.dumps(body) for body in runs.server.sent)
    assert asked.total() - len(asked) <= lost
    assert runs.kept() == len(asked)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_processes_that_end_at_random_moments_lose_and_repeat_nothing(
    tmp_path: Path, whole_run_s: float, how: signal.Signals
) -> None:
    rng = random.Random(int(how))
    ended = 0
    while ended < KILLS:
        with serving(answer) as server:
            runs = Runs(prepare_demo(tmp_path / f"demo{ended}").rules, server)
            lost = 0
            for _ in range(3):
                before, kept, sent = runs.commits(), runs.kept(), len(server.sent)
                code, err = _end_at_random(runs, how, rng.uniform(0, whole_run_s))
                # -SIGINT: in the interpreter's own first or last moments; a shell says 130 too.
                assert code in ({0, -how} if how is signal.SIGKILL else {0, 130, -how}), err
                assert "Traceback" not in err, err
                assert ("interrupted" in err) == (code == 130)
                assert runs.commits()[-len(before) :] == before
                lost += len(server.sent) - sent - (runs.kept() - kept)
                ended += 1
            assert lost <= 3
            _check_end(runs, lost)
