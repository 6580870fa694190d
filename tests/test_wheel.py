"""The wheel holds everything: the whole job runs from it, in any folder, without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and unpack it."""
    return _installed(tmp_path_factory.mktemp("wheel"))


def _installed(folder: Path, **environment: str) -> Path:
    """Build a wheel and unpack it; skips where the build backend cannot be had."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        str(folder),
        str(ROOT),
    ]
    variables = {**os.environ, **environment}
    built = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if (
        built.returncode
        and "hatchling" in built.stderr
        and "No matching distribution" in built.stderr
    ):
        pytest.skip("the package index cannot be reached, so no wheel can be built")
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("label_agent-*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def _label_agent(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from agent.cli import main; sys.exit(main())"
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, "-I", "-c", code, str(site), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_holds_rules_prompts_and_the_demo(installed: Path) -> None:
    bundled = installed / "agent" / "_bundled"
    assert (bundled / "rules" / "builtin.toml").is_file()
    assert list((bundled / "prompts").glob("*.md"))
    assert (bundled / "demo" / "traces" / "fp8").is_dir()


def test_the_demo_runs_from_the_wheel_in_any_folder(installed: Path, tmp_path: Path) -> None:
    done = _label_agent(installed, tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert "CastFromFP8" in done.stdout
    rules = tmp_path / "label-agent-demo" / "rules"
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=rules, capture_output=True, text=True, check=True
    )
    assert len(log.stdout.splitlines()) > 1, "no accepted rule was committed"
    assert str(ROOT) not in done.stdout


def test_a_wheel_made_without_a_c_compiler_reads_in_python(tmp_path: Path) -> None:
    site = _installed(tmp_path, CC="no-such-compiler")
    assert [wheel.name.endswith("-py3-none-any.whl") for wheel in tmp_path.glob("*.whl")] == [True]
    assert not (site / "agent" / "traces" / "_scan.so").exists()
    done = _label_agent(site, tmp_path, "label", str(ROOT / "demo" / "traces" / "fp8"))
    assert done.returncode in (0, 1), done.stderr
    assert "9,856 kernels" in done.stdout
