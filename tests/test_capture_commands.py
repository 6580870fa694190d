"""Every capture command of the pages is run, with the options of the real SGLang.

SGLang's wheel declares the options, the fields of a profile request and the variables, and brings
its profiler; the rest of it needs a GPU and is stood in for (`tests/capture`). Without the package
index, or a wheel downloaded before, these tests are skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.traces.formats import FORMATS
from tests import checkouts
from tests.capture import tools
from tests.capture.declared import fields_of, names_of, parser_of
from tests.capture.pages import (
    ROOT,
    Command,
    other_fences,
    shell_commands,
    spans,
    text_commands,
)
from tests.capture.workplace import Workplace
from tests.wheels import wheel_tree

DOCS = ROOT / "docs"
TUTORIAL, CAPTURING = DOCS / "tutorial.md", DOCS / "capturing.md"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
VERSIONS = ("0.5.10", "0.5.11")
PLAYED = VERSIONS[-1]
SOURCES = (
    "sglang/bench_serving.py",
    "sglang/profiler.py",
    "sglang/srt/environ.py",
    "sglang/srt/managers/io_struct.py",
    "sglang/srt/server_args.py",
)
MODULES = {
    "launch_server": "srt/server_args.py",
    "bench_serving": "bench_serving.py",
    "profiler": "profiler.py",
}
ELSEWHERE: dict[str, set[str]] = defaultdict(
    set,
    {
        "README.md": {"$"},
        "agent-benchmark.md": {"python"},
        "models.md": {"label-agent"},
        "proposals.md": {"label-agent"},
    },
)
"""What runs in `test_doc_examples`, one command a page; of README what make runs."""
LOAD = "python -m sglang.bench_serving"
RANKS = 8


def sources(version: str) -> dict[str, bytes]:
    tree = wheel_tree(version, SOURCES)
    return {name.removeprefix("sglang/"): text for name, text in tree.items()}


@pytest.fixture(params=[*VERSIONS, "21c4fc6334d1"])
def declared(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """SGLang as released before and after the commit that the pages name, and at that commit."""
    if request.param in VERSIONS:
        found = sources(request.param)
    elif checkout := os.environ.get("LABEL_AGENT_SGLANG"):
        found = {
            name.removeprefix("sglang/"): checkouts.git(
                Path(checkout), "show", f"{request.param}:python/{name}"
            ).encode()
            for name in SOURCES
        }
    else:
        pytest.skip("LABEL_AGENT_SGLANG is unset")
    for name, text in found.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text)
    return tmp_path


def test_sglang_declares_every_option_that_the_pages_give(declared: Path):
    calls = [found for command in captures() if (found := module_call(command.text))]
    assert {module for module, _ in calls} == set(MODULES)
    for module, arguments in calls:
        parser_of(declared / MODULES[module]).parse_args(arguments)


def test_an_option_that_sglang_does_not_declare_is_refused(declared: Path):
    parser = parser_of(declared / MODULES["launch_server"])
    for wrong in (["--kv-cache-type", "bf16"], ["--kv-cache-dtype", "fp7"], ["--tp", "many"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)


def test_sglang_knows_every_field_of_a_profile_request(declared: Path):
    known = fields_of(declared / "srt/managers/io_struct.py", "ProfileReqInput")
    bodies = [json.loads(found) for found in re.findall(r"-d '({[^']*})'", text_of(captures()))]
    asked = {
        field for body in bodies if "prompt" not in body and "text" not in body for field in body
    }
    named = {"start_step", "profile_prefix", "activities", "merge_profiles"}
    assert named <= set(re.findall(r"`([a-z_]+)`", CAPTURING.read_text(encoding="utf-8")))
    assert asked | named <= known


def test_sglang_knows_every_environment_variable(declared: Path):
    pages = "".join(page.read_text(encoding="utf-8") for page in (TUTORIAL, CAPTURING))
    variables = set(re.findall(r"SGLANG_[A-Z_]+", pages))
    assert len(variables) >= 3
    assert variables <= names_of(declared / "srt/environ.py")


@contextlib.contextmanager
def a_place(root: Path) -> Iterator[Workplace]:
    place = Workplace(root, sources(PLAYED))
    try:
        yield place
    finally:
        place.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    """The tutorial's first part, followed: both sides captured, and the repeats of section 7."""
    with a_place(tmp_path_factory.mktemp("tutorial")) as place:
        follow_tutorial(place)
        yield place


