"""What a provider does when the server does not answer as it should."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from agent.errors import LabelAgentError, ModelUnavailable, ReplyFormatError
from agent.proposing.providers.anthropic import AnthropicProvider
from agent.proposing.providers.choose import choose_provider
from agent.proposing.providers.faults import without_secrets
from agent.proposing.providers.openai import OpenAIProvider
from tests.unit.proposing.model_server import (
    Answer,
    FakeTime,
    ModelServer,
    completion,
    message,
    question,
    serving,
)

pytestmark = pytest.mark.block_network(allowed_hosts=["127.0.0.1"])

KEY = "sk-test-000"
VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
GOOD = {"openai": completion(), "anthropic": message()}
HTML = {"Content-Type": "text/html"}
PAGE = "<html>Bad Gateway</html>"


class Case:
    """One provider against one scripted server, in time that passes only by sleeping."""

    def __init__(self, server: ModelServer, backend: str = "openai", **env: str) -> None:
        self.server = server
        self.time = FakeTime()
        self.said: list[str] = []
        given = {VARIABLES[backend]: KEY} | env
        chosen = choose_provider(f"{backend}:m1", server.url, given, self.said.append)
        assert isinstance(chosen, OpenAIProvider | AnthropicProvider)
        self.provider = chosen
        self.provider.patience = self.time.patience()

    def ask(self, deadline_s: float = 600) -> Any:
        return self.provider.complete(question(), deadline_s=deadline_s)

    def fails(self, kind: type[LabelAgentError] = ModelUnavailable, deadline_s: float = 600) -> str:
        with pytest.raises(kind) as caught:
            self.ask(deadline_s)
        error = caught.value
        shown = f"{error} {error.hint}"
        assert "\n" not in shown
        assert KEY not in shown + repr(error.__cause__) + repr(self.provider)
        return shown


@pytest.fixture(params=["openai", "anthropic"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sequences(shared: Path) -> dict[str, dict[str, Any]]:
    """The scripted behaviours of the shared case, by id."""
    text = (shared / "cases/41-llm-provider-errors/sequence.json").read_text(encoding="utf-8")
    return {row["id"]: row for row in json.loads(text)}


def scripted(row: dict[str, Any]) -> Iterator[Answer]:
    for answer in row["responses"]:
        if "hang_seconds" in answer:
            yield Answer(hang=True)
        elif answer["status"] == 200 and "body" not in answer:
            yield completion()
        else:
            body = answer.get("body", {})
            yield Answer(answer["status"], body, answer.get("headers", {}), answer.get("text"))


@pytest.mark.parametrize(
    ("case_id", "kind", "code", "words", "calls"),
    [
        ("p2", ModelUnavailable, "ML015", ["86400 s", "24.0 h"], 1),
        ("p3", ModelUnavailable, "ML010", ["quota"], 1),
        ("p4", ModelUnavailable, "ML013", ['"max_tokens"', "LABEL_AGENT_OMIT=max_tokens"], 1),
        ("p6", ModelUnavailable, "ML014", ["502", "tried 4 times"], 4),
        ("p8", ModelUnavailable, "ML011", ["OPENAI_API_KEY", "401"], 1),
        ("p9", ReplyFormatError, "ML020", ["no choices"], 1),
    ],
)
def test_shared_case_fails_as_expected(
    sequences: dict[str, dict[str, Any]],
    case_id: str,
    kind: type[LabelAgentError],
    code: str,
    words: list[str],
    calls: int,
) -> None:
    with serving(tuple(scripted(sequences[case_id]))) as server:
        shown = Case(server).fails(kind)
    assert shown.startswith(code)
    assert [word for word in words if word not in shown] == []
    assert len(server.sent) == calls


def test_shared_case_p1_waits_as_told_and_succeeds(sequences: dict[str, dict[str, Any]]) -> None:
    with serving(tuple(scripted(sequences["p1"]))) as server:
        case = Case(server)
        reply = case.ask()
    assert reply.text == '{"pattern": "a", "lines": [1]}'
    assert [2 <= wait < 4 for wait in case.time.slept] == [True]
    assert len(server.sent) == 2
    assert server.sent[0] == server.sent[1]


def test_shared_case_p5_falls_back_to_json_mode_with_a_notice(
    sequences: dict[str, dict[str, Any]],
) -> None:
    with serving((*scripted(sequences["p5"]), completion(), completion())) as server:
        case = Case(server)
        case.ask()
        case.ask()
    formats = [sent.get("response_format", {}).get("type") for sent in server.sent]
    assert formats == ["json_schema", "json_object", "json_object"]
    assert sum("asking for any JSON object instead" in line for line in case.said) == 1
    assert '"additionalProperties": false' in server.sent[1]["messages"][0]["content"]
    assert case.time.slept == []


def test_shared_case_p7_holds_the_deadline_when_the_server_hangs(
    sequences: dict[str, dict[str, Any]],
) -> None:
    with serving(tuple(scripted(sequences["p7"]))) as server:
        shown = Case(server).fails(deadline_s=0.3)
    assert shown.startswith("ML017")
    assert "within 0.3 s" in shown


def test_a_server_that_drips_bytes_meets_the_deadline(backend: str) -> None:
    with serving([Answer(200, {"x": "y" * 1000}, drip=True)]) as server:
        assert Case(server, backend).fails(deadline_s=0.4).startswith("ML017")


def test_ctrl_c_ends_a_hanging_call() -> None:
    with serving([Answer(hang=True)]) as server:
        case = Case(server)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            case.ask()


def test_the_format_falls_to_plain_text_at_last() -> None:
    refusal = Answer(400, {"error": {"message": "response_format is not supported"}})
    with serving([refusal, refusal, completion()]) as server:
        case = Case(server)
        case.ask()
    assert "response_format" not in server.sent[2]
    assert case.said[-1].endswith("asking for plain text instead")


def test_a_server_that_refuses_every_format_is_given_up() -> None:
    refusal = Answer(400, {"error": {"message": "response_format is not supported"}})
    with serving([refusal] * 3) as server:
        assert Case(server).fails().startswith("ML013")
    assert len(server.sent) == 3


def test_a_grammar_the_server_cannot_build_steps_down_without_retries() -> None:
    refusal = Answer(500, {"error": {"message": "failed to parse grammar"}})
    with serving([refusal, completion()]) as server:
        case = Case(server)
        case.ask()
    assert len(server.sent) == 2
    assert case.time.slept == []


def test_anthropic_falls_back_to_plain_text_with_a_notice() -> None:
    refusal = Answer(400, {"error": {"message": "output_config: extra inputs are not permitted"}})
    with serving([refusal, message()]) as server:
        case = Case(server, "anthropic")
        case.ask()
    assert "output_config" not in server.sent[1]
    assert "JSON schema" in server.sent[1]["system"]
    assert case.said[-1].endswith("asking for plain text instead")


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_busy_server_is_asked_a_few_times_with_growing_waits(backend: str, status: int) -> None:
    with serving([Answer(status, {"error": {"message": "busy"}})] * 5) as server:
        case = Case(server, backend)
        assert case.fails().startswith("ML014")
    assert len(server.sent) == 4
    assert len(case.time.slept) == 3
    assert case.time.slept == sorted(case.time.slept)


def test_the_jitter_is_the_same_each_time_but_not_for_each_host_and_question() -> None:
    waits = []
    for _ in range(2):
        with serving([Answer(503, {}), completion()]) as server:
            case = Case(server)
            case.ask()
            waits.append(case.time.slept)
    assert waits[0] == waits[1]


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (401, {"error": {"message": f"Incorrect API key: {KEY}"}}, "ML011", "not accepted"),
        (403, {"error": {"message": "no"}}, "ML011", "not allowed"),
        (404, {"error": {"message": "no such model"}}, "ML012", '"m1"'),
        (400, {"error": {"message": f"bad {KEY} \x1b[31m\nthing"}}, "ML013", "[key]"),
        (400, {"error": {"message": "your credit balance is too low"}}, "ML010", "quota"),
        (402, {"error": {"message": "pay"}}, "ML010", "402"),
        (413, {"error": {"message": "too large"}}, "ML013", "too large"),
        (422, {"detail": [{"loc": ["body", "seed"], "msg": "bad"}]}, "ML013", '"seed"'),
        (400, {"error": "a string, as Ollama says it"}, "ML013", "as Ollama says it"),
        (400, {"error": {"message": 7, "code": [], "param": {}}}, "ML013", "refuses the request"),
        (400, [1, 2], "ML013", "refuses the request"),
        (418, {"message": "Unsupported parameter: 'top_p'"}, "ML013", '"top_p"'),
        (429, {"error": {"type": "insufficient_quota"}}, "ML010", "quota"),
    ],
)
def test_what_would_fail_again_is_not_tried_again(
    backend: str, status: int, body: Any, code: str, words: str
) -> None:
    with serving([Answer(status, body)] * 2) as server:
        case = Case(server, backend)
        shown = case.fails()
    assert shown.startswith(code)
    assert words in shown
    assert "\x1b" not in shown
    assert len(server.sent) == 1


def test_a_server_may_forbid_another_try(backend: str) -> None:
    with serving([Answer(503, {}, {"x-should-retry": "false"})] * 2) as server:
        assert Case(server, backend).fails().startswith("ML014")
    assert len(server.sent) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, None, HTML, "<html>log in</html>"),
        Answer(200, None, {}, "<html>log in</html>"),
        Answer(200, None, {}, "plain words"),
        Answer(200, None, {}, ""),
        Answer(200, None, {}, "[" * (5 << 20)),
        Answer(307, {}, {"Location": "http://127.0.0.1:9/v1/chat/completions"}),
    ],
    ids=["html", "html sent as JSON", "text", "nothing", "endless", "redirect"],
)
def test_something_else_than_a_model_server_is_named(backend: str, answer: Answer) -> None:
    with serving([answer] * 2) as server:
        assert Case(server, backend).fails().startswith("ML018")
    assert len(server.sent) == 1


def test_an_html_error_page_is_never_quoted_nor_parsed(backend: str) -> None:
    with serving([Answer(502, None, HTML, PAGE)] * 4) as server:
        shown = Case(server, backend).fails()
    assert "<html>" not in shown
    assert "Bad Gateway" not in shown


@pytest.mark.parametrize("cut", [0, 30])
def test_a_reply_that_breaks_off_is_asked_for_again(backend: str, cut: int) -> None:
    broken = Answer(200, GOOD[backend].body, cut=cut)
    with serving([broken, GOOD[backend]]) as server:
        case = Case(server, backend)
        assert case.ask().text
    assert len(server.sent) == 2


def test_a_reply_that_always_breaks_off_is_an_error(backend: str) -> None:
    with serving([Answer(200, GOOD[backend].body, cut=30)] * 4) as server:
        assert Case(server, backend).fails().startswith("ML016")
    assert len(server.sent) == 4


def test_no_server_at_all_is_an_error(backend: str) -> None:
    with serving([]) as server:
        case = Case(server, backend)
    shown = case.fails()
    assert shown.startswith("ML016")
    assert f"127.0.0.1:{server.port}" in shown


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": None},
        {"choices": [{"message": 7}]},
        {"choices": [{}]},
        {"choices": "none"},
        [],
        7,
    ],
)
def test_json_without_a_completion_is_a_format_error(body: Any) -> None:
    with serving([Answer(200, body)]) as server:
        assert Case(server).fails(LabelAgentError)[:5] in {"ML020", "ML018"}
    assert len(server.sent) == 1


@pytest.mark.parametrize("body", [{}, {"content": None}, {"content": []}, {"content": [7]}, []])
def test_json_without_a_message_is_a_format_error(body: Any) -> None:
    with serving([Answer(200, body)]) as server:
        assert Case(server, "anthropic").fails(ReplyFormatError).startswith("ML020")


def test_an_error_under_status_200_is_sorted_by_its_own_code() -> None:
    with serving([Answer(200, {"error": {"code": 404, "message": "no such model"}})]) as server:
        assert Case(server).fails().startswith("ML012")


def test_retry_after_as_a_date_is_waited_for(backend: str) -> None:
    time = FakeTime()
    later = formatdate(time.now + 50, usegmt=True)
    with serving([Answer(429, {}, {"Retry-After": later}), GOOD[backend]]) as server:
        case = Case(server, backend)
        case.ask()
    assert [50 <= wait < 52 for wait in case.time.slept] == [True]


def test_a_wait_longer_than_the_deadline_is_refused_at_once() -> None:
    with serving([Answer(429, {}, {"Retry-After": "60"})]) as server:
        case = Case(server)
        shown = case.fails(deadline_s=30)
    assert shown.startswith("ML015")
    assert "60 s" in shown
    assert case.time.slept == []


@pytest.mark.parametrize("value", ["soon", "nan", "", "-5", "Thu, 99 Foo 2020"])
def test_a_senseless_retry_after_falls_back_to_the_own_wait(value: str) -> None:
    with serving([Answer(429, {}, {"Retry-After": value}), completion()]) as server:
        case = Case(server)
        case.ask()
    assert [0 < wait <= 1 for wait in case.time.slept] == [True]


@pytest.mark.parametrize("value", ["inf", "1e300"])
def test_an_endless_retry_after_is_refused(value: str) -> None:
    with serving([Answer(429, {}, {"Retry-After": value})]) as server:
        assert Case(server).fails().startswith("ML015")


@pytest.mark.parametrize(
    "text",
    [
        "key sk-proj-abc_DEF-123 is wrong",
        "Authorization: Bearer abc.def",
        "via http://me:hunter22@proxy:3128/",
        "sk-te*****-000",
        "my own-secret here",
    ],
)
def test_keys_and_passwords_are_taken_out_of_any_text(text: str) -> None:
    left = without_secrets(text, ("own-secret",))
    hidden = ("abc", "hunter22", "000", "own-secret")
    assert [secret for secret in hidden if secret in left] == []


@pytest.mark.parametrize(
    "text", ["temperature", "max_tokens: 5", "http://h:80/v1 a@b", "risk-free"]
)
def test_other_text_stays(text: str) -> None:
    assert without_secrets(text, ("",)) == text
