"""What a model may answer: one action a turn, as a tagged union under a JSON schema.

Every list and every text is bounded. A reply is read by one path whatever the server promised:
nothing is repaired silently, and what is wrong goes back in one line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agent.core.proposals import EvidenceKind
from agent.core.strict_json import read_json
from agent.core.text import shown
from agent.errors import ReplyFormatError
from agent.proposing.providers.base import Reply

MAX_REPLY = 65_536
_FENCED = re.compile(r"```[A-Za-z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_DROPPED = frozenset({"title", "default", "discriminator", "description"})


def _no_controls(text: str) -> str:
    """Refuse what a mistaken escape leaves behind, such as a backspace."""
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        message = 'it holds a control character; in JSON write "\\\\b" for the regex \\b'
        raise ValueError(message)
    return text


Text = Annotated[str, Field(max_length=300), AfterValidator(_no_controls)]
Name = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_no_controls)]
PatternText = Annotated[str, Field(min_length=1, max_length=400), AfterValidator(_no_controls)]
Prose = Annotated[str, Field(max_length=600)]
LineNumber = Annotated[int, Field(ge=1, le=10_000_000)]


class Form(BaseModel):
    """One object of a reply; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SearchSource(Form):
    """Find lines that hold a text literally."""

    do: Literal["search_source"]
    text: Name


class FindDefinition(Form):
    """Find what defines a kernel of that name."""

    do: Literal["find_definition"]
    name: Name


class FindCallSites(Form):
    """Find calls, launches and instantiations of a symbol."""

    do: Literal["find_call_sites"]
    symbol: Name


class ReadSource(Form):
    """Read lines of a file."""

    do: Literal["read_source"]
    repo: Name
    path: Name
    first: LineNumber
    last: LineNumber


class CheckPattern(Form):
    """See what a pattern would match, steal and miss."""

    do: Literal["test_pattern"]
    kernel: PatternText


class CitedEvidence(Form):
    """A place in a checkout that is not among the numbered candidates."""

    kind: EvidenceKind
    repo: Name
    path: Name
    first: LineNumber
    last: LineNumber
    symbol: Text = ""
    guard: Text = ""


class SubmitProposal(Form):
    """Propose a rule; an empty `kernel` takes the suggested pattern of the first candidate."""

    do: Literal["submit_proposal"]
    category: Annotated[str, Field(min_length=1, max_length=60), AfterValidator(_no_controls)]
    kernel: Annotated[str, Field(max_length=400), AfterValidator(_no_controls)] = ""
    op: Text = ""
    input_dtypes: Annotated[list[Text], Field(max_length=4)] = []
    candidates: Annotated[list[Annotated[int, Field(ge=1, le=99)]], Field(max_length=4)] = []
    evidence: Annotated[list[CitedEvidence], Field(max_length=5)] = []
    overrides: Annotated[list[Text], Field(max_length=10)] = []
    rationale: Prose = ""


class Abstain(Form):
    """Leave the family without a rule, and say why."""

    do: Literal["abstain"]
    reason: Prose


Action = (
    SearchSource
    | FindDefinition
    | FindCallSites
    | ReadSource
    | CheckPattern
    | SubmitProposal
    | Abstain
)
FORMS: tuple[type[Form], ...] = (
    SearchSource,
    FindDefinition,
    FindCallSites,
    ReadSource,
    CheckPattern,
    SubmitProposal,
    Abstain,
)
WITHOUT_SOURCE = frozenset({"test_pattern", "submit_proposal", "abstain"})
"""Actions whose results hold no source text."""


class Turn(Form):
    """A whole reply: a short note of the model's own, then one action."""

    note: Annotated[str, Field(max_length=400)] = ""
    action: Annotated[Action, Field(discriminator="do")]


def read_action(reply: Reply) -> Action:
    """Read a reply; one fenced block with prose around it is taken for its content.

    Raises:
        ReplyFormatError: cut off, refused, empty, not one JSON value, or wrong by schema.
    """
    if reply.finish == "length":
        raise _format("the reply was cut off at its token limit; answer with one short JSON object")
    if reply.finish == "refusal":
        raise _format("the model refused to answer")
    return _turn(_value(_bare(reply.text))).action


def reply_schema(
    categories: Sequence[str], *, allowed: frozenset[str] | None = None
) -> dict[str, Any]:
    """Give the JSON schema of a reply: no `$ref`, all keys required, nothing else allowed.

    A server that keeps to it can propose none but these `categories`. `allowed` restricts the
    actions by their `do`; None allows all.
    """
    raw = Turn.model_json_schema()
    schema: dict[str, Any] = _inlined(raw, raw.get("$defs", {}))
    action = schema["properties"]["action"]
    action["anyOf"] = [one for one in action["anyOf"] if allowed is None or _tag(one) in allowed]
    for one in action["anyOf"]:
        if "category" in one["properties"]:
            one["properties"]["category"] = {"type": "string", "enum": list(categories)}
    return schema


def _bare(text: str) -> str:
    if len(text) > MAX_REPLY:
        raise _format(f"the reply has {len(text)} characters, more than {MAX_REPLY}")
    blocks = _FENCED.findall(text)
    if len(blocks) > 1:
        raise _format(f"the reply holds {len(blocks)} fenced blocks; answer with one JSON object")
    bare: str = blocks[0] if blocks else text
    if not bare.strip():
        raise _format("the reply is empty")
    return bare


def _value(text: str) -> object:
    try:
        value: object = read_json(text)
    except ValueError as err:
        raise _format(str(err)) from err
    return value


def _turn(value: object) -> Turn:
    if isinstance(value, dict) and "do" in value and "action" not in value:
        value = {"action": value}
    try:
        return Turn.model_validate(value)
    except ValidationError as err:
        parts = "; ".join(_one_line(error) for error in err.errors()[:4])
        raise _format(parts) from err


def _one_line(error: Any) -> str:  # noqa: ANN401 - pydantic's own error dict
    where = ".".join(str(part) for part in error["loc"]) or "reply"
    return f"{shown(where, limit=100)}: {shown(str(error['msg']), limit=200)}"


def _format(message: str) -> ReplyFormatError:
    return ReplyFormatError("ML030", shown(message, limit=900))


def _inlined(value: Any, definitions: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a JSON value
    if isinstance(value, list):
        return [_inlined(part, definitions) for part in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _inlined(definitions[value["$ref"].rpartition("/")[2]], definitions)
    out: dict[str, Any] = {}
    for key, part in value.items():
        if key == "properties":
            out[key] = {name: _inlined(one, definitions) for name, one in part.items()}
        elif key == "const":
            out["enum"] = [part]
        elif key not in _DROPPED and key != "$defs":
            out["anyOf" if key == "oneOf" else key] = _inlined(part, definitions)
    if "properties" in out:
        out["required"] = list(out["properties"])
    return out


def _tag(schema: Mapping[str, Any]) -> str:
    tag: str = schema["properties"]["do"]["enum"][0]
    return tag
