"""Choose the model backend from `--model`, `--base-url` and the environment; sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from agent.core.text import shown
from agent.errors import UsageError
from agent.proposing.providers.base import Provider
from agent.proposing.providers.faults import OMIT_VARIABLE, Service

CHOICES = "openai:NAME, anthropic:NAME, offline"
DEFAULT_OPENAI = "gpt-4.1-mini"
DEFAULT_ANTHROPIC = "claude-sonnet-4-5"

_OPENAI_URL = "https://api.openai.com/v1"
_ANTHROPIC_URL = "https://api.anthropic.com"
_NO_KEY = "no-key"  # servers of one's own want none, the libraries want something

Talk = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Choice:
    name: str
    base_url: str
    env: Mapping[str, str]
    talk: Talk

    def key(self, variable: str) -> str:
        from agent.proposing.providers.exchange import sendable_key

        return sendable_key(self.env.get(variable, ""), variable)


def choose_provider(
    model: str, base_url: str, env: Mapping[str, str], talk: Talk
) -> Provider | None:
    """Give the backend of `--model`, or None for the offline proposer.

    `openai:NAME`, `anthropic:NAME` or `offline`; "" takes the provider whose key is set, OpenAI's
    first, and works offline without one. Where requests will go is said through `talk`.

    Raises:
        UsageError: no such choice, a key is missing, or the base URL is not one.
    """
    backend, _, name = (model or _default(base_url, env, talk)).partition(":")
    choice = _Choice(name.strip(), base_url.strip(), env, talk)
    if backend == "offline" and not name:
        _refuse_base_url(base_url)
        return None
    if backend not in {"openai", "anthropic"} or not choice.name:
        raise UsageError(
            "ML001", f'no model "{shown(model, limit=80)}"', hint=f"--model is one of {CHOICES}"
        )
    return _openai(choice) if backend == "openai" else _anthropic(choice)


def _default(base_url: str, env: Mapping[str, str], talk: Talk) -> str:
    if base_url:
        raise UsageError(
            "ML001", "a base URL needs the name of a model", hint="add --model openai:NAME"
        )
    if env.get("OPENAI_API_KEY"):
        return f"openai:{DEFAULT_OPENAI}"
    if env.get("ANTHROPIC_API_KEY"):
        return f"anthropic:{DEFAULT_ANTHROPIC}"
    talk("no model: neither OPENAI_API_KEY nor ANTHROPIC_API_KEY is set; working offline")
    return "offline"


def _refuse_base_url(base_url: str) -> None:
    if base_url:
        raise UsageError(
            "ML001",
            "offline asks no server",
            hint="leave out --base-url, or give --model openai:NAME",
        )


def _openai(choice: _Choice) -> Provider:
    if choice.env.get("AZURE_OPENAI_ENDPOINT") and not choice.base_url:
        return _azure(choice)
    from agent.proposing.providers.exchange import checked_url, plain_host, secrets_of
    from agent.proposing.providers.openai import OpenAIProvider

    own = choice.base_url or choice.env.get("OPENAI_BASE_URL", "")
    url = checked_url(own or _OPENAI_URL)
    key = choice.key("OPENAI_API_KEY") or (_NO_KEY if own else "")
    if not key:
        raise _missing("OPENAI_API_KEY")
    service = Service(plain_host(url), choice.name, "OPENAI_API_KEY", secrets_of(url, key))
    _announce(choice, url, has_key=key != _NO_KEY)
    return OpenAIProvider(
        service=service,
        base_url=url,
        api_key=key,
        talk=choice.talk,
        hosted=f".{service.host}".endswith(".openai.com"),
        omit=_omitted(choice.env),
    )


def _azure(choice: _Choice) -> Provider:
    from agent.proposing.providers.exchange import checked_url, plain_host, secrets_of
    from agent.proposing.providers.openai import Azure, OpenAIProvider

    url = checked_url(choice.env["AZURE_OPENAI_ENDPOINT"])
    version = choice.env.get("OPENAI_API_VERSION", "")
    token = choice.key("AZURE_OPENAI_AD_TOKEN")
    key = "" if token else choice.key("AZURE_OPENAI_API_KEY")
    if not (token or key):
        raise _missing("AZURE_OPENAI_API_KEY")
    if not version:
        raise _missing("OPENAI_API_VERSION")
    variable = "AZURE_OPENAI_AD_TOKEN" if token else "AZURE_OPENAI_API_KEY"
    service = Service(plain_host(url), choice.name, variable, secrets_of(url, key, token))
    _announce(choice, url, has_key=True)
    return OpenAIProvider(
        service=service,
        base_url=url,
        api_key=key,
        talk=choice.talk,
        azure=Azure(url, version, token),
        omit=_omitted(choice.env),
    )


def _anthropic(choice: _Choice) -> Provider:
    from agent.proposing.providers.anthropic import AnthropicProvider
    from agent.proposing.providers.exchange import checked_url, plain_host, secrets_of

    own = choice.base_url or choice.env.get("ANTHROPIC_BASE_URL", "")
    # The library adds /v1 itself; the same address as for OpenAI's interface is accepted.
    url = checked_url((own or _ANTHROPIC_URL).rstrip("/").removesuffix("/v1"))
    key = choice.key("ANTHROPIC_API_KEY") or (_NO_KEY if own else "")
    if not key:
        raise _missing("ANTHROPIC_API_KEY")
    service = Service(plain_host(url), choice.name, "ANTHROPIC_API_KEY", secrets_of(url, key))
    _announce(choice, url, has_key=key != _NO_KEY)
    return AnthropicProvider(service=service, base_url=url, api_key=key, talk=choice.talk)


def _announce(choice: _Choice, url: str, *, has_key: bool) -> None:
    from agent.proposing.providers.exchange import plain_host

    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    where = shown(f"{parts.scheme}://{plain_host(url)}{path}", limit=200)
    choice.talk(f"model {shown(choice.name, limit=80)} at {where}")
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if has_key and parts.scheme == "http" and not local:
        choice.talk(f"note: the key goes to {plain_host(url)} unencrypted (http)")


def _missing(variable: str) -> UsageError:
    return UsageError(
        "ML002",
        f"{variable} is not set",
        hint=f"set {variable}, or use --model offline, which needs no key and no network",
    )


def _omitted(env: Mapping[str, str]) -> frozenset[str]:
    named = (name.strip() for name in env.get(OMIT_VARIABLE, "").split(","))
    return frozenset(name for name in named if name)
