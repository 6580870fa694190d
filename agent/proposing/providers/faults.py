"""What one try at a model server met: said in one line, sorted by what can be done, keys removed.

Both libraries raise errors of the same shape; this module looks only at status, headers and body.
Error bodies as documented by OpenAI, Anthropic, vLLM, llama.cpp, Ollama and FastAPI are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agent.core.text import shown
from agent.errors import ModelUnavailable

OMIT_VARIABLE = "LABEL_AGENT_OMIT"

_QUOTED = 200  # characters of a server's message that are shown
_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|hf)[-_][\w*.-]{6,}|\b(?:org|proj)[-_]\w{10,}|\bBearer\s+\S+",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"//[^\s/@]+@")  # name and password before a host
_QUOTA_CODES = frozenset(
    {
        "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error",
        "quota_exceeded",
    }
)  # fmt: skip
_QUOTA_WORDS = re.compile(
    r"insufficient.quota|exceeded your current quota|credit balance", re.IGNORECASE
)
_FORMAT_WORDS = re.compile(
    r"response_format|json_schema|output_config|output_format|grammar|guided|structured|"
    r"(?:invalid|unsupported)\s+schema",
    re.IGNORECASE,
)
_NAMED_PARAMETER = re.compile(
    r"(?:parameter|argument|argument supplied|field)s?(?: supplied)?:? ['\"`]?([a-z][\w.]{2,40})",
    re.IGNORECASE,
)
_OMITTABLE = frozenset({"temperature", "max_tokens", "max_completion_tokens"})


@dataclass(frozen=True, slots=True)
class Service:
    """Who is asked, for messages: never holds a key in what it shows."""

    host: str
    model: str
    key_variable: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def clean(self, text: str) -> str:
        """Give foreign text as one short line without keys or control characters."""
        return shown(" ".join(without_secrets(text, self.secrets).split()), limit=_QUOTED)


@dataclass(frozen=True, slots=True)
class Complaint:
    """What an error body says; "" where it does not say."""

    message: str = ""
    code: str = ""
    kind: str = ""
    parameter: str = ""


class Fault(Exception):
    """One failed try.

    `transient` faults may be tried again; `about_format` means that the server refuses the way the
    schema is asked for, not the question.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        transient: bool = False,
        retry_after: str = "",
        about_format: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.transient = transient
        self.retry_after = retry_after
        self.about_format = about_format

    def error(self, note: str = "") -> ModelUnavailable:
        """Give the error that ends the call."""
        said = f"{self.message} {note}".rstrip()
        return ModelUnavailable(self.code, said, hint=self.hint)


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Take known keys, what looks like one, and passwords in addresses out of a text."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    return _KEY_LIKE.sub("[key]", _IN_ADDRESS.sub("//", text))


def refused(service: Service, status: int, headers: Mapping[str, str], body: object) -> Fault:
    """Sort an answer with an error status; `body` is decoded JSON, or None."""
    said = complaint(body)
    quoted = service.clean(said.message)
    tail = f": {quoted}" if quoted else ""
    if said.code in _QUOTA_CODES or said.kind in _QUOTA_CODES or _is_quota(status, said):
        return Fault(
            "ML010",
            f"{service.host} says the quota of this account is used up (status {status}){tail}",
            hint="check plan and billing of the account, or use another --model",
        )
    if 300 <= status < 400:
        return _redirected(service, status)
    if status in {401, 403}:
        return _not_allowed(service, status)
    if status == 404:
        return Fault(
            "ML012",
            f'{service.host} knows no model "{shown(service.model, limit=80)}", or no such '
            f"address (status 404){tail}",
            hint="check the name in --model, and that --base-url ends as the server wants (/v1)",
        )
    if status in {408, 409, 429} or status >= 500:
        return _busy(service, status, headers, said, tail)
    return _bad_request(service, status, said, tail)


def complaint(body: object) -> Complaint:
    """Read an error body, whatever its shape."""
    match body:
        case {"error": dict() as inner}:
            return _fields(inner)
        case {"error": str() as message}:
            return Complaint(message=message)
        case {"detail": [{"msg": str() as message, "loc": [*_, str() as place]}, *_]}:
            return Complaint(message=message, parameter=place)
        case {"detail": str() as message}:
            return Complaint(message=message)
        case dict():
            return _fields(body)
    return Complaint()


def unreachable(service: Service, reason: str) -> Fault:
    """Say that no answer came: refused, reset, unknown name, closed in the middle."""
    return Fault(
        "ML016",
        f"no answer from {service.host}: {service.clean(reason)}",
        hint="check the network, and that the server of --base-url is up",
        transient=True,
    )


def not_an_api(service: Service, what: str) -> Fault:
    """Say that something else than a model server answered."""
    return Fault(
        "ML018",
        f"{service.host} answered with {what}, not with a completion",
        hint="check --base-url: a proxy, a login page or a wrong path answers there",
    )


def _redirected(service: Service, status: int) -> Fault:
    return Fault(
        "ML018",
        f"{service.host} answered with a redirect (status {status}), which is not followed",
        hint="give the final address as --base-url; following would carry the key elsewhere",
    )


def _not_allowed(service: Service, status: int) -> Fault:
    # The server's own words are left out: they repeat the key.
    what = "is not accepted" if status == 401 else "is not allowed to do this"
    return Fault(
        "ML011",
        f"the key in {service.key_variable} {what} by {service.host} (status {status})",
        hint=f"check {service.key_variable}, and that it belongs to this server",
    )


def _busy(
    service: Service, status: int, headers: Mapping[str, str], said: Complaint, tail: str
) -> Fault:
    what = "is limiting requests" if status == 429 else "has a fault"
    refuses_retry = headers.get("x-should-retry", "").strip().lower() == "false"
    about_format = status >= 500 and bool(_FORMAT_WORDS.search(said.message))
    return Fault(
        "ML014",
        f"{service.host} {what} (status {status}){tail}",
        hint="try again later, or ask fewer families with --max-families",
        transient=not refuses_retry and not about_format and status != 501,
        retry_after=headers.get("retry-after", ""),
        about_format=about_format,
    )


def _bad_request(service: Service, status: int, said: Complaint, tail: str) -> Fault:
    found = _NAMED_PARAMETER.search(said.message)
    parameter = service.clean(said.parameter or (found.group(1) if found else ""))
    named = f'the parameter "{parameter}"' if parameter else "the request"
    code = f", {service.clean(said.code)}" if said.code else ""
    return Fault(
        "ML013",
        f"{service.host} refuses {named} (status {status}{code}){tail}",
        hint=_parameter_hint(parameter),
        about_format=bool(_FORMAT_WORDS.search(f"{said.parameter} {said.message}")),
    )


def _parameter_hint(parameter: str) -> str:
    if parameter in _OMITTABLE:
        return f"set {OMIT_VARIABLE}={parameter} to leave it out of every request"
    if parameter == "model":
        return "check the name in --model"
    return "see what is sent with --dry-run"


def _is_quota(status: int, said: Complaint) -> bool:
    return status in {400, 402, 403, 429} and (
        status == 402 or bool(_QUOTA_WORDS.search(f"{said.code} {said.message}"))
    )


def _fields(body: Mapping[str, object]) -> Complaint:
    return Complaint(
        message=_text(body.get("message")),
        code=_text(body.get("code")),
        kind=_text(body.get("type")),
        parameter=_text(body.get("param")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
