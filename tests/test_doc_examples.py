"""What the documentation shows is what happens: every command and every piece of Python is run."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from agent.cli import main
from tests import checkouts
from tests.capture.pages import other_fences, text_commands
from tests.replay import runs
from tests.replay.cassettes import MODEL

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("decisions/*.md")])
LINK = re.compile(r"\]\((?!https?:|#)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)]*))?\)")


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def demo(generate: ModuleType) -> Iterator[Path]:
    with generate.demo_workspace() as root:
        yield root


def test_the_tutorial_does_what_it_shows(generate: ModuleType, demo: Path):
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    assert len(generate.RUN.findall(text)) >= 8
    assert masked(generate.fresh(text, demo)) == masked(text)


def test_the_python_page_does_what_it_shows(generate: ModuleType, demo: Path):
    text = (DOCS / "python-api.md").read_text(encoding="utf-8")
    assert len(generate.PYTHON.findall(text)) >= 6
    assert generate.fresh(text, demo) == text


def test_the_data_frames_of_the_python_page_are_made(demo: Path):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    text = (DOCS / "python-api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)\n```", text, re.DOTALL)
    frames = next(at for at, block in enumerate(blocks) if "to_pandas" in block)
    out, names = io.StringIO(), {}
    with contextlib.chdir(demo / "rules"), contextlib.redirect_stdout(out):
        for block in blocks[: frames + 1]:
            exec(block, names)
    assert re.search(r"CastToFP8 +2884850\n", out.getvalue())
    assert out.getvalue().endswith("\n3\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path):
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        target = page if not link["path"] else (page.parent / link["path"]).resolve()
        assert target.exists(), f"{page.name}: {link[0]}"
        if link["anchor"] and target.suffix == ".md":
            assert link["anchor"] in anchors(target), f"{page.name}: {link[0]}"


def test_every_page_can_be_reached_from_the_readme():
    reached, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        links = LINK.finditer(page.read_text(encoding="utf-8"))
        left += [(page.parent / link["path"]).resolve() for link in links if link["path"]]
    assert sorted(page.name for page in DOCS.glob("*.md") if page not in reached) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_in_running_text_has_the_options_it_is_shown_with(page: Path):
    helps = (DOCS / "commands.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([\w ]+)\n(.*?)(?=^## |\Z)", helps, re.MULTILINE | re.DOTALL))
    for span in re.findall(r"`label-agent ([^`]+)`", page.read_text(encoding="utf-8")):
        words = span.replace("\n", " ").split()
        name = " ".join(words[:2]) if words[0] == "rules" else words[0]
        assert name in sections, span
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", span):
            assert option in sections[name], span


def test_the_command_of_the_page_on_models_is_the_one_that_was_recorded():
    (command,) = text_commands(DOCS / "models.md")
    *asked, json_form = runs._asked(f"openai:{MODEL}")
    pair = ["../traces/fp8", "--baseline", "../traces/bf16"]
    assert shlex.split(command.text) == ["label-agent", "propose", *pair, *asked]
    assert json_form == "--json"


def test_the_command_of_the_page_on_proposals_judges_the_proposal_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The checkout is no clone of SGLang, so that the page's proposal is rejected, and for that."""
    page = DOCS / "proposals.md"
    (command,) = text_commands(page)
    (shown,) = (body for language, body in other_fences(page) if language == "json")
    (tmp_path / "proposals.jsonl").write_text(json.dumps(json.loads(shown)), encoding="utf-8")
    names = "kernel_name\tcategory\n_fwd_grouped_kernel_stage1\tAttention\n"
    (tmp_path / "names.tsv").write_text(names, encoding="utf-8")
    event = {"ph": "X", "cat": "kernel", "name": "_fwd_grouped_kernel_stage1", "ts": 1, "dur": 2}
    trace = {"traceEvents": [{**event, "pid": 0, "tid": 0, "args": {"device": 0, "stream": 0}}]}
    (tmp_path / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    checkouts.commit_tree(tmp_path / "sglang", {"python/x.py": b"def f(): pass\n"}, "first")
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(command.text)
    assert (program, main(arguments)) == ("label-agent", 1)
    said = capsys.readouterr().out
    assert "21c4fc6334d13cbc075504353b9abc3716cc069e" in said
    assert said.endswith("1 proposal: 0 admitted, 1 rejected\n")


def test_the_benchmark_takes_the_options_its_page_gives():
    (command,) = text_commands(DOCS / "agent-benchmark.md")
    program, script, *arguments = shlex.split(command.text)
    asked = [sys.executable, script, "--help"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    options = {argument for argument in arguments if argument.startswith("--")}
    assert program == "python"
    assert options <= set(re.findall(r"--[a-z-]+", done.stdout))


def masked(text: str) -> str:
    """Hide what any change of the built-in rules changes; `make docs-check` compares it all."""
    text = re.sub(r"digest [0-9a-f]{12}", "digest", text)
    return re.sub(r"builtin@\d+(?::\d+)?", "builtin", text)


def anchors(page: Path) -> set[str]:
    """Give the anchors that GitHub makes of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
