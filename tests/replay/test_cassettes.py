"""The providers against cassettes, with the network blocked; and what cassettes may hold."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import yaml
from vcr.errors import CannotOverwriteExistingCassetteException

from agent.errors import ModelUnavailable, ReplyFormatError
from agent.proposing.providers.base import Reply
from agent.proposing.providers.retry import Patience
from tests.replay.cassettes import (
    FOLDER,
    HEADERS,
    MANIFEST,
    MODEL,
    QUESTION,
    RECORDED,
    SCHEMA,
    provider,
    recorder,
)

FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.yaml"))
SECRETS = re.compile(
    r"\b(?:sk|pk|hf)-[\w-]{6,}|bearer |authorization|api[-_]key|cookie|\borg-\w+|\bproj_\w+"
    r"|openai-organization|anthropic-organization|request-id|/(?:home|root|users|mnt|srv|tmp)/",
    re.IGNORECASE,
)


def rows() -> list[dict[str, str]]:
    return list(tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["cassette"])


def interactions(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load((FOLDER / file).read_text(encoding="utf-8"))["interactions"])


@contextmanager
def playing(file: str) -> Iterator[None]:
    """Replay one cassette; every exchange in it must be played, in one go."""
    with recorder("none").use_cassette(file) as cassette:
        yield
    assert cassette.play_count == len(cassette)
    assert cassette.all_played


def asked(file: str, backend: str) -> Reply:
    with playing(file):
        chosen = provider(backend)
        chosen.patience = Patience(sleep=lambda _: None)
        return chosen.complete(QUESTION, deadline_s=60)


@pytest.mark.parametrize("backend", ["openai", "anthropic"])
def test_the_recorded_answer_is_read_and_the_question_sent_is_the_recorded_one(
    backend: str,
) -> None:
    reply = asked(RECORDED[backend], backend)
    (exchange,) = interactions(RECORDED[backend])
    assert json.loads(exchange["request"]["body"]) == provider(backend).request_body(QUESTION)
    assert reply.model == MODEL
    assert reply.finish == "stop"
    assert reply.usage.prompt_tokens > 0
    assert reply.usage.completion_tokens > 0
    assert reply.host == "127.0.0.1:18101"


def test_the_recorded_server_kept_to_the_schema() -> None:
    answer = json.loads(asked(RECORDED["openai"], "openai").text)
    assert answer["category"] in SCHEMA["properties"]["category"]["enum"]
    assert sorted(answer) == ["category", "why"]


def test_another_question_finds_no_answer_and_no_network() -> None:
    chosen = provider("openai")
    chosen.patience = Patience(attempts=1)
    other = replace(QUESTION, max_tokens=7)
    with recorder("none").use_cassette(RECORDED["openai"]) as cassette:
        with pytest.raises(CannotOverwriteExistingCassetteException):
            chosen.complete(other, deadline_s=60)
        assert cassette.play_count == 0


def test_hand_written_a_limit_is_waited_for() -> None:
    assert asked("hand-written/openai-429-then-answer.yaml", "openai").finish == "stop"


def test_hand_written_a_refusal_is_told_from_an_answer() -> None:
    reply = asked("hand-written/openai-refusal.yaml", "openai")
    assert (reply.finish, reply.text) == ("refusal", "I cannot help with that.")
    assert asked("hand-written/anthropic-refusal.yaml", "anthropic").finish == "refusal"


def test_hand_written_a_cut_reply_is_told_from_a_whole_one() -> None:
    assert asked("hand-written/openai-truncated.yaml", "openai").finish == "length"


def test_hand_written_a_malformed_completion_is_a_format_error() -> None:
    with pytest.raises(ReplyFormatError, match="holds no completion"):
        asked("hand-written/openai-malformed.yaml", "openai")


def test_hand_written_an_empty_account_is_not_asked_again() -> None:
    with pytest.raises(ModelUnavailable, match="quota"):
        asked("hand-written/openai-quota.yaml", "openai")


def test_each_cassette_is_in_the_manifest_and_says_where_it_comes_from() -> None:
    assert [row["file"] for row in rows()] == FILES
    for row in rows():
        if row["file"].startswith("hand-written/"):
            assert row["origin"] == "hand-written"
            assert row["why"]
        else:
            assert row["origin"] == "recorded"
            assert re.fullmatch(r"[0-9a-f]{64}", row["model_sha256"])
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])
            assert row["model"]
            assert row["server"]
            assert row["command"]


@pytest.mark.parametrize("file", [*FILES, "MANIFEST.toml"])
def test_no_cassette_holds_a_key_a_cookie_or_an_account(file: str) -> None:
    assert SECRETS.findall((FOLDER / file).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("file", FILES)
def test_only_allow_listed_headers_are_kept(file: str) -> None:
    for exchange in interactions(file):
        for side in ("request", "response"):
            assert {name.lower() for name in exchange[side]["headers"]} <= HEADERS
