from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.core.kernels import TraceInfo
from agent.core.proposal_form import proposal_json
from agent.core.proposals import Finding, Proposal, RunContext
from agent.errors import UsageError
from agent.workflows.context import context_of
from agent.workflows.inputs import named_repos
from agent.workflows.judge import judge_file, read_line
from tests.builders import proposal, rank_trace, signature, stats, trace

FORM = proposal_json(proposal())
ROCM = RunContext(backend="rocm")


@pytest.mark.parametrize(
    ("vendor", "device", "kernel", "expected"),
    [
        ("rocm", "AMD Instinct MI300X", "k", RunContext("rocm", "gfx942")),
        ("rocm", "AMD Instinct MI355X", "k", RunContext("rocm", "gfx950")),
        ("rocm", "AMD Radeon Graphics", "x_gfx942_y", RunContext("rocm", "gfx942")),
        ("rocm", "", "k", RunContext("rocm")),
        ("cuda", "NVIDIA H200", "k", RunContext("cuda", "sm_90")),
        ("unknown", "", "k", RunContext()),
    ],
)
def test_context_comes_from_the_trace(vendor, device, kernel, expected) -> None:
    info = TraceInfo("t.json", "kineto", vendor, (device,) if device else ())
    run = trace()
    rank = rank_trace({signature(kernel): stats()}, info=info)
    object.__setattr__(run, "ranks", (rank,))
    assert context_of(run) == expected


def test_kernels_of_two_architectures_tell_none() -> None:
    run = trace({signature("a_gfx942_x"): stats(), signature("b_gfx950_x"): stats()})
    assert context_of(run).arch == ""


def test_what_the_user_says_wins_and_nonsense_is_refused() -> None:
    assert context_of(None, ["arch=gfx950", "model=MLA"]) == RunContext("", "gfx950", "", "MLA")
    for text in ("arch", "arch=", "colour=red", "=x"):
        with pytest.raises(UsageError):
            context_of(None, [text])


def test_checkouts_are_named_by_the_user_or_their_folder(tmp_path: Path) -> None:
    (tmp_path / "a=b").mkdir()
    assert named_repos([f"x={tmp_path}", f"{tmp_path}/"]) == [
        ("x", tmp_path),
        (tmp_path.name, tmp_path),
    ]
    assert named_repos([str(tmp_path / "a=b")]) == [("a=b", tmp_path / "a=b")]
    for texts in (["=dir"], ["x="], ["x=a", "x=b"]):
        with pytest.raises(UsageError):
            named_repos(texts)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(FORM), id="a proposal"),
        pytest.param(json.dumps({"proposal": FORM, "kind": "x", "why_wrong": 1}), id="wrapped"),
        pytest.param(json.dumps({"raw": json.dumps(FORM)}), id="as text"),
    ],
)
def test_a_line_is_a_proposal_bare_wrapped_or_as_text(text: str) -> None:
    found, context = read_line(text, ROCM)
    assert isinstance(found, Proposal)
    assert (found.kernel, context) == (FORM["kernel"], ROCM)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        "[]",
        '{"proposal": 1}',
        '{"proposal": {}, "proposal": {}}',
        '{"raw": 1}',
        json.dumps({"proposal": FORM, "context": {"colour": "red"}}),
        json.dumps({"proposal": FORM, "context": {"arch": 1}}),
        json.dumps({"proposal": FORM, "context": []}),
        json.dumps({**FORM, "level": "L4"}),
        "[" * 100_000,
        '{"raw": "' + "x" * 2_000_000 + '"}',
    ],
)
def test_a_line_that_is_none_says_why(text: str) -> None:
    found, _ = read_line(text, ROCM)
    assert isinstance(found, Finding)
    assert found.code == "E_SCHEMA"


def test_a_lines_own_context_wins_and_may_name_the_attention() -> None:
    said = {"backend": "rocm/aiter", "arch": "gfx942"}
    text = json.dumps({"proposal": FORM, "context": said})
    context = read_line(text, RunContext("cuda", model="MLA"))[1]
    assert context == RunContext("rocm", "gfx942", "aiter", "MLA")


@pytest.mark.parametrize("content", [None, b"", b"\n \n", b"\xff\xfe{}"])
def test_a_file_without_proposals_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "p.jsonl"
    if content is not None:
        path.write_bytes(content)
    from agent.workflows.inputs import RunInputs

    with pytest.raises(UsageError) as caught:
        judge_file(str(path), RunInputs())
    assert caught.value.code == "RV021"
