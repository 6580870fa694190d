"""The whole loop on the demo, against a recorded small model: what was sent, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.replay.cassettes import FOLDER, MODEL, recorder
from tests.replay.demo_run import CASSETTE, propose_on_demo
from tests.unit.review.worktrees import git


@pytest.fixture
def requests() -> list[dict[str, Any]]:
    exchanges = yaml.safe_load((FOLDER / CASSETTE).read_text(encoding="utf-8"))["interactions"]
    return [json.loads(exchange["request"]["body"]) for exchange in exchanges]


def test_a_small_model_gets_rules_through_the_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with recorder("none").use_cassette(CASSETTE) as cassette:
        rules = propose_on_demo(tmp_path / "demo")
    assert cassette.all_played
    result = json.loads(capsys.readouterr().out)
    accepted = {
        one["rule"]["category"] for one in result["proposals"] if one["decision"] == "accepted"
    }
    assert accepted == {"MLA", "TopK", "RoPE"}
    assert git(rules, "rev-list", "--count", "HEAD") == str(1 + len(accepted))
    origins = [one["rule"].get("proposed_by", {}) for one in result["proposals"]]
    assert all(origin.get("model", MODEL) == MODEL for origin in origins)


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
