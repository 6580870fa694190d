"""Write the generated parts of the documentation, or check that they are fresh.

usage: python docs/generate.py [--check]

- a block `<!-- run: COMMAND -->` … `<!-- end -->` in README.md or docs/*.md gets the real output of
  COMMAND, run in the rules folder of a fresh demo; `<!-- run 1: COMMAND -->` exits with 1;
- `<!-- new folder -->` at the head of a page runs its blocks in a new git repository beside it;
- a block `<!-- python -->` … `<!-- end -->` keeps its Python code, which is run after that of the
  blocks above it, and gets what it printed;
- docs/commands.md is the help of every command;
- the rule pages and the coverage table come from `generate_rules.py`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = re.compile(
    r"<!-- run(?: (?P<code>\d))?: (?P<command>[^\n]+?) -->\n.*?<!-- end -->", re.DOTALL
)
PYTHON = re.compile(r"<!-- python -->\n```python\n(?P<code>.*?)\n```\n.*?<!-- end -->", re.DOTALL)
NEW_FOLDER = "<!-- new folder -->"
COMMANDS = (
    "demo",
    "label",
    "propose",
    "review",
    "judge",
    "diff",
    "verify",
    "rules",
    "rules lint",
    "rules list",
    "rules show",
    "rules test",
    "rules import",
    "rules upgrade",
)
FIXED = {
    "COLUMNS": "80",
    "NO_COLOR": "1",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00+00:00",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00+00:00",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C.UTF-8",
}


def output_of(command: str, code: int = 0) -> str:
    """Run one command in this process and give its stdout; `| head -N` keeps the first lines.

    Raises:
        RuntimeError: it did not exit with `code`.
    """
    from agent.cli import main

    command, _, limit = command.partition(" | head -")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        done = main(shlex.split(command)[1:])
    if done != code:
        raise RuntimeError(f"{command}: exit {done}, not {code}: {err.getvalue()}")
    lines = [line.rstrip() for line in out.getvalue().strip("\n").splitlines()]
    return "\n".join(lines[: int(limit)] if limit else lines)


def filled(text: str) -> str:
    """Give a document with the output of each of its `run` blocks."""

    def block(match: re.Match[str]) -> str:
        command, code = match["command"], match["code"]
        printed = output_of(command, int(code or 0))
        console = "\n".join(["```console", f"$ {command}", *([printed] if printed else []), "```"])
        return f"<!-- run{f' {code}' if code else ''}: {command} -->\n{console}\n<!-- end -->"

    return RUN.sub(block, text)


def played(text: str) -> str:
    """Give a document with what each of its `python` blocks printed."""
    names: dict[str, object] = {}

    def block(match: re.Match[str]) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(match["code"], names)
        shown = out.getvalue().strip("\n")
        printed = f"```text\n{shown}\n```\n" if shown else ""
        return f"<!-- python -->\n```python\n{match['code']}\n```\n{printed}<!-- end -->"

    return PYTHON.sub(block, text)


def fresh(text: str, root: Path) -> str:
    """Give a document with the output of all its blocks; `root` is the demo's folder."""
    folder = root / "rules"
    if NEW_FOLDER in text:
        folder = root / "new"
        for command in ("init -q", "config user.name you", "config user.email you@example.org"):
            folder.mkdir(exist_ok=True)
            subprocess.run(["git", *command.split()], cwd=folder, check=True)
    with contextlib.chdir(folder):
        return played(filled(text))


def commands_page() -> str:
    """Give the help of every command as one page."""
    shells = (
        'A shell completes commands and options after\n`eval "$(_LABEL_AGENT_COMPLETE=bash_source'
        ' label-agent)"`; `zsh_source` and `fish_source` are for\nthose shells.'
    )
    parts = [f"# Commands\n\nThe help texts of the program, generated. {shells}\n"]
    parts.extend(
        f"## {name}\n\n```text\n{output_of(f'label-agent {name} --help')}\n```\n"
        for name in COMMANDS
    )
    return "\n".join(parts)


@contextlib.contextmanager
def demo_workspace() -> Iterator[Path]:
    """Make a fresh demo, in a fixed environment, and give its folder."""
    from agent.cli import main

    before = dict(os.environ)
    os.environ.update(FIXED)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "label-agent-demo"
        quiet = io.StringIO()
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            main(["demo", "--folder", str(root)])
        try:
            yield root
        finally:
            os.environ.clear()
            os.environ.update(before)


def generated() -> dict[Path, str]:
    """Give every generated document with its fresh text."""
    import generate_rules

    texts = {ROOT / path: text for path, text in generate_rules.generated_blocks().items()}
    with demo_workspace() as root:
        texts[ROOT / "docs" / "commands.md"] = commands_page()
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            text = texts.get(path) or path.read_text(encoding="utf-8")
            if RUN.search(text) or PYTHON.search(text):
                texts[path] = fresh(text, root)
    return texts


def main(arguments: list[str]) -> int:
    """Write what is stale; with `--check`, name it and fail instead."""
    stale = []
    for path, text in sorted(generated().items()):
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{'stale' if '--check' in arguments else 'wrote'}: {path.relative_to(ROOT)}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
