"""Instructions in every foreign text of a run, through a real server: nothing leaves its bounds.

One run carries one order in all `PLACES` at once, also where the model obeys it and repeats it.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from agent.cli import main
from agent.core.text import is_plain
from agent.ruleset.codec import load_rules
from agent.workflows.demo import prepare_demo
from tests.cli.terminals import ROOT, Terminal
from tests.unit.proposing.model_server import Answer, ModelServer, completion, serving
from tests.unit.proposing.test_hostile import ORDERS
from tests.unit.review.worktrees import RULES, git

pytestmark = pytest.mark.block_network(allowed_hosts=["127.0.0.1"])

PLACES = (
    *("kernel name", "op", "stack", "device name", "trace name", "baseline name"),
    *("comment", "string", "file name", "rule file", "model reply", "pattern and reason"),
)
KERNEL = "_rotate_pairs_inplace"
FILE = "python/tinyserve/layers/rotary_embedding.py"
OWN_SEQUENCES = re.compile("\r\x1b\\[K")


@dataclass(frozen=True)
class World:
    """The demo's checkout, traces and rule repository, all of which carry one order."""

    root: Path
    order: str

    @property
    def rules(self) -> Path:
        return self.root / "rules"

    @property
    def checkout(self) -> Path:
        return self.root / "tinyserve"

    def arguments(self, server: ModelServer) -> tuple[str, ...]:
        return (
            *("propose", "../new.json", "--baseline", "../base.json", "--repo", "../tinyserve"),
            *("--model", "openai:m", "--base-url", server.url),
        )

    def files(self) -> dict[str, bytes]:
        """Everything but the rule file, the journal and git's own."""
        apart = {".git", ".label-agent", RULES}
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not apart & set(path.relative_to(self.root).parts)
        }


@pytest.fixture(params=ORDERS, ids=range(len(ORDERS)))
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(prepare_demo(tmp_path / "demo").root, request.param)
    _plant_in_checkout(made)
    for name, side, kernel in (("new", "fp8", "own_kernel"), ("base", "bf16", "old_kernel")):
        packed = (made.root / "traces" / side / "made-TP-0.trace.json.gz").read_bytes()
        planted = _planted(json.loads(gzip.decompress(packed)), made.order, kernel)
        (made.root / f"{name}.json").write_text(json.dumps(planted))
    _plant_in_rules(made)
    monkeypatch.chdir(made.rules)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return made


def _plant_in_checkout(world: World) -> None:
    """Put the order beside the definition, at the end of each file, and into a file's name."""
    lines = re.split(r"[\r\n]", world.order)
    tail = "".join(f"# {line}\n" for line in lines) + f"ORDER = {world.order!r}\n"
    for path in sorted((world.checkout / "python").rglob("*.py")):
        path.write_text(path.read_text(encoding="utf-8") + tail, encoding="utf-8")
    marked = (world.checkout / FILE).read_text(encoding="utf-8")
    at = f"def {KERNEL}("
    marked = marked.replace(at, f"{at}  # {lines[0]}")
    (world.checkout / FILE).write_text(marked, encoding="utf-8")
    named = re.sub(r"[/\0]", "_", world.order)[:80]
    (world.checkout / f"{named}.py").write_text(
        f"def rotate():\n    pass\n{tail}", encoding="utf-8"
    )
    git(world.checkout, "add", "--all")
    git(world.checkout, "commit", "-qm", "planted")


def _planted(trace: dict[str, Any], order: str, kernel: str) -> dict[str, Any]:
    """Add launches of a kernel, an op, a frame and metadata that carry the order."""
    at = {"ph": "X", "pid": 1, "tid": 7, "ts": 1.0}
    ids = {"correlation": 77_777, "External id": 9}
    trace["traceEvents"] += [
        {**at, "cat": "python_function", "name": f"{order}(1): {order}", "dur": 900, "args": {}},
        {**at, "cat": "cpu_op", "name": order, "ts": 2.0, "dur": 500, "args": {"External id": 9}},
        {**at, "cat": "cuda_runtime", "name": "hipLaunchKernel", "ts": 3.0, "dur": 5, "args": ids},
        *(
            {**at, "cat": "kernel", "name": name, "ts": start, "dur": 45_000}
            | {"args": {**ids, "device": 2, "stream": 3}}
            for start, name in (
                (90_000.0, f"{order} {kernel}"),
                (140_000.0, f"{order.replace(' ', '_')}_{kernel}"),
            )
        ),
    ]
    trace["traceName"] = order
    trace["deviceProperties"][0]["name"] = f"{order} MI308X"
    trace["distributedInfo"][order] = order
    return trace


