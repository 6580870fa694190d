"""One HTTP exchange through a model library: bytes back, or a `Fault`.

Knows what both libraries share: the client for HTTP below them and the shape of their errors.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from agent.core.text import shown
from agent.errors import ReplyFormatError, UsageError
from agent.proposing.providers.faults import (
    Fault,
    Service,
    not_an_api,
    refused,
    unreachable,
    without_secrets,
)

LONGEST_REPLY = 4 << 20  # bytes; thousands of times what a bounded completion needs

_T = TypeVar("_T")


class StreamedResponse(Protocol):
    """The part of both libraries' streamed response that is used."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Give the headers, names in any case."""
        ...

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """Give the body, decompressed, as it comes."""
        ...


class StatusError(Protocol):
    """The part of both libraries' `APIStatusError` that is used."""

    status_code: int
    response: httpx2.Response


def http_client() -> httpx2.Client:
    """Make the client below a library: proxies from the environment, no redirects.

    Raises:
        UsageError: a proxy or certificate variable of the environment is of no use.
    """
    try:
        return httpx2.Client(follow_redirects=False)
    except (ImportError, ValueError, OSError, httpx2.InvalidURL) as err:
        raise UsageError(
            "ML003",
            f"no connection can be set up: {shown(without_secrets(str(err), ()), limit=200)}",
            hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE",
        ) from None


def quiet_loggers() -> None:
    """Keep the libraries from logging requests, which hold source text."""
    for name in ("openai", "anthropic", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)


def read_reply(
    opened: AbstractContextManager[StreamedResponse],
    service: Service,
    timeout_s: float,
    status_error: type[Exception],
    library_error: type[Exception],
) -> bytes:
    """Read one JSON reply; raises `Fault` for whatever else comes."""
    ends = time.monotonic() + timeout_s
    try:
        with opened as response:
            kind = response.headers.get("content-type", "")
            if "html" in kind.lower():
                raise not_an_api(service, "an HTML page")
            return _body(response, service, ends)
    except status_error as err:
        raise _refusal(service, err) from None  # its text may repeat the key
    except (library_error, httpx2.HTTPError, httpx2.InvalidURL, OSError) as err:
        raise unreachable(service, _reason(err)) from None


def decode(reply: bytes, kind: type[_T], service: Service) -> _T:
    """Decode a reply.

    Raises:
        Fault: not JSON at all, or cut off.
        ReplyFormatError: JSON of another shape.
    """
    try:
        return msgspec.json.decode(reply, type=kind, strict=False)
    except msgspec.ValidationError as err:
        raise no_completion(service, service.clean(str(err))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        if not reply.lstrip().startswith((b"{", b"[")):
            raise not_an_api(service, "something that is not JSON") from None
        raise unreachable(service, f"the reply is broken JSON ({err})") from None


def no_completion(service: Service, why: str) -> ReplyFormatError:
    """Say that the server answered in JSON, but not with a completion."""
    return ReplyFormatError(
        "ML020",
        f"the reply of {service.host} holds no completion: {why}",
        hint="the server may not speak this interface, or the model gave nothing",
    )


def plain_host(url: str) -> str:
    """Give host and port of a base URL, without scheme, path or credentials."""
    parts = _split(url)
    host = parts[0] if ":" not in parts[0] else f"[{parts[0]}]"
    return f"{host}:{parts[1]}" if parts[1] else host


def secrets_of(url: str, *keys: str) -> tuple[str, ...]:
    """Give what must never be shown: the keys, and a name and password in the base URL."""
    parts = urlsplit(url)
    found = (*keys, parts.password or "", parts.username or "")
    return tuple(sorted({secret for secret in found if len(secret) > 2}, key=len, reverse=True))


def sendable_key(key: str, variable: str) -> str:
    """Give a key as it can stand in a header.

    Raises:
        UsageError: it holds a line end or a letter that no header can carry.
    """
    stripped = key.strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise UsageError(
            "ML002",
            f"{variable} holds characters that no key has",
            hint=f"set {variable} again, without quotes or line ends",
        )
    return stripped


def checked_url(url: str) -> str:
    """Give a usable base URL.

    Raises:
        UsageError: not http(s) with a host.
    """
    host, _ = _split(url)
    if not host or urlsplit(url).scheme not in {"http", "https"}:
        raise _bad_url()
    return url


def numbers(*counts: int | None) -> Iterator[int]:
    """Give token counts as a server means them: never negative, 0 where it does not say."""
    return (max(0, count or 0) for count in counts)


def _split(url: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad_url() from None
    return parts.hostname or "", port


def _bad_url() -> UsageError:
    # The address is not quoted: it may hold a password.
    return UsageError(
        "ML003",
        "the base URL is not an http(s) address",
        hint="--base-url http://127.0.0.1:8000/v1",
    )


def _body(response: StreamedResponse, service: Service, ends: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in response.iter_bytes():
        size += len(part)
        if size > LONGEST_REPLY:
            raise not_an_api(service, f"more than {LONGEST_REPLY >> 20} MiB")
        if time.monotonic() > ends:
            raise unreachable(service, "the reply came too slowly")
        parts.append(part)
    return b"".join(parts)


def _refusal(service: Service, err: Any) -> Fault:  # noqa: ANN401 -- either library's error
    shaped: StatusError = err
    headers = {name.lower(): value for name, value in shaped.response.headers.items()}
    return refused(service, shaped.status_code, headers, _json_body(shaped.response))


def _json_body(response: httpx2.Response) -> object:
    """Decode an error body that says it is JSON; the libraries unwrap it in two ways."""
    if "json" not in response.headers.get("content-type", "").lower():
        return None
    try:
        return msgspec.json.decode(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, httpx2.ResponseNotRead):
        return None


def _reason(err: BaseException) -> str:
    cause = err.__cause__ or err.__context__ or err
    return str(cause) or type(cause).__name__
