from __future__ import annotations

from agent.core.proposals import Origin
from agent.core.text import is_plain
from agent.review.draft import draft_rule
from agent.review.message import commit_message
from agent.ruleset.codec import load_builtin
from tests.builders import evidence
from tests.unit.review.fakes import ADA, small_trace, verdict


def _message(**fields: object) -> str:
    drafted = draft_rule(
        verdict(**fields), ADA, text=None, ruleset=load_builtin(), trace=small_trace()
    )
    return commit_message(drafted)


def test_the_message_names_rule_category_evidence_and_model() -> None:
    origin = Origin(
        "openai", "gpt", "gpt-2", "api.example", prompt="propose@3", prompt_digest="a" * 64
    )
    assert _message(origin=origin) == (
        "Add rule attention.my-stage2\n"
        "\n"
        "Category: Attention\n"
        "Kernel: ^_my_stage2$\n"
        "Rules: version 1\n"
        "Moves: 1 name, 2 events, 3.000 ms from Unlabelled\n"
        "Evidence: definition sglang@000000000000 python/kernels.py:10-11 in Backend.forward\n"
        "Proposed by: openai:gpt-2 at api.example\n"
        "Prompt: propose@3 (aaaaaaaaaaaa)\n"
    )


def test_a_persons_own_rule_names_no_model() -> None:
    assert "Proposed by" not in _message()


def test_hostile_text_stays_on_its_line() -> None:
    hostile = "x\nSigned-off-by: Mallory <m@x>\r\x1b[0m"
    message = _message(origin=Origin(hostile, hostile), evidence=(evidence(path=hostile),))
    assert all(is_plain(line) for line in message.split("\n"))
    assert not any(line.startswith("Signed-off-by") for line in message.split("\n"))


def test_the_subject_is_short() -> None:
    name = "very_long_kernel_name_" * 8
    assert len(_message(kernels=(name,), kernel=f"^{name}$").split("\n")[0]) <= 72
