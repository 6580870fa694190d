"""The article's case on the real SGLang, where it is at hand: two casts found, proven, committed.

`LABEL_AGENT_SGLANG` names a git checkout that holds the commit the made traces are of, and
`LABEL_AGENT_WHEELS` allows the wheel of another version.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import main
from agent.ruleset.codec import load_rules
from tests.checkouts import git
from tests.wheels import commit_wheel

SGLANG = os.environ.get("LABEL_AGENT_SGLANG", "")
COMMIT = "21c4fc6334d13cbc075504353b9abc3716cc069e"
RULES = Path("rules/builtin.toml")
SHARE = 8
"""Every rank of the made run holds an eighth."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """One rank of the made pair: folders `bf16` and `fp8`."""
    folder = tmp_path_factory.mktemp("pair")
    script, table = shared / "made" / "blog_pair.py", shared / "blog_table.json"
    subprocess.run([sys.executable, script, table, folder, "--ranks", "1"], check=True)
    return folder


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the built-in rules, those of the two casts taken out."""
    text = RULES.read_text(encoding="utf-8")
    parts = re.split(r"(?m)^(?=\[\[rule\]\])", text)
    cast = re.compile(r"^category = 'Cast(?:From|To)FP8'", re.MULTILINE)
    kept = [part for part in parts if not (part.startswith("[[rule]]") and cast.search(part))]
    assert len(kept) < len(parts)
    (tmp_path / "label-rules.toml").write_text("".join(kept), encoding="utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "user.name", "Ada Tester")
    git(tmp_path, "config", "user.email", "ada@example.invalid")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "rules")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def proposed(pair: Path, checkout: Path) -> None:
    sides = [str(pair / "fp8"), "--baseline", str(pair / "bf16")]
    main(["propose", *sides, "--repo", f"sglang={checkout}", "--model", "offline",
          "--accept", "validated"])  # fmt: skip


@pytest.mark.skipif(not SGLANG, reason="LABEL_AGENT_SGLANG is unset")
def test_the_two_casts_are_proven_committed_and_named_as_targets(
    pair: Path, workplace: Path, tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    checkout = tmp_path_factory.mktemp("at") / "sglang"
    git(checkout.parent, "clone", "-q", "--shared", "--no-checkout", SGLANG, str(checkout))
    git(checkout, "update-ref", "--no-deref", "HEAD", COMMIT)
    proposed(pair, checkout)
    capsys.readouterr()
    made = {rule.category: rule for rule in load_rules(workplace / "label-rules.toml").rules}
    read, write = made["CastFromFP8"].evidence[0], made["CastToFP8"].evidence[0]
    assert (read.path.rpartition("/")[2], read.lines) == ("aiter_backend.py", (1867, 1868))
    assert (read.guard, read.symbol) == (
        "self.kv_cache_dtype == fp8_dtype", "AiterAttnBackend.forward_extend",
    )  # fmt: skip
    assert (write.path.rpartition("/")[2], write.lines) == ("memory_pool.py", (1529, 1529))
    assert write.symbol == "MLATokenToKVPool.set_kv_buffer"
    assert {read.pin and read.pin.trace_match, write.pin and write.pin.trace_match} == {"exact"}
    main(["diff", str(pair / "bf16"), str(pair / "fp8"), "--json"])
    targets = {one["id"]: one for one in json.loads(capsys.readouterr().out)["targets"]}
    bounds = {name: one["bound_ns"] * SHARE for name, one in targets.items()}
    assert bounds == {"CastFromFP8": 6_392_000_000, "CastToFP8": 2_202_000_000}
    lines = [one["rules"][0]["evidence"][0]["lines"] for one in targets.values()]
    assert lines == [[1867, 1868], [1529, 1529]]


@pytest.mark.skipif(
    os.environ.get("LABEL_AGENT_WHEELS") != "1", reason="LABEL_AGENT_WHEELS is not 1"
)
def test_on_another_version_the_fingerprint_is_a_mismatch_and_the_level_lower(
    pair: Path, workplace: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wheel = tmp_path_factory.mktemp("wheel") / "sglang"
    wheel.mkdir()
    commit_wheel(wheel, "0.5.11")
    proposed(pair, wheel)
    rules = load_rules(workplace / "label-rules.toml").rules
    (read,) = [rule for rule in rules if rule.category == "CastFromFP8"]
    (entry,) = read.evidence
    assert entry.lines == (2159, 2160)
    assert entry.pin is not None
    assert entry.pin.trace_match == "mismatch"