def follow_tutorial(place: Workplace) -> None:
    commands = [command.text for command in shell_commands(TUTORIAL)]
    (start,) = [text for text in commands if "launch_server" in text]
    (load,) = [text for text in commands if text.startswith(LOAD)]
    (ask,) = [text for text in commands if text.startswith("curl")]
    for command in commands[: commands.index(start)]:
        place.play(command)
    for side, dtype in (("bf16", "bf16"), ("fp8", "fp8_e4m3")):
        place.play(start.replace("bf16", dtype))
        place.play(load)
        for folder in (side, *(f"{side}-{repeat}" for repeat in (2, 3, 4))):
            place.play(ask.replace("/captures/bf16", f"/captures/{folder}"))
            place.play(load)


def test_the_tutorials_capture_leaves_a_file_for_each_rank(pair: Workplace):
    for folder in ("bf16", "fp8", "fp8-4"):
        names = pair.files(folder)
        assert [re.sub(r"^\d+\.\d+", "ID", name) for name in names] == [
            f"ID-TP-{rank}.trace.json.gz" for rank in range(RANKS)
        ]


def test_what_the_tutorial_captured_is_read_as_it_says(pair: Workplace):
    label = pair.play("label-agent label /captures/fp8")
    assert f"{RANKS} ranks" in label
    assert "!" not in label
    document = json.loads(pair.play("label-agent diff /captures/bf16 /captures/fp8 --json"))
    assert {row["id"] for row in document["ledger"]["introduced"]} == {"CastToFP8", "CastFromFP8"}
    assert document["comparable"]
    assert document["conclusive"]


def test_the_tutorials_other_commands_run_on_what_was_captured(pair: Workplace):
    text = TUTORIAL.read_text(encoding="utf-8")
    shown = re.findall(r"<!-- run(?: (\d))?: (.+?) -->", text)
    work = pair.folder / "label-agent-demo" / "new"
    assert len(shown) >= 8
    for code, command in shown:
        of_these = command.replace("../traces/", "/captures/")
        pair.play(f"cd {shlex.quote(str(work))} && {of_these}", code=int(code or 0))
    assert (work / "report.html").stat().st_size > 10_000


def test_the_tutorials_repeats_are_compared(pair: Workplace):
    (command,) = [one.text for one in shell_commands(TUTORIAL) if "--base-repeat" in one.text]
    said = pair.play(f"cd /captures && {command}")
    assert "4 against 4" in said
    assert "differences stand outside it" in said


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    """Every command of the page on capturing, in order; the load runs where the page says so."""
    with a_place(tmp_path_factory.mktemp("capturing")) as place:
        follow_capturing(place)
        yield place


def follow_capturing(place: Workplace) -> None:
    place.play("label-agent demo --folder demo && mv demo/tinyserve sglang")
    checkouts.commit_tree(place.folder / "aiter", {"README.md": b"A checkout.\n"}, "first")
    commands = [command.text for command in shell_commands(CAPTURING)]
    load = next(text for text in commands if text.startswith(LOAD))
    for command, after in zip(commands, [*commands[1:], ""], strict=True):
        place.play(command.replace("COMMAND", "true"))
        asked = re.search(r"num.steps\b", command) and LOAD not in command
        if asked and not after.startswith(LOAD):
            place.play(load)


def test_each_way_of_capturing_leaves_what_the_page_says(captured: Workplace):
    one = r"[\d.]+-TP-\d\.trace\.json\.gz"
    by_stage = r"[\d.]+-TP-\d-(?:EXTEND|DECODE)\.trace\.json\.gz"
    made = {
        "fp8": one,
        "fp8-stages": by_stage,
        "fp8-script": rf"[\d.]+(?:/(?:{one}|server_args\.json))?",
        "fp8-load": rf"[\d.]+(?:/{one})?",
        "fp8-between": one,
        "fp8-names": by_stage,
    }
    for folder, pattern in made.items():
        names = captured.files(folder)
        assert len(names) >= RANKS, folder
        assert [name for name in names if not re.fullmatch(pattern, name)] == [], folder


