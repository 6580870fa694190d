"""The whole loop on the demo, against a recorded small model: what was sent, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent import __version__
from agent.proposing.loop import PROMPTS
from agent.proposing.prompts import load_prompt, load_prompts
from agent.ruleset.codec import RULE_FILE, load_rules
from tests.replay.cassettes import FOLDER, MODEL, recorder
from tests.replay.runs import ANTHROPIC_DEMO, OPENAI_DEMO, propose_on_demo
from tests.unit.review.worktrees import git

Replayed = Callable[[str, Callable[[Path], Path]], tuple[Path, dict[str, Any]]]


@pytest.fixture
def requests() -> list[dict[str, Any]]:
    exchanges = yaml.safe_load((FOLDER / OPENAI_DEMO).read_text(encoding="utf-8"))["interactions"]
    return [json.loads(exchange["request"]["body"]) for exchange in exchanges]


@pytest.fixture
def replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Replayed:
    """Play a recorded run; every exchange in it must be played, and nothing else sent."""

    def play(file: str, run: Callable[[Path], Path]) -> tuple[Path, dict[str, Any]]:
        with recorder("none").use_cassette(file) as cassette:
            rules = run(tmp_path / "run")
        assert cassette.all_played
        assert cassette.play_count == len(cassette)
        return rules, json.loads(capsys.readouterr().out)

    return play


def _accepted(result: dict[str, Any]) -> set[str]:
    decided = [one for one in result["proposals"] if one["decision"] == "accepted"]
    return {one["rule"]["category"] for one in decided}


def test_a_small_model_gets_rules_through_the_gate(replayed: Replayed) -> None:
    rules, result = replayed(OPENAI_DEMO, propose_on_demo)
    assert _accepted(result) == {"MLA", "CastFromFP8", "TopK", "RoPE"}
    assert git(rules, "rev-list", "--count", "HEAD") == "5"
    assert git(rules, "status", "--porcelain") == ""


def test_a_committed_rule_says_all_of_where_it_comes_from(replayed: Replayed) -> None:
    rules, _ = replayed(OPENAI_DEMO, propose_on_demo)
    own = [rule for rule in load_rules(rules / RULE_FILE).rules if rule.proposed_by]
    assert len(own) == 4
    for rule in own:
        assert rule.proposed_by is not None
        told = asdict(rule.proposed_by)
        assert {key for key, value in told.items() if not value} == set()
        assert told["provider"] == "openai"
        assert told["model"] == told["model_returned"] == MODEL
        assert told["host"] == "127.0.0.1:18101"
        assert told["prompt"] == load_prompt("family").reference
        assert told["prompt_digest"] == load_prompts(PROMPTS)[1]
        assert told["tool"] == f"label-agent {__version__}"
        assert rule.accepted_by is not None
        assert rule.accepted_by.author == "label-agent demo <demo@label-agent.invalid>"


def test_anthropics_interface_of_the_same_server_ends_in_bounds(replayed: Replayed) -> None:
    """The server takes no schema there; what the model says freely is never half accepted."""
    rules, result = replayed(
        ANTHROPIC_DEMO, lambda folder: propose_on_demo(folder, f"anthropic:{MODEL}")
    )
    answers = [family["answer"] for family in result["families"]]
    assert set(answers) <= {"admitted", "rejected", "abstained", "failed"}
    assert git(rules, "rev-list", "--count", "HEAD") == str(1 + answers.count("admitted"))
    assert all(family["reason"] for family in result["families"] if family["answer"] == "failed")


def test_each_request_asks_for_one_action_under_a_strict_schema(
    requests: list[dict[str, Any]],
) -> None:
    assert requests
    for body in requests:
        assert body["model"] == MODEL
        assert body["temperature"] == 0
        assert body["response_format"]["type"] == "json_schema"
        assert body["response_format"]["json_schema"]["strict"] is True
        assert body["max_tokens"] > 0


def test_the_system_prompt_is_the_same_for_every_family(requests: list[dict[str, Any]]) -> None:
    first = {body["messages"][0]["content"] for body in requests}
    assert len(first) == 1
    assert {body["messages"][0]["role"] for body in requests} == {"system"}


def test_no_text_outside_the_named_checkout_is_sent(requests: list[dict[str, Any]]) -> None:
    sent = json.dumps(requests)
    assert "attention_backend.py" in sent
    for foreign in ("label-rules.toml", "README.md", ".git/", "PRIVATE"):
        assert foreign not in sent
