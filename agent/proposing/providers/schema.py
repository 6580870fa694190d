"""JSON schemas as a backend takes them: without keywords it refuses, or as text for the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent.proposing.providers.base import Message

_NAMED = ("properties", "$defs", "definitions")  # their keys are names, not keywords


def without_keywords(schema: Mapping[str, Any], dropped: frozenset[str]) -> dict[str, Any]:
    """Copy a schema without some keywords, at every depth; a property may bear such a name."""
    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in dropped:
            continue
        if keyword in _NAMED and isinstance(value, Mapping):
            kept[keyword] = {name: _inner(part, dropped) for name, part in value.items()}
        elif keyword in {"enum", "const", "required"}:
            kept[keyword] = value
        else:
            kept[keyword] = _inner(value, dropped)
    return kept


def with_schema_as_text(
    messages: tuple[Message, ...], schema: Mapping[str, Any]
) -> tuple[Message, ...]:
    """Say the schema in the first system message, for a server that takes none beside the text."""
    said = f"Answer with one JSON object that follows this JSON schema:\n{json.dumps(schema)}"
    for at, message in enumerate(messages):
        if message.role == "system":
            joined = Message("system", f"{message.text}\n\n{said}")
            return (*messages[:at], joined, *messages[at + 1 :])
    return (Message("system", said), *messages)


def sendable(text: str) -> str:
    """Replace lone surrogates, which no JSON request can carry, by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _inner(value: Any, dropped: frozenset[str]) -> Any:  # noqa: ANN401 -- a JSON schema's parts
    if isinstance(value, Mapping):
        return without_keywords(value, dropped)
    if isinstance(value, list | tuple):
        return [_inner(part, dropped) for part in value]
    return value
