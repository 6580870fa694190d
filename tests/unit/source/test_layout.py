"""Evidence of a repository against its installed package, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.source.index import open_sources
from agent.source.layout import is_unpackaged, placed
from agent.source.verify import EvidenceStatus
from tests.checkouts import BACKEND, commit_tree, write_tree
from tests.unit.source.test_verify import FILES, PATH, again, pin

INFO = "engine-1.0.dist-info/METADATA"
WHEEL = {"engine/a.py", "engine/b/c.py", INFO}
REPOSITORY = {"python/engine/a.py", "python/engine/b/c.py", "kernels/csrc/a.cu", "setup.py"}


@pytest.mark.parametrize(
    ("tree", "path", "found"),
    [
        pytest.param(WHEEL, "python/engine/b/c.py", "engine/b/c.py", id="installed"),
        pytest.param(WHEEL, "src/engine/a.py", "engine/a.py", id="installed from another root"),
        pytest.param(REPOSITORY, "engine/a.py", "python/engine/a.py", id="back in the repository"),
        pytest.param(REPOSITORY, "python/engine/a.py", "python/engine/a.py", id="where it was"),
        pytest.param(REPOSITORY, "python/a.py", "python/a.py", id="gone, the root is there"),
        pytest.param(WHEEL, "python/engine/gone.py", "python/engine/gone.py", id="gone"),
        pytest.param(WHEEL | {"python/x.py"}, "python/engine/a.py", "python/engine/a.py",
                     id="a folder of that name is there"),
        pytest.param({"x/engine/a.py", "y/engine/a.py"}, "engine/a.py", "engine/a.py",
                     id="two roots have it"),
    ],
)  # fmt: skip
def test_a_file_is_found_with_one_source_root_less_or_more(
    tree: set[str], path: str, found: str
) -> None:
    assert placed(tree, path) == found


@pytest.mark.parametrize(
    ("tree", "path", "missing"),
    [
        (WHEEL, "kernels/csrc/a.cu", True),
        (WHEEL, "python/engine/gone.py", False),
        (WHEEL, "engine/gone.py", False),
        (WHEEL - {INFO}, "kernels/csrc/a.cu", False),
        (REPOSITORY, "other/a.cu", False),
    ],
)
def test_only_an_installed_package_leaves_parts_of_a_repository_out(
    tree: set[str], path: str, *, missing: bool
) -> None:
    assert is_unpackaged(tree, path) == missing


def installed(folder: Path, wheel: dict[str, str]) -> EvidenceStatus:
    """Pin the cast below `python/` and look for it in an unpacked wheel."""
    source = f"python/{PATH}"
    (folder / "repo").mkdir()
    commit_tree(folder / "repo", {source: BACKEND})
    entry = pin(folder / "repo", "emission", source, BACKEND, "kvc = kvc.to(dtype)", 1)
    write_tree(folder / "wheel", {INFO: "Name: engine\n", **wheel})
    return open_sources([("repo", folder / "wheel")]).verify(entry)


def test_an_installed_file_is_the_same(tmp_path: Path) -> None:
    found = installed(tmp_path, {PATH: BACKEND})
    assert (found.status, found.message) == ("SAME", f"it lies at {PATH} in this layout")
    assert found.evidence.path == f"python/{PATH}"
    assert found.found is not None
    assert found.found.path == PATH


def test_an_installed_file_of_another_version_has_moved(tmp_path: Path) -> None:
    found = installed(tmp_path, {PATH: f"# another\n{BACKEND}"})
    assert found.status == "MOVED"
    assert found.found is not None
    assert found.found.lines[0] == found.evidence.lines[0] + 1


def test_code_that_an_installed_file_lost_is_stale(tmp_path: Path) -> None:
    gone = BACKEND.replace("kvc = kvc.to(dtype)", "pass").replace("k_pe = k_pe.to(dtype)", "pass")
    assert installed(tmp_path, {PATH: gone}).status == "STALE"


def test_what_a_package_does_not_hold_is_not_checked(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    entry = pin(tmp_path / "repo", "emission", PATH, BACKEND, "kvc = kvc.to(dtype)", 1)
    write_tree(tmp_path / "wheel", {INFO: "Name: other\n", "other/a.py": "x = 1\n"})
    found = open_sources([("repo", tmp_path / "wheel")]).verify(entry)
    assert found.status == "NOT_CHECKED"
    assert "does not hold engine/" in found.message


def test_evidence_of_a_package_is_found_in_its_repository(tmp_path: Path) -> None:
    entry = pin(tmp_path, "emission", PATH, BACKEND, "kvc = kvc.to(dtype)", 1)
    for path in FILES:
        if path.startswith("engine/"):
            (tmp_path / path).unlink()
    found = again(tmp_path, entry, {f"src/{PATH}": BACKEND})
    assert (found.status, found.found.path if found.found else "") == ("SAME", f"src/{PATH}")