@pytest.mark.parametrize(
    "run", ["fp8", "fp8-stages", "fp8-script/*", "fp8-load/*", "fp8-between", "vllm", "fp8-names"]
)
def test_each_capture_is_read_rank_by_rank(captured: Workplace, run: str):
    document = json.loads(captured.play(f"label-agent label --json /captures/{run}"))
    stages = 2 if run in {"fp8-stages", "fp8-names"} else 1
    assert len(document["ranks"]) == RANKS * stages
    assert {warning["code"] for warning in document["warnings"]} <= {"TR045"}


def test_a_capture_by_stage_is_compared_by_stage(captured: Workplace):
    said = captured.play("label-agent diff /captures/fp8-stages /captures/fp8-stages --by stage")
    assert "=== DECODE" in said
    assert "=== EXTEND" in said


def test_the_capture_with_graphs_off_tells_where_kernels_come_from(captured: Workplace):
    """The checkout is the one whose kernels and frames the made traces have."""
    commands = [command.text for command in shell_commands(CAPTURING)]
    (propose,) = [text for text in commands if text.startswith("label-agent propose")]
    found = re.findall(r"^pending +(L\d) +(\w+)", captured.play(propose), re.MULTILINE)
    assert sorted(found) == [("L3", "MLA"), ("L4", "RoPE"), ("L4", "TopK")]
    document = json.loads(captured.play("label-agent label --json /captures/fp8-names"))
    assert {"CastFromFP8", "CastToFP8"} <= {row["id"] for row in document["categories"]}


def test_captures_of_other_profilers_are_read(captured: Workplace):
    for run in ("nsys.sqlite", "rocprof"):
        assert json.loads(captured.play(f"label-agent label --json /captures/{run}"))["categories"]


def test_the_programs_hints_are_commands_of_the_same_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The export that a report asks for is taken by the stand-ins that take the pages' commands."""
    monkeypatch.chdir(tmp_path)
    Path("FILE.nsys-rep").write_bytes(b"report")
    hints = " | ".join(one.export for one in FORMATS)
    called = set(re.findall(r"(?:nsys|rocprofv3) [^|,()]+", hints))
    assert {hint.split()[0] for hint in called} == {"nsys", "rocprofv3"}
    for hint in sorted(called):
        program, *arguments = hint.replace("COMMAND", "true").split()
        tools.PROGRAMS[program](arguments)


def test_the_stand_ins_refuse_what_the_vendors_do_not_document():
    wrong = (
        "nsys export --type excel FILE",
        "nsys profile --graph-trace=node true",
        "rocprofv3 --kernels --output-format csv -- true",
        "vllm serve MODEL --profile-config {}",
    )
    for program, *arguments in map(str.split, wrong):
        with pytest.raises(SystemExit):
            tools.PROGRAMS[program](arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_shows_a_shell_command_that_nothing_runs(page: Path):
    """The two pages are played, `run` blocks are generated; CI runs the targets of make."""
    played = page in {TUTORIAL, CAPTURING}
    assert played or not shell_commands(page)
    assert played or {one.text.split()[0] for one in text_commands(page)} <= ELSEWHERE[page.name]
    targets = re.findall(
        r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    known = {f"$ make {target}" for target in targets}
    for language, body in other_fences(page):
        assert language not in {"bash", "shell", "zsh"}
        assert language != "console" or set(body.split("\n")) <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_capture_command_in_running_text_is_part_of_one_that_is_run(page: Path):
    shown = [set(command.text.split()) for command in captures()]
    for span in spans(page):
        words = span.text.split()
        if words[0] in {"nsys", "rocprofv3", "vllm", "curl"} or "-m sglang" in span.text:
            assert any(set(words) <= command for command in shown), span


def captures() -> list[Command]:
    return [*shell_commands(TUTORIAL), *shell_commands(CAPTURING)]


def text_of(commands: list[Command]) -> str:
    return "\n".join(command.text for command in commands)


def module_call(command: str) -> tuple[str, list[str]] | None:
    """Give module and arguments of `python -m sglang.MODULE …`."""
    found = re.search(r"python -m sglang\.(\w+)(.*)", command)
    return (found[1], shlex.split(found[2])) if found else None
