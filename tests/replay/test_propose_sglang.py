"""The loop on a trace of SGLang without any rule, against a recorded small model.

It is asked about the SGLang wheel it was recorded with, unpacked and committed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.replay.cassettes import recorder
from tests.replay.runs import SGLANG, Sglang, propose_on_sglang
from tests.unit.review.worktrees import git
from tests.wheels import unpack_wheel

WHEEL = "0.5.11"
TRACE = "traces/sglang_qwen3_8b_prefill_decode_mi300.json.gz"


@pytest.fixture
def sglang(shared: Path, tmp_path: Path) -> Sglang:
    return Sglang(shared / TRACE, unpack_wheel(tmp_path / "sglang", WHEEL))


def test_a_small_model_gets_only_what_the_wheel_proves_through_the_gate(
    sglang: Sglang, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with recorder("none").use_cassette(SGLANG) as cassette:
        rules = propose_on_sglang(tmp_path / "rules", sglang)
    assert cassette.all_played
    result = json.loads(capsys.readouterr().out)
    families = {one["family"]: one for one in result["families"]}
    admitted = {name for name, one in families.items() if one["answer"] == "admitted"}
    assert admitted == {"(anonymous namespace)::store_kvcache"}
    rest = [one for name, one in families.items() if name not in admitted]
    assert {one["answer"] for one in rest} <= {"rejected", "abstained", "failed"}
    assert all(one["reason"] for one in rest)
    assert {one["turns"] for name, one in families.items() if name.startswith("Cijk_")} == {0}
    [proposal] = [one for one in result["proposals"] if one["verdict"] == "admitted"]
    assert proposal["rule"]["category"] == "KVCacheWrite"
    assert git(rules, "rev-list", "--count", "HEAD") == "2"
