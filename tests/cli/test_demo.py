"""The demo as a user runs it, and what its rule file does with other traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.ruleset.codec import load_rules
from tests.cli.conftest import Run, kernel

FP8, BFLOAT16 = "c10::Float8_e4m3fnuz", "c10::BFloat16"


@pytest.fixture
def rules(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert run("demo").code == 0
    folder = tmp_path / "label-agent-demo" / "rules"
    monkeypatch.chdir(folder)
    return folder


def copies(path: Path, name: str, *dtypes: tuple[str, str]) -> None:
    """Write a trace of one kernel, launched once by `aten::copy_` with each pair of dtypes."""
    events: list[dict[str, object]] = []
    for number, pair in enumerate(dtypes, 1):
        at = 100 * number
        external = {"External id": number}
        launch = {"ph": "X", "pid": 1, "tid": 1, "ts": at}
        op = {"Input type": list(pair), "Input Dims": [[1], [1]], **external}
        events += [
            {**launch, "cat": "cpu_op", "name": "aten::copy_", "dur": 20, "args": op},
            {**launch, "cat": "cuda_runtime", "name": "hipLaunchKernel", "ts": at + 1, "dur": 2,
             "args": {"correlation": at, **external}},
            kernel(name, at, 10),
        ]  # fmt: skip
        events[-1]["args"] = {"device": 0, "stream": 0, "correlation": at, **external}
    path.write_text(json.dumps({"traceEvents": events}))


def test_rules_lint_is_clean_after_the_demo(rules: Path, run: Run) -> None:
    done = run("rules", "lint")
    assert done.code == 0, done.out
    assert "RS026" not in done.out


def test_the_rule_the_demo_accepts_for_a_cast_takes_no_other_copy(rules: Path, run: Run) -> None:
    (accepted,) = (
        one for one in load_rules(rules / "label-rules.toml").rules
        if one.category == "CastFromFP8" and one.source == "label-rules.toml"
    )  # fmt: skip
    name = accepted.examples[0]
    copies(rules / "t.json", name, (BFLOAT16, "float"), (FP8, BFLOAT16), (BFLOAT16, FP8))
    totals = json.loads(run("label", "t.json", "--json").out)["categories"]
    assert {one["id"]: one["count"] for one in totals} == {
        "Elementwise": 1,
        "CastToFP8": 1,
        "CastFromFP8": 1,
    }
