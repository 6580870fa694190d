"""`demo`: lay out a folder with a serving checkout, a pair of traces and a place for rules."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from agent.bundled import bundled_folder
from agent.errors import UsageError

MARKER = ".label-agent-demo"
MADE_ON = {
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00+00:00",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00+00:00",
}
"""Fixed, so that the pinned commits of the demo are the same on every machine."""
SERVING, TRACES, RULES = "tinyserve", "traces", "rules"


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """What `prepare_demo` laid out; every path is inside `root`."""

    root: Path

    @property
    def rules(self) -> Path:
        """The scratch git repository that receives the rule file."""
        return self.root / RULES


def prepare_demo(root: Path, *, force: bool = False) -> DemoFolder:
    """Write the demo's folder afresh.

    Raises:
        UsageError: the folder holds something that is not an earlier demo, or git is missing.
    """
    _clear(root, force=force)
    source = bundled_folder("demo")
    root.mkdir(parents=True, exist_ok=True)
    (root / MARKER).write_text("Written by label-agent demo; safe to delete.\n", encoding="utf-8")
    shutil.copytree(
        source / "serving", root / SERVING, ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(source / "traces", root / TRACES)
    (root / RULES).mkdir()
    readme = "Rules of the demo; label-agent commits its rule file here.\n"
    (root / RULES / "README.md").write_text(readme, encoding="utf-8")
    _commit_all(root / SERVING, "tinyserve 1.0")
    _commit_all(root / RULES, "A place for rules")
    return DemoFolder(root)


def _clear(root: Path, *, force: bool) -> None:
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return
    if not (root / MARKER).is_file():
        raise UsageError(
            "CL004",
            "the folder for the demo holds other things",
            location=str(root),
            hint="give an empty one: label-agent demo --folder DIR",
        )
    if not force:
        raise UsageError(
            "CL004",
            "an earlier demo is in the way",
            location=str(root),
            hint="label-agent demo --force writes it again",
        )
    shutil.rmtree(root)


def _commit_all(folder: Path, message: str) -> None:
    import os

    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git

    try:
        repo = git.Repo.init(folder, initial_branch="main")
        with repo.config_writer() as config:
            config.set_value("user", "name", "label-agent demo")
            config.set_value("user", "email", "demo@label-agent.invalid")
            config.set_value("commit", "gpgsign", "false")
            config.set_value("core", "autocrlf", "false")
        repo.git.add("--all")
        repo.git.commit("-q", "-m", message, env=MADE_ON)
        repo.close()
    except git.GitCommandNotFound as err:
        raise UsageError(
            "CL005",
            "git is not on the PATH",
            hint="install git; label-agent reads sources through it",
        ) from err
