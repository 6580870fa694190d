"""Anthropic's messages with a JSON schema in `output_config`.

The interface takes no temperature. Its schemas take no bounds on lengths and numbers, so those are
left out of what is sent; replies are validated against the whole schema anyway.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from agent.proposing.providers.base import Finish, Message, Reply, Request, Usage
from agent.proposing.providers.exchange import (
    decode,
    http_client,
    no_completion,
    numbers,
    quiet_loggers,
    read_reply,
)
from agent.proposing.providers.faults import Fault, Service
from agent.proposing.providers.retry import Patience, ask
from agent.proposing.providers.schema import sendable, with_schema_as_text, without_keywords

if TYPE_CHECKING:
    from anthropic import Anthropic

_FINISH: Mapping[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_DROPS = frozenset(
    {
        "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems",
    }
)  # fmt: skip


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _Counts(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Answer(msgspec.Struct):
    content: list[_Block] | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: _Counts | None = None


@dataclass
class AnthropicProvider:
    """Ask one model through the `anthropic` library; nothing is sent before `complete`."""

    service: Service
    base_url: str
    api_key: str = field(repr=False)
    talk: Callable[[str], None]
    patience: Patience = field(default_factory=Patience)
    asked: Literal["json_schema", "text"] = "json_schema"
    name: str = "anthropic"

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
        if self.asked == "text":
            messages = with_schema_as_text(messages, request.schema)
        system = "\n\n".join(sendable(said.text) for said in messages if said.role == "system")
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "messages": [_turn(said) for said in messages if said.role != "system"],
        }
        if system:
            body["system"] = system
        if self.asked == "json_schema":
            schema = without_keywords(request.schema, _DROPS)
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return body

    def complete(self, request: Request, *, deadline_s: float) -> Reply:
        """Answer one request within `deadline_s` seconds, retries and the step down included.

        Raises:
            ModelUnavailable: refused, out of quota, unreachable, or not in time.
            ReplyFormatError: the server answered, but not with a message.
        """
        ends = self.patience.monotonic() + deadline_s
        while True:
            try:
                return self._ask(request, ends - self.patience.monotonic())
            except Fault as fault:
                if not fault.about_format or self.asked == "text":
                    raise fault.error() from None
                self.asked = "text"
                self.talk(f"{fault.message}; asking for plain text instead")

    def _ask(self, request: Request, deadline_s: float) -> Reply:
        body = self.request_body(request)
        return ask(
            lambda seconds: self._parse(self._send(body, seconds)),
            deadline_s=deadline_s,
            seed=hashlib.sha256(msgspec.json.encode(body, order="sorted")).digest(),
            patience=self.patience,
            host=self.host,
        )

    def _send(self, body: dict[str, Any], seconds: float) -> bytes:
        import anthropic

        opened = self._client.messages.with_streaming_response.create(**body, timeout=seconds)
        return read_reply(
            opened, self.service, seconds, anthropic.APIStatusError, anthropic.AnthropicError
        )

    def _parse(self, reply: bytes) -> Reply:
        found = decode(reply, _Answer, self.service)
        if found.content is None or (not found.content and found.stop_reason != "refusal"):
            raise no_completion(self.service, "no content")
        counts = found.usage or _Counts()
        given, written = numbers(counts.input_tokens, counts.output_tokens)
        cached = sum(numbers(counts.cache_creation_input_tokens, counts.cache_read_input_tokens))
        return Reply(
            text="".join(block.text or "" for block in found.content if block.type == "text"),
            usage=Usage(given + cached, written),
            model=found.model or "",
            finish=_FINISH.get(found.stop_reason or "", "other"),
            host=self.host,
        )

    @cached_property
    def _client(self) -> Anthropic:
        import anthropic

        quiet_loggers()
        return anthropic.Anthropic(
            api_key=self.api_key,
            base_url=self.base_url,
            max_retries=0,
            http_client=http_client(),
            open_telemetry=False,
        )


def _turn(said: Message) -> dict[str, str]:
    return {"role": said.role, "content": sendable(said.text)}
