"""`propose` against a scripted server: nothing is asked twice, whatever ends the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent.core.rules import RuleId
from agent.review.journal import Journal, journal_path
from agent.ruleset.codec import load_rules
from agent.workflows.demo import prepare_demo
from tests.cli.terminals import ROOT, Terminal
from tests.unit.proposing.model_server import Answer, ModelServer, completion, serving
from tests.unit.review.worktrees import RULES, git

SUBMIT = {
    "do": "submit_proposal",
    "category": "MLA",
    "kernel": "(?:^|::| )tinyserve::latent_dec_a8w8_qh16_g16$",
    "op": "",
    "input_dtypes": [],
    "candidates": [1],
    "evidence": [],
    "overrides": [],
    "rationale": "the table names it \x1b[31m[/bold]",
}
HANG = Answer(hang=True)


def says(**action: Any) -> Answer:
    return completion(json.dumps({"note": "n", "action": action}))


def gives_up(number: int) -> Answer:
    return says(do="abstain", reason=f"reason {number}")


LOOK = says(do="search_source", text="latent_decode")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    laid = prepare_demo(tmp_path / "demo")
    monkeypatch.chdir(laid.rules)
    return laid.rules


def _arguments(server: ModelServer) -> tuple[str, ...]:
    return (
        *("propose", "../traces/fp8", "--baseline", "../traces/bf16", "--repo", "../tinyserve"),
        *("--model", "openai:m", "--base-url", server.url, "--json"),
    )


def _start(server: ModelServer, *options: str) -> subprocess.Popen[str]:
    arguments = [*_arguments(server), *options]
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from agent.cli import run; run()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
    )


def _ended(child: subprocess.Popen[str]) -> tuple[int, dict[str, Any], str]:
    out, err = child.communicate(timeout=60)
    assert "Traceback" not in err, err
    return child.returncode, json.loads(out) if out else {}, err


def _wait_for(server: ModelServer, requests: int) -> None:
    deadline = time.monotonic() + 30
    while len(server.sent) < requests:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _answers(document: dict[str, Any]) -> list[str]:
    return [family["answer"] for family in document["families"]]


def test_a_rule_says_who_proposed_it(folder: Path) -> None:
    script = [LOOK, says(**SUBMIT), *map(gives_up, range(3))]
    with serving(script) as server:
        _, document, err = _ended(_start(server, "--accept", "validated", "--price", "1000/2000"))
    assert document["usage"] == {
        "calls": 5,
        "prompt_tokens": 35,
        "completion_tokens": 15,
        "price": "0.0650",
    }
    assert _answers(document) == ["admitted", "abstained", "abstained", "abstained"]
    rule = load_rules(folder / RULES).by_id[RuleId("mla.latent-dec-a8w8-qh16-g16")]
    assert rule.proposed_by is not None
    assert (rule.proposed_by.provider, rule.proposed_by.model) == ("openai", "m")
    assert rule.proposed_by.model_returned == "served-model"
    assert rule.proposed_by.host.startswith("127.0.0.1")
    assert "/v1" not in rule.proposed_by.host
    assert len(rule.proposed_by.prompt_digest) == 64
    assert "Proposed by: openai:served-model at 127.0.0.1" in git(
        folder, "log", "-1", "--format=%B"
    )
    assert "\x1b" not in err
    assert document["proposals"][0]["decision"] == "accepted"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_ended_process_asks_nothing_twice(folder: Path, how: signal.Signals) -> None:
    with serving([LOOK, says(**SUBMIT), HANG]) as server:
        child = _start(server)
        _wait_for(server, 3)
        child.send_signal(how)
        _, err = child.communicate(timeout=30)
        assert child.returncode == (130 if how is signal.SIGINT else -how)
        assert ("interrupted; run it again" in err) == (how is signal.SIGINT)
        answered = server.sent[:2]
    with serving([*map(gives_up, range(3))]) as server:
        code, document, _ = _ended(_start(server))
        assert len(server.sent) == 3
        assert not any(body in answered for body in server.sent)
    assert (code, document["kept"]) == (0, 1)
    assert _answers(document) == ["admitted", "abstained", "abstained", "abstained"]
    with serving([]) as server:
        assert _ended(_start(server, "--accept", "validated"))[1]["proposals"][0]["commit"]
        assert server.sent == []
    assert git(folder, "log", "--format=%s", "-1") == "Add rule mla.latent-dec-a8w8-qh16-g16"


def test_ctrl_c_on_a_terminal_leaves_nothing_of_the_moving_line(folder: Path) -> None:
    with serving([HANG]) as server:
        program = ("-c", "from agent.cli import run; run()", *_arguments(server))
        terminal = Terminal(program, cwd=folder, PYTHONPATH=str(ROOT), NO_PROXY="127.0.0.1")
        terminal.wait_for(b": asking")
        terminal.interrupt()
        terminal.end(130)
    last = terminal.seen.decode().split("\r\x1b[K")[-1]
    assert last.startswith("interrupted; run it again: what was answered is kept")
    assert last.count("\n") == 1


def test_json_says_who_was_asked_and_of_which_run(folder: Path) -> None:
    with serving([*map(gives_up, range(4))]) as server:
        _, document, _ = _ended(_start(server))
        host = f"127.0.0.1:{server.port}"
    told = document["origin"]
    assert (told["provider"], told["model"], told["host"]) == ("openai", "m", host)
    assert sorted(told) == ["date", "host", "model", "provider", "run", "tool"]


def test_why_asking_ended_is_said_once_with_what_to_do(folder: Path) -> None:
    with serving([Answer(401, {"error": {"message": "no"}})]) as server:
        arguments = [one for one in _arguments(server) if one != "--json"]
        program = [sys.executable, "-m", "agent", *arguments]
        environment = {**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2
    assert done.stdout.count("ML011 the key in OPENAI_API_KEY is not accepted") == 1
    assert done.stdout.count("asking had ended (ML011)") == 3
    assert done.stdout.splitlines()[-1] == (
        "hint: check OPENAI_API_KEY, and that it belongs to this server"
    )


def test_replies_are_on_the_disk_before_the_next_request(folder: Path) -> None:
    with serving([LOOK, HANG]) as server:
        child = _start(server)
        _wait_for(server, 2)
        kinds = [record.kind for record in Journal(journal_path(folder)).records()]
        child.kill()
        child.communicate()
    assert kinds == ["run", "turn"]


def test_no_cache_asks_again(folder: Path) -> None:
    for _ in range(2):
        with serving([*map(gives_up, range(4))]) as server:
            _ended(_start(server, "--no-cache"))
            assert len(server.sent) == 4


def test_a_dry_run_shows_exactly_what_is_sent_and_keeps_nothing(folder: Path) -> None:
    with serving([*map(gives_up, range(4))]) as server:
        _, shown, _ = _ended(_start(server, "--dry-run"))
        assert server.sent == []
        assert not (folder / ".label-agent").exists()
        _ended(_start(server))
        assert server.sent == shown["requests"]


def test_names_only_sends_no_text_of_the_checkout(folder: Path) -> None:
    with serving([*map(gives_up, range(4))]) as server:
        _ended(_start(server, "--names-only"))
        sent = json.dumps(server.sent)
    assert "latent_dec_a8w8" in sent
    assert "latent_decode_stage1_asm_fwd(q" not in sent
    assert "self.kv_cache_dtype ==" not in sent


@pytest.mark.parametrize(
    ("script", "options", "answers", "code"),
    [
        ([Answer(401, {"error": {"message": "no"}})], (), ["unasked"] * 4, 2),
        ([gives_up(0), Answer(401, {"error": {}})], (), ["abstained", *["unasked"] * 3], 1),
        ([gives_up(0)], ("--max-calls", "1"), ["abstained", *["unasked"] * 3], 1),
        ([LOOK, *[gives_up(0)] * 3], ("--max-turns", "1"), ["failed", *["abstained"] * 3], 1),
        (
            [completion("no"), completion(""), *[gives_up(0)] * 3],
            (),
            ["failed", *["abstained"] * 3],
            1,
        ),
    ],
    ids=["refused at once", "refused later", "calls used up", "turns used up", "unusable replies"],
)
def test_what_ends_asking_is_said(folder: Path, script, options, answers, code) -> None:
    with serving(script) as server:
        done, document, _ = _ended(_start(server, *options))
    assert (_answers(document), done) == (answers, code)
    assert all(family["reason"] for family in document["families"])
    assert git(folder, "status", "--porcelain") == ""


def test_rules_accepted_meanwhile_settle_a_kept_proposal(folder: Path) -> None:
    """What the model proposed is judged again under the rules of the day."""
    with serving([says(**SUBMIT), *map(gives_up, range(3))]) as server:
        assert _ended(_start(server))[1]["kept"] == 1
    (folder / RULES).write_text(
        "schema = 1\nversion = 1\nextends = 'builtin@1'\n\n[[rule]]\nid = 'mine'\n"
        "category = 'MLA'\nkernel = 'latent_dec_a8w8'\ngrade = 'vendor'\n"
    )
    git(folder, "add", RULES)
    git(folder, "commit", "-qm", "mine")
    with serving([*map(gives_up, range(3))]) as server:
        _, document, _ = _ended(_start(server, "--accept", "validated"))
    assert document["kept"] == 0
    assert git(folder, "log", "--format=%s", "-1") == "mine"
