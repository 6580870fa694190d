"""OpenAI's chat completions, and the servers that speak them: vLLM, SGLang, llama.cpp, Ollama.

A JSON schema goes with each request. A server that refuses it is asked for any JSON object, then
for plain text; the schema is then said in words. Each step down is said once and kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from agent.proposing.providers.base import Finish, Reply, Request, Usage
from agent.proposing.providers.exchange import (
    decode,
    http_client,
    no_completion,
    numbers,
    quiet_loggers,
    read_reply,
)
from agent.proposing.providers.faults import Fault, Service, refused
from agent.proposing.providers.retry import Patience, ask
from agent.proposing.providers.schema import sendable, with_schema_as_text, without_keywords

if TYPE_CHECKING:
    from openai import OpenAI

Asked = Literal["json_schema", "json_object", "text"]

_NEXT: Mapping[Asked, Asked] = {"json_schema": "json_object", "json_object": "text"}
_SAID: Mapping[Asked, str] = {"json_object": "any JSON object", "text": "plain text"}
_FINISH: Mapping[str, Finish] = {
    "stop": "stop", "eos": "stop", "length": "length", "content_filter": "refusal",
}  # fmt: skip
_HOSTED_DROPS = frozenset({"minLength", "maxLength"})  # refused by strict mode of OpenAI itself


class _Part(msgspec.Struct):
    text: str | None = None


class _Said(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: str | None = None


class _Counts(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Counts | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    error: object = None


@dataclass(frozen=True, slots=True)
class Azure:
    """An Azure deployment: the model's name is the name of the deployment."""

    endpoint: str
    api_version: str
    ad_token: str = field(default="", repr=False)


@dataclass
class OpenAIProvider:
    """Ask one model through the `openai` library; nothing is sent before `complete`.

    Attributes:
        base_url: where requests go; for Azure its endpoint.
        hosted: OpenAI or Azure itself, which know `max_completion_tokens` and a strict subset of
            JSON schema; other servers know `max_tokens`.
        omit: parameters that are left out of every request.
    """

    service: Service
    base_url: str
    api_key: str = field(repr=False)
    talk: Callable[[str], None]
    hosted: bool = True
    azure: Azure | None = None
    omit: frozenset[str] = frozenset()
    patience: Patience = field(default_factory=Patience)
    asked: Asked = "json_schema"
    name: str = "openai"

    @property
    def model(self) -> str:
        """Name the model that is asked."""
        return self.service.model

    @property
    def host(self) -> str:
        """Name the host that requests go to."""
        return self.service.host

    def request_body(self, request: Request) -> dict[str, Any]:
        """Give the JSON body that `complete` would send now, key by key."""
        messages = request.messages
        if self.asked != "json_schema":
            messages = with_schema_as_text(messages, request.schema)
        limit = "max_completion_tokens" if self.hosted else "max_tokens"
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": said.role, "content": sendable(said.text)} for said in messages],
            limit: request.max_tokens,
            "temperature": request.temperature,
        }
        body |= self._response_format(request.schema)
        return {name: value for name, value in body.items() if name not in self.omit}

    def complete(self, request: Request, *, deadline_s: float) -> Reply:
        """Answer one request within `deadline_s` seconds, retries and steps down included.

        Raises:
            ModelUnavailable: refused, out of quota, unreachable, or not in time.
            ReplyFormatError: the server answered, but not with a completion.
        """
        ends = self.patience.monotonic() + deadline_s
        while True:
            try:
                return self._ask(request, ends - self.patience.monotonic())
            except Fault as fault:
                if not (fault.about_format and self._step_down(fault)):
                    raise fault.error() from None

    def _ask(self, request: Request, deadline_s: float) -> Reply:
        body = self.request_body(request)
        return ask(
            lambda seconds: self._parse(self._send(body, seconds)),
            deadline_s=deadline_s,
            seed=hashlib.sha256(msgspec.json.encode(body, order="sorted")).digest(),
            patience=self.patience,
            host=self.host,
        )

    def _step_down(self, fault: Fault) -> bool:
        lower = _NEXT.get(self.asked)
        if lower is None:
            return False
        self.asked = lower
        self.talk(f"{fault.message}; asking for {_SAID[lower]} instead")
        return True

    def _send(self, body: dict[str, Any], seconds: float) -> bytes:
        import openai

        opened = self._client.chat.completions.with_streaming_response.create(
            **body, timeout=seconds
        )
        return read_reply(opened, self.service, seconds, openai.APIStatusError, openai.OpenAIError)

    def _parse(self, reply: bytes) -> Reply:
        found = decode(reply, _Completion, self.service)
        if found.error and not found.choices:
            raise refused(self.service, _status(found.error), {}, {"error": found.error})
        if not found.choices:
            raise no_completion(self.service, "no choices")
        choice = found.choices[0]
        counts = found.usage or _Counts()
        return Reply(
            text=_text(choice.message),
            usage=Usage(*numbers(counts.prompt_tokens, counts.completion_tokens)),
            model=found.model or "",
            fingerprint=found.system_fingerprint or "",
            finish=_finish(choice),
            host=self.host,
        )

    def _response_format(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        if self.asked == "text":
            return {}
        if self.asked == "json_object":
            return {"response_format": {"type": "json_object"}}
        sent = without_keywords(schema, _HOSTED_DROPS if self.hosted else frozenset())
        named = {"name": "action", "strict": True, "schema": sent}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    @cached_property
    def _client(self) -> OpenAI:
        import openai

        quiet_loggers()
        if self.azure is None:
            return openai.OpenAI(
                api_key=self.api_key,
                base_url=self.base_url,
                max_retries=0,
                http_client=http_client(),
            )
        return openai.AzureOpenAI(
            api_key=self.api_key or None,
            azure_ad_token=self.azure.ad_token or None,
            azure_endpoint=self.azure.endpoint,
            api_version=self.azure.api_version,
            max_retries=0,
            http_client=http_client(),
        )


def _text(said: _Said) -> str:
    match said.content:
        case str():
            return said.content
        case None:
            return said.refusal or ""
    return "".join(part.text or "" for part in said.content)


def _finish(choice: _Choice) -> Finish:
    if choice.message.refusal:
        return "refusal"
    return _FINISH.get(choice.finish_reason or "", "other")


def _status(error: object) -> int:
    match error:
        case {"code": int() as status} if 400 <= status < 600:
            return status
    return 400
