"""What every model backend is asked and answers: one request, one text, no tools, no streaming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "refusal", "other"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model; equal requests may share an answer.

    Attributes:
        model: the model's name as the user gave it, without the provider.
        schema: JSON schema of the reply; an object schema without `$ref`.
        max_tokens: upper bound on the reply.
    """

    model: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    max_tokens: int
    temperature: float = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one exchange, as the provider counts them; 0 where it does not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """Add two exchanges."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    Attributes:
        model: the model that answered, as the server names it.
        fingerprint: the server's own mark of its build, or "".
        finish: why the text ends; `length` means it was cut off.
        host: the host that answered, without scheme, path or credentials.
    """

    text: str
    usage: Usage = Usage()
    model: str = ""
    fingerprint: str = ""
    finish: Finish = "stop"
    host: str = ""


class Provider(Protocol):
    """A model backend."""

    @property
    def name(self) -> str:
        """Name the backend: `openai`, `anthropic`."""
        ...

    @property
    def model(self) -> str:
        """Name the model that is asked."""
        ...

    @property
    def host(self) -> str:
        """Name the host that requests go to."""
        ...

    def request_body(self, request: Request) -> dict[str, Any]:
        """Give the JSON body that `complete` would send, without sending it."""
        ...

    def complete(self, request: Request, *, deadline_s: float) -> Reply:
        """Answer one request within `deadline_s` seconds, retries included.

        Raises:
            ModelUnavailable: refused, out of quota, unreachable, or not in time.
            ReplyFormatError: the server answered, but not with a completion.
        """
        ...
