"""What the providers send, how they read an answer, and how one is chosen."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from agent.errors import UsageError
from agent.proposing.providers.anthropic import AnthropicProvider
from agent.proposing.providers.base import Message, Reply, Usage
from agent.proposing.providers.choose import choose_provider
from agent.proposing.providers.openai import OpenAIProvider
from agent.proposing.providers.schema import without_keywords
from tests.unit.proposing.model_server import (
    SCHEMA,
    Answer,
    completion,
    message,
    question,
    serving,
)

pytestmark = pytest.mark.block_network(allowed_hosts=["127.0.0.1"])


def chosen(
    model: str, base_url: str = "", env: Mapping[str, str] | None = None
) -> OpenAIProvider | AnthropicProvider:
    found = choose_provider(model, base_url, env or {}, lambda _: None)
    assert isinstance(found, OpenAIProvider | AnthropicProvider)
    return found


def asked(backend: str, answer: Answer, **changes: Any) -> tuple[Reply, dict[str, Any]]:
    """Ask once; give the reply and the body that arrived, which is the one announced."""
    request = question(**changes)
    with serving([answer]) as server:
        provider = chosen(f"{backend}:m1", server.url)
        announced = provider.request_body(request)
        reply = provider.complete(request, deadline_s=30)
    assert server.sent == [announced]
    assert reply.host == f"127.0.0.1:{server.port}"
    return reply, announced


def test_openai_sends_the_whole_schema_strictly() -> None:
    reply, sent = asked("openai", completion())
    assert sent == {
        "model": "m1",
        "messages": [
            {"role": "system", "content": "You label kernels."},
            {"role": "user", "content": "Which rule?"},
        ],
        "max_tokens": 64,
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "action", "strict": True, "schema": SCHEMA},
        },
    }
    assert (reply.model, reply.fingerprint, reply.finish) == ("served-model", "fp_1", "stop")
    assert reply.usage == Usage(7, 3)


def test_anthropic_sends_a_schema_without_bounds_and_no_temperature() -> None:
    reply, sent = asked("anthropic", message())
    assert sent == {
        "model": "m1",
        "max_tokens": 64,
        "system": "You label kernels.",
        "messages": [{"role": "user", "content": "Which rule?"}],
        "output_config": {
            "format": {
                "type": "json_schema",
                "schema": {
                    "type": "object",
                    "properties": {
                        "pattern": {"type": "string"},
                        "lines": {"type": "array", "items": {"type": "integer"}},
                    },
                    "required": ["pattern", "lines"],
                    "additionalProperties": False,
                },
            }
        },
    }
    assert (reply.model, reply.finish) == ("served-model", "stop")
    assert reply.usage == Usage(9, 3)


def test_a_property_may_bear_the_name_of_a_keyword() -> None:
    schema = {"properties": {"pattern": {"pattern": "x"}}, "enum": [{"pattern": 1}]}
    kept = without_keywords(schema, frozenset({"pattern"}))
    assert kept == {"properties": {"pattern": {}}, "enum": [{"pattern": 1}]}


def test_openai_itself_gets_its_own_token_limit_and_no_string_bounds() -> None:
    body = chosen("openai:m1", env={"OPENAI_API_KEY": "sk-test"}).request_body(question())
    assert body["max_completion_tokens"] == 64
    assert "max_tokens" not in body
    assert body["response_format"]["json_schema"]["schema"]["properties"]["pattern"] == {
        "type": "string",
        "pattern": "^a",
    }


def test_parameters_can_be_left_out() -> None:
    env = {"OPENAI_API_KEY": "sk-test", "LABEL_AGENT_OMIT": "temperature, max_completion_tokens"}
    body = chosen("openai:m1", env=env).request_body(question())
    assert sorted(body) == ["messages", "model", "response_format"]


@pytest.mark.parametrize("backend", ["openai", "anthropic"])
def test_a_lone_surrogate_can_be_sent(backend: str) -> None:
    answer = completion() if backend == "openai" else message()
    _, sent = asked(backend, answer, messages=(Message("user", "k\ud800"),))
    assert sent["messages"][-1]["content"] == "k?"


def _choice(finish: str | None, **said: Any) -> Answer:
    given = {"role": "assistant", "content": "x"} | said
    return completion(choices=[{"index": 0, "finish_reason": finish, "message": given}])


@pytest.mark.parametrize(
    ("answer", "finish", "text"),
    [
        (_choice("stop"), "stop", "x"),
        (_choice("length"), "length", "x"),
        (_choice("content_filter", content=None), "refusal", ""),
        (_choice("stop", content=None, refusal="I will not"), "refusal", "I will not"),
        (_choice("tool_calls", content=None), "other", ""),
        (_choice(None), "other", "x"),
        (_choice("stop", content=[{"type": "text", "text": "a"}, {"text": "b"}]), "stop", "ab"),
    ],
)
def test_openai_says_why_a_text_ends(answer: Answer, finish: str, text: str) -> None:
    reply, _ = asked("openai", answer)
    assert (reply.finish, reply.text) == (finish, text)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("tool_use", "other"),
        (None, "other"),
    ],
)
def test_anthropic_says_why_a_text_ends(reason: str | None, finish: str) -> None:
    assert asked("anthropic", message(stop_reason=reason))[0].finish == finish


def test_an_anthropic_refusal_may_be_empty_and_thoughts_are_no_text() -> None:
    assert asked("anthropic", message(content=[], stop_reason="refusal"))[0].text == ""
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]
    assert asked("anthropic", message(content=blocks))[0].text == "a"


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": -5, "completion_tokens": None}])
def test_missing_or_senseless_counts_are_zero(usage: Any) -> None:
    assert asked("openai", completion(usage=usage))[0].usage == Usage()


def test_the_key_goes_where_each_interface_wants_it() -> None:
    with serving([completion(), message()]) as server:
        env = {"OPENAI_API_KEY": "sk-one ", "ANTHROPIC_API_KEY": "sk-two"}
        chosen("openai:m1", server.url, env).complete(question(), deadline_s=30)
        chosen("anthropic:m1", server.url, env).complete(question(), deadline_s=30)
    assert server.paths == ["/v1/chat/completions", "/v1/messages"]
    assert server.headers[0]["authorization"] == "Bearer sk-one"
    assert server.headers[1]["authorization"] == "Bearer sk-two"
    assert "sk-two" not in str(server.headers[0])
    assert "sk-one" not in str(server.headers[1])


def test_a_server_of_ones_own_needs_no_key() -> None:
    with serving([completion()]) as server:
        chosen("openai:m1", server.url).complete(question(), deadline_s=30)
    assert server.headers[0]["authorization"] == "Bearer no-key"


def test_azure_is_taken_from_the_variables_of_the_library() -> None:
    with serving([completion()]) as server:
        env = {
            "AZURE_OPENAI_ENDPOINT": f"http://127.0.0.1:{server.port}",
            "AZURE_OPENAI_API_KEY": "azure-key",
            "OPENAI_API_VERSION": "2025-01-01",
        }
        provider = chosen("openai:m1", env=env)
        announced = provider.request_body(question())
        provider.complete(question(), deadline_s=30)
    assert server.paths == ["/openai/deployments/m1/chat/completions?api-version=2025-01-01"]
    assert server.headers[0]["api-key"] == "azure-key"
    assert server.sent == [announced]


@pytest.mark.parametrize(
    ("model", "base_url", "env", "words"),
    [
        ("gpt-4", "", {}, "openai:NAME, anthropic:NAME, offline"),
        ("openai:", "", {}, "openai:NAME"),
        ("openai", "", {}, "openai:NAME"),
        ("offline:x", "", {}, "openai:NAME"),
        ("gemini:x\x1b[2J", "", {}, "anthropic:NAME"),
        ("openai:m", "", {}, "OPENAI_API_KEY is not set"),
        ("anthropic:m", "", {"OPENAI_API_KEY": "sk-x"}, "ANTHROPIC_API_KEY is not set"),
        ("openai:m", "", {"AZURE_OPENAI_ENDPOINT": "https://a"}, "AZURE_OPENAI_API_KEY"),
        (
            "openai:m",
            "",
            {"AZURE_OPENAI_ENDPOINT": "https://a", "AZURE_OPENAI_API_KEY": "k"},
            "OPENAI_API_VERSION",
        ),
        ("offline", "http://h", {}, "leave out --base-url"),
        ("", "http://h", {}, "--model openai:NAME"),
        ("openai:m", "ftp://h", {}, "http(s)"),
        ("openai:m", "127.0.0.1:80", {}, "http(s)"),
        ("openai:m", "http://user:secret@", {}, "http(s)"),
        ("openai:m", "http://h:notaport", {}, "http(s)"),
        ("openai:m", "", {"OPENAI_API_KEY": "sk-\nsecret"}, "OPENAI_API_KEY holds characters"),
    ],
)
def test_a_choice_that_makes_no_sense_says_what_does(
    model: str, base_url: str, env: dict[str, str], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        choose_provider(model, base_url, env, lambda _: None)
    shown = f"{caught.value} {caught.value.hint}"
    assert words in shown
    assert "secret" not in shown
    assert "\x1b" not in shown


def test_without_a_key_it_works_offline_and_says_why() -> None:
    said: list[str] = []
    assert choose_provider("", "", {}, said.append) is None
    assert "OPENAI_API_KEY" in said[0]
    assert "ANTHROPIC_API_KEY" in said[0]
    assert choose_provider("offline", "", {}, said.append) is None


@pytest.mark.parametrize(
    ("env", "name", "host"),
    [
        ({"OPENAI_API_KEY": "sk-a"}, "openai", "api.openai.com"),
        ({"ANTHROPIC_API_KEY": "sk-b"}, "anthropic", "api.anthropic.com"),
        ({"OPENAI_API_KEY": "sk-a", "ANTHROPIC_API_KEY": "sk-b"}, "openai", "api.openai.com"),
    ],
)
def test_the_provider_whose_key_is_set_is_taken(env: dict[str, str], name: str, host: str) -> None:
    provider = chosen("", env=env)
    assert (provider.name, provider.host) == (name, host)
    assert provider.model


def test_the_address_is_said_before_anything_is_sent_without_its_password() -> None:
    said: list[str] = []
    url = "http://me:hunter22@models.example:8000/v1?token=hunter22"
    choose_provider("openai:m1", url, {"OPENAI_API_KEY": "sk-a"}, said.append)
    assert said == [
        "model m1 at http://models.example:8000/v1",
        "note: the key goes to models.example:8000 unencrypted (http)",
    ]


def test_the_libraries_log_no_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_LOG", "debug")
    asked("openai", completion())
    asked("anthropic", message())
    names = ("openai", "anthropic", "httpx2", "httpcore2")
    assert {logging.getLogger(name).level for name in names} == {logging.WARNING}


def test_choosing_offline_imports_no_library() -> None:
    code = (
        "import sys; from agent.proposing.providers.choose import choose_provider;"
        "choose_provider('offline', '', {}, print);"
        "sys.exit(any(m in sys.modules for m in ('openai', 'anthropic', 'httpx2')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("backend", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HTTP_PROXY", "socks5://127.0.0.1:9"),
        ("ALL_PROXY", "nonsense://x"),
        ("HTTP_PROXY", "a b:c"),
    ],
)
def test_a_proxy_of_no_use_is_named(
    backend: str, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match="no connection can be set up") as caught:
        chosen(f"{backend}:m1", "http://models.example/v1").complete(question(), deadline_s=9)
    assert variable in caught.value.hint
