"""Real git repositories for the commit tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

BEFORE, AFTER = b"schema = 1\nversion = 1\n", b"schema = 1\nversion = 2\n"
RULES = "label-rules.toml"


def git(folder: Path, *arguments: str, ok: bool = True) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert not ok or done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


def init(folder: Path, *, identity: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    if identity:
        git(folder, "config", "user.name", "Ada Reviewer")
        git(folder, "config", "user.email", "ada@example.invalid")
    return folder


def with_rules(folder: Path, content: bytes = BEFORE) -> Path:
    init(folder)
    (folder / RULES).write_bytes(content)
    (folder / "notes.md").write_text("base\n")
    (folder / "app.py").write_text("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "base")
    return folder


def hook(folder: Path, name: str, body: str) -> None:
    path = folder / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def snapshot(folder: Path) -> dict[str, object]:
    """Everything a failed commit must leave as it was."""
    index = folder / ".git" / "index"
    files = {
        str(path.relative_to(folder)): (path.read_bytes(), path.lstat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }
    return {
        "files": files,
        "index": index.read_bytes() if index.exists() else None,
        "head": git(folder, "rev-parse", "-q", "--verify", "HEAD", ok=False),
        "status": git(folder, "--no-optional-locks", "status", "--porcelain=v2", ok=False)
        if index.exists()
        else "",
    }
