"""`judge` and `verify` with checkouts that were not given, or under another name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.core.proposal_form import proposal_json
from agent.workflows.demo import prepare_demo
from tests.builders import proposal
from tests.cli.conftest import Run

LINE = json.dumps(proposal_json(proposal()))
PROPOSE = ("propose", "../traces/fp8", "--repo", "../tinyserve", "--model", "offline")


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    laid = prepare_demo(tmp_path / "demo")
    monkeypatch.chdir(laid.rules)
    return laid.root


def test_judge_without_a_checkout_says_which_one_is_missing(run: Run, demo: Path) -> None:
    (demo / "p.jsonl").write_text(LINE)
    done = run("judge", demo / "p.jsonl")
    assert done.code == 1
    assert "E_REPO_UNKNOWN no checkout is named 'sglang' (there is: none)" in done.out
    assert "hint: --repo sglang=DIR" in done.out
    other = run("judge", demo / "p.jsonl", "--repo", demo / "tinyserve")
    assert "E_REPO_UNKNOWN no checkout is named 'sglang' (there is: tinyserve)" in other.out


@pytest.mark.parametrize(("lines", "said"), [(1, "1 proposal: 0"), (2, "2 proposals: 0")])
def test_judge_counts_its_proposals(run: Run, demo: Path, lines: int, said: str) -> None:
    (demo / "p.jsonl").write_text(f"{LINE}\n" * lines)
    assert run("judge", demo / "p.jsonl").out.splitlines()[-1].startswith(said)


def test_judge_on_a_journal_says_that_review_reads_it(run: Run, demo: Path) -> None:
    run(*PROPOSE)
    done = run("judge", demo / "rules" / ".label-agent" / "journal.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "RV021 this is the journal that propose keeps" in done.err
    assert "label-agent review" in done.err


def test_verify_against_a_checkout_no_rule_cites_is_an_error(run: Run, demo: Path) -> None:
    done = run("verify", "--repo", demo / "tinyserve")
    assert (done.code, done.out) == (2, "")
    assert 'VF003 no rule cites a checkout called "tinyserve"; cited: aiter, sglang' in done.err
    assert f"hint: give it the name the rules use: --repo aiter={demo / 'tinyserve'}" in done.err


def test_verify_names_a_checkout_that_no_rule_cites_beside_others(run: Run, demo: Path) -> None:
    run(*PROPOSE, "--accept", "validated")
    tree = demo / "tinyserve"
    done = run("verify", "--repo", tree, "--repo", f"other={tree}")
    assert done.code == 0
    first, second, *_ = done.out.splitlines()
    assert first.startswith("against tinyserve@")
    assert "no rule cites" not in first
    assert second.startswith("against other@")
    assert second.endswith(", which no rule cites")
