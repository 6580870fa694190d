"""A reply is one JSON object under the schema; anything else is named, never repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.errors import ReplyFormatError
from agent.proposing.actions import FORMS, Abstain, SubmitProposal, read_action, reply_schema
from agent.proposing.providers.base import Reply

SUBMIT = json.dumps({"note": "n", "action": {"do": "abstain", "reason": "x"}})


@pytest.mark.parametrize(
    "text",
    [
        SUBMIT,
        f"```json\n{SUBMIT}\n```",
        f"Sure! Here it is:\n```\n{SUBMIT}\n```\nBye.",
        '{"do": "abstain", "reason": "x"}',
    ],
    ids=["plain", "fenced", "fenced with prose around", "the bare action"],
)
def test_one_object_is_read(text: str) -> None:
    assert read_action(Reply(text)) == Abstain(do="abstain", reason="x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("null", "reply"),
        ("[]", "reply"),
        ("{'do': 'abstain'}", "not one JSON value"),
        (SUBMIT + SUBMIT, "not one JSON value"),
        (f"```\n{SUBMIT}\n```\n```\n{SUBMIT}\n```", "2 fenced blocks"),
        ('{"action": {"do": "abstain", "reason": "a", "reason": "b"}}', 'duplicate key "reason"'),
        ('{"action": {"do": "test_pattern", "kernel": "mla_\\d+"}}', "Invalid \\escape"),
        ('{"action": {"do": "test_pattern", "kernel": "\\bgemm\\b"}}', "control character"),
        ('{"action": {"do": "test_pattern", "kernel": 7}}', "valid string"),
        ('{"action": {"do": "run_shell", "command": "rm -rf /"}}', "action"),
        ('{"action": {"do": "abstain", "reason": "x", "confidence": 1}}', "confidence"),
        ('{"action": {"do": "abstain", "reason": "x"}, "shell": "x"}', "shell"),
        ('{"action": {"do": "abstain", "reason": NaN}}', "NaN"),
        ("[" * 5_000, "not one JSON value"),
        ("x" * 70_000, "70000 characters"),
    ],
)
def test_anything_else_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ReplyFormatError, match="ML030") as caught:
        read_action(Reply(text))
    assert said in caught.value.message


@pytest.mark.parametrize("finish", ["length", "refusal"])
def test_a_cut_off_or_refused_reply_is_not_read(finish: str) -> None:
    with pytest.raises(ReplyFormatError):
        read_action(Reply(SUBMIT, finish=finish))  # type: ignore[arg-type]


def test_lists_and_texts_of_a_reply_are_bounded() -> None:
    for node in _nodes(reply_schema(["MLA", "RoPE"])):
        if node.get("type") == "string" and "enum" not in node:
            assert node["maxLength"] <= 1_000
        if node.get("type") == "array":
            assert node["maxItems"] <= 20
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])


def test_the_schema_holds_nothing_that_servers_refuse() -> None:
    text = json.dumps(reply_schema(["MLA", "RoPE"]))
    assert not [
        word
        for word in ("$ref", "oneOf", "const", "default", "discriminator")
        if f'"{word}"' in text
    ]


def test_actions_can_be_left_out_of_the_schema() -> None:
    schema = reply_schema(["MLA"], allowed=frozenset({"abstain"}))
    assert len(schema["properties"]["action"]["anyOf"]) == 1
    assert len(reply_schema(["MLA", "RoPE"])["properties"]["action"]["anyOf"]) == len(FORMS)


def test_a_server_that_keeps_to_the_schema_can_propose_no_other_category() -> None:
    """A small model wrote `Rope` for RoPE three times over."""
    found = [
        node["category"] for node in _nodes(reply_schema(["MLA", "RoPE"])) if "category" in node
    ]
    assert found == [{"type": "string", "enum": ["MLA", "RoPE"]}]


def test_only_the_essentials_of_a_proposal_are_needed() -> None:
    action = read_action(
        Reply('{"action": {"do": "submit_proposal", "category": "MLA", "kernel": "mla_"}}')
    )
    assert isinstance(action, SubmitProposal)
    assert action.candidates == []


def _nodes(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [node for part in value for node in _nodes(part)]
    if not isinstance(value, dict):
        return []
    return [value, *(node for part in value.values() for node in _nodes(part))]
