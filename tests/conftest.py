"""Fixtures shared by all tests: no home folder, no keys, and the shared material where it is present."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LABEL_AGENT_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real traces, cases and truths beside the checkout; skips where it is absent."""
    if not (SHARED / "traces" / "INDEX.tsv").is_file():
        pytest.skip("the shared folder of real traces and truths is not beside this checkout")
    return SHARED


@pytest.fixture(autouse=True)
def _private_world(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Keep keys, the home folder and the user's git configuration out of every test."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith(
            ("OPENAI_", "ANTHROPIC_", "AZURE_", "GIT_")
        ):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
