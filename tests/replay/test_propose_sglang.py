"""The loop on a trace of SGLang without any rule, against a recorded small model.

Needs the SGLang wheel, unpacked in a git checkout: `LABEL_AGENT_SGLANG_WHEEL` says where.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.replay.cassettes import recorder
from tests.replay.runs import SGLANG, Sglang, propose_on_sglang
from tests.unit.review.worktrees import git

TRACE = "traces/sglang_qwen3_8b_prefill_decode_mi300.json.gz"


@pytest.fixture
def sglang(shared: Path) -> Sglang:
    wheel = os.environ.get("LABEL_AGENT_SGLANG_WHEEL", "")
    if not wheel:
        pytest.skip("LABEL_AGENT_SGLANG_WHEEL names no checkout of the SGLang wheel")
    return Sglang(shared / TRACE, Path(wheel))


def test_a_small_model_is_refused_or_abstains_where_the_wheel_holds_no_proof(
    sglang: Sglang, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with recorder("none").use_cassette(SGLANG) as cassette:
        rules = propose_on_sglang(tmp_path / "rules", sglang)
    assert cassette.all_played
    families = json.loads(capsys.readouterr().out)["families"]
    assert {one["answer"] for one in families} <= {"rejected", "abstained", "failed"}
    assert all(one["reason"] for one in families)
    assert {one["turns"] for one in families if one["family"].startswith("Cijk_")} == {0}
    assert git(rules, "rev-list", "--count", "HEAD") == "1"
