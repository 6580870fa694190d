"""`propose` and `review` as a user runs them, on the demo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import main
from agent.workflows.demo import prepare_demo
from tests.cli.terminals import EOF_KEY, Terminal
from tests.unit.review.worktrees import RULES, git

PROPOSE = (
    *("propose", "../traces/fp8", "--baseline", "../traces/bf16"),
    *("--repo", "../tinyserve", "--model", "offline"),
)
RUN = ("-c", "from agent.cli import run; run()")
IDS = [
    "mla.latent-dec-a8w8-qh16-g16",
    "cast-from-fp8.direct-copy-kernel-cuda",
    "topk.expert-gate-pick",
    "rope.rotate-pairs-inplace",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    laid = prepare_demo(tmp_path / "demo")
    monkeypatch.chdir(laid.rules)
    return laid.rules


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_in_a_pipe_proposals_are_kept_and_it_says_how_to_go_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*PROPOSE])
    assert "4 proposals kept; go on with: label-agent review" in capsys.readouterr().out
    listed = _json(capsys, "review")
    assert listed["kept"] == 4
    assert git(folder, "log", "--format=%s") == "A place for rules"
    assert git(folder, "status", "--porcelain") == ""


def test_an_enclosing_repository_is_named_before_it_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    deeper = [part.replace("../", "../../") for part in PROPOSE]
    written = (
        f"accepted rules go into {folder / 'label-rules.toml'} (new), committed with git there"
    )
    for command in (deeper, [*deeper, "--accept", "validated"]):
        main(command)
        assert capsys.readouterr().err.startswith(written)
    monkeypatch.chdir(folder)
    main([*PROPOSE])
    assert "committed with git there" not in capsys.readouterr().err


def test_accept_validated_commits_each_rule(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = _json(capsys, *PROPOSE, "--accept", "validated")
    accepted = [one for one in done["proposals"] if one["decision"] == "accepted"]  # type: ignore[attr-defined]
    assert [one["rule"]["id"] for one in accepted] == IDS
    assert git(folder, "log", "--format=%s").split("\n") == [
        *(f"Add rule {rule_id}" for rule_id in reversed(IDS)),
        "A place for rules",
    ]
    assert all(one["verdict"] == "admitted" and one["level"] in {"L3", "L4"} for one in accepted)
    assert main(["review"]) == 0


def test_a_second_propose_asks_about_nothing_that_was_settled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*PROPOSE, "--accept", "validated"])
    capsys.readouterr()
    again = _json(capsys, *PROPOSE, "--accept", "validated")
    assert [one["decision"] for one in again["proposals"]].count("accepted") == 0  # type: ignore[attr-defined]
    assert git(folder, "rev-list", "--count", "HEAD") == "5"


def test_keys_typed_at_the_real_command(folder: Path) -> None:
    subprocess.run([sys.executable, *RUN, *PROPOSE], cwd=folder, check=False, capture_output=True)
    terminal = Terminal((*RUN, "review"), folder)
    terminal.answer("\n", "a\n", "r\n")
    terminal.answer("a helper\n", prompt=b"reason: ")
    terminal.answer(EOF_KEY)
    out = terminal.end()
    assert "1 accepted, 1 rejected, 2 pending" in out
    assert git(folder, "log", "--format=%s", "-1") == f"Add rule {IDS[0]}"
    assert b"tinyserve@" in terminal.seen
    terminal = Terminal((*RUN, "review"), folder)
    terminal.answer("a\n", "q\n")
    assert "2 proposals: 1 accepted, 1 pending" in terminal.end()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("propose", "../traces/fp8"), "RV022"),
        (("propose", "../traces/fp8", "--repo", "nowhere", "--model", "offline"), "SC001"),
        (("propose", "nowhere", "--repo", "../tinyserve", "--model", "offline"), "TR"),
        ((*PROPOSE, "--min-share", "2"), "RV022"),
        ((*PROPOSE, "--context", "x"), "RV018"),
        ((*PROPOSE, "--names", "nowhere"), "RV020"),
        ((*PROPOSE, "--rules", "nowhere"), "RS001"),
        ((*PROPOSE, "--accept", "everything"), "CL001"),
        (("propose", "../traces/fp8", "--repo", "r", "--model", "openai"), "ML001"),
        (("propose", "../traces/fp8", "--repo", "r", "--model", "openai:x"), "ML"),
        ((*PROPOSE, "--max-turns", "0"), "CL001"),
        ((*PROPOSE, "--price", "cheap"), "RV022"),
        ((*PROPOSE, "--price", "1"), "RV022"),
        ((*PROPOSE, "--price", "-1/NaN"), "RV022"),
        ((*PROPOSE, "--deadline", "soon"), "CL001"),
        (("review", "--rules", "nowhere"), "RS001"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: str
) -> None:
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert (out, "Traceback" in err) == ("", False)
    assert code in err.splitlines()[0]
    assert not (folder / RULES).exists()
    assert git(folder, "status", "--porcelain") == ""


@pytest.mark.parametrize("content", [b"{}\n{}\n", b"\x00\xff\n\n"])
def test_a_damaged_journal_is_named_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (folder / ".label-agent").mkdir()
    (folder / ".label-agent/journal.jsonl").write_bytes(content)
    assert main(["review"]) == 2
    assert "journal.jsonl:1: JR003" in capsys.readouterr().err


def test_outside_a_repository_accepting_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["propose", "t", "--repo", "r", "--accept", "validated", "--model", "offline"]) == 2
    assert "RV001" in capsys.readouterr().err