def _plant_in_rules(world: World) -> None:
    document = tomlkit.document()
    document.update({"schema": 1, "version": 1, "extends": "builtin@1"})
    document["category"] = [{"id": "Own", "title": world.order}]
    rule = {"id": "own.kernel", "category": "Own", "kernel": "own_kernel_of_mine"}
    document["rule"] = [{**rule, "grade": "vendor", "note": world.order}]
    (world.rules / RULES).write_text(tomlkit.dumps(document), encoding="utf-8")
    git(world.rules, "add", RULES)
    git(world.rules, "commit", "-qm", "rules")


def _script(order: str) -> Any:
    """Obey the order as far as a model can: say it, search it, and write it into a proposal."""

    def answer(body: dict[str, Any]) -> Answer:
        case, turn = body["messages"][1]["content"], len(body["messages"]) // 2
        if f"  {KERNEL}\n" not in case:
            given_up = json.dumps({"note": order, "action": {"do": "abstain", "reason": order}})
            return completion(order if turn == 1 else given_up)
        actions: dict[int, dict[str, Any]] = {
            1: {"do": "search_source", "text": "ORDER"},
            2: {"do": "read_source", "repo": "tinyserve", "path": FILE, "first": 1, "last": 60},
            3: {"do": "test_pattern", "kernel": order},
        }
        submit = {"do": "submit_proposal", "category": "RoPE", "candidates": [1]}
        action = actions.get(turn, {**submit, "rationale": order})
        return completion(json.dumps({"note": order, "action": action}))

    return answer


def test_there_are_enough_of_them() -> None:
    assert len(ORDERS) * len(PLACES) >= 60


def test_orders_everywhere_change_nothing_but_one_proven_rule(
    world: World, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    before, head = world.files(), git(world.checkout, "rev-parse", "HEAD")
    with serving(_script(world.order)) as server:
        code = main([*world.arguments(server), "--accept", "validated"])
    shown = b"".join(capfdbinary.readouterr()).decode()
    assert "Traceback" not in shown
    assert code in {0, 1}, shown
    _check_terminal(shown)
    _check_sent(server, world.order)
    _check_commits(world)
    assert world.files() == before
    assert git(world.checkout, "rev-parse", "HEAD") == head
    assert git(world.checkout, "status", "--porcelain") == ""


@pytest.mark.parametrize("world", ORDERS[5:8], ids=("escapes", "bidi", "line ends"), indirect=True)
def test_a_review_on_a_terminal_shows_orders_as_text(world: World) -> None:
    with serving(_script(world.order)) as server:
        program = ("-c", "from agent.cli import run; run()", *world.arguments(server))
        terminal = Terminal(
            program, cwd=world.rules, PYTHONPATH=str(ROOT), NO_PROXY="127.0.0.1", NO_COLOR="1"
        )
        terminal.answer("s\n")
        out = terminal.end()
    seen = OWN_SEQUENCES.sub("", terminal.seen.decode().replace("\0", "")).replace("\r\n", "\n")
    _check_terminal(seen + out)
    assert git(world.rules, "rev-list", "--count", "HEAD") == "2"


def _check_terminal(shown: str) -> None:
    assert [line for line in shown.split("\n") if not is_plain(line)] == []


def _check_sent(server: ModelServer, order: str) -> None:
    """What is foreign stands in marked lines of user messages, or in the model's own words."""
    hidden = [part for part in re.split(r"[\r\n]", order) if len(part) > 12]
    assert 6 <= len(server.sent) <= 16
    for body in server.sent:
        for said in body["messages"]:
            if said["role"] == "assistant":
                continue
            for line in said["content"].split("\n"):
                assert is_plain(line)
                marked = line.startswith(("| ", "- Own: "))
                assert marked or not any(part in line for part in hidden), line


def _check_commits(world: World) -> None:
    subjects = git(world.rules, "log", "--format=%s").splitlines()
    assert subjects[:2] == ["Add rule rope.rotate-pairs-inplace", "rules"]
    assert len(subjects) == 3
    assert git(world.rules, "show", "--format=", "--name-only", "HEAD") == RULES
    message = git(world.rules, "log", "-1", "--format=%B")
    assert [line for line in message.split("\n") if not is_plain(line)] == []
    assert git(world.rules, "status", "--porcelain") == ""
    own = {str(rule.id): str(rule.category) for rule in load_rules(world.rules / RULES).rules}
    assert own["rope.rotate-pairs-inplace"] == "RoPE"
