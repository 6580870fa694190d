"""Real source for tests: the SGLang wheel from the package index, committed to a scratch checkout.

Downloaded once into the user's cache; a test that needs it is skipped where it cannot be had.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from tests.checkouts import commit_tree

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "label-agent-tests"
PARTS = ("sglang/srt/layers/", "sglang/srt/mem_cache/", "sglang/srt/models/deepseek")


def wheel_tree(version: str, parts: tuple[str, ...] = PARTS) -> dict[str, bytes]:
    """Give sources of an SGLang wheel, of attention, cache and models unless `parts` says which.

    Skips without an index.
    """
    archive = _archive(version)
    with zipfile.ZipFile(archive) as wheel:
        return {
            name: wheel.read(name)
            for name in wheel.namelist()
            if name.endswith(".py") and name.startswith(parts)
        }


def unpack_wheel(folder: Path, version: str) -> Path:
    """Unpack a whole wheel and commit it; gives the checkout. Skips without an index."""
    with zipfile.ZipFile(_archive(version)) as wheel:
        tree = {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}
    commit_tree(folder, tree, f"sglang {version}")
    return folder


def commit_wheel(folder: Path, version: str) -> str:
    """Commit the sources of a wheel in place of what was there; gives the commit."""
    for path in sorted(folder.rglob("*.py")):
        path.unlink()
    return commit_tree(folder, wheel_tree(version), f"sglang {version}")


def _archive(version: str) -> Path:
    for folder in (CACHE, Path(tempfile.gettempdir()) / "label-agent-tests"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        found = sorted(folder.glob(f"sglang-{version}-*.whl"))
        return found[0] if found else _download(version, folder)
    return pytest.skip("there is no folder for downloaded wheels")


def _download(version: str, folder: Path) -> Path:
    """Download with pip, or skip: offline runs prove everything else.

    It is moved into place as a whole, since another worker may look for it meanwhile.
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [
            sys.executable, "-m", "pip", "download", "-q", f"sglang=={version}", "--no-deps",
            "--only-binary=:all:", "--retries=1", "--timeout=20", "-d", scratch,
        ]  # fmt: skip
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=180)
        except (OSError, subprocess.SubprocessError):
            pytest.skip(f"sglang {version} cannot be downloaded here")
        found = sorted(Path(scratch).glob(f"sglang-{version}-*.whl"))
        if not found:
            pytest.skip(f"sglang {version} has no wheel for this machine")
        return found[0].replace(folder / found[0].name)
