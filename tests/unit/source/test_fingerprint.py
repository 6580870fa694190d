"""The functions on a trace's stacks tell which commit it was made from."""

from __future__ import annotations

from pathlib import Path

from agent.source.index import open_sources
from tests.checkouts import BACKEND, UTILS, commit_tree, line_of

PATH = "python/engine/srt/backend.py"


def frames(
    text: str, where: str = "/opt/site-packages/engine/srt/backend.py"
) -> frozenset[tuple[str, int, str]]:
    names = ("forward_extend", "forward_decode", "create_backend")
    return frozenset((where, line_of(text, f"def {name}("), name) for name in names)


def test_a_commit_has_all_functions_of_its_own_trace_and_not_of_another(tmp_path: Path) -> None:
    old = commit_tree(tmp_path, {PATH: BACKEND})
    newer = "import os\n" + BACKEND
    new = commit_tree(tmp_path, {PATH: newer})
    index = open_sources([("repo", tmp_path)])
    assert index.fingerprint("repo", old, frames(BACKEND)) == (3, 3)
    assert index.fingerprint("repo", new, frames(BACKEND)) == (0, 3)
    assert index.fingerprint("repo", new, frames(newer)) == (3, 3)
    picked = [c for c in (old, new) if index.fingerprint("repo", c, frames(BACKEND)) == (3, 3)]
    assert picked == [old]


def test_frames_of_other_packages_are_not_counted(tmp_path: Path) -> None:
    commit = commit_tree(tmp_path, {PATH: BACKEND})
    index = open_sources([("repo", tmp_path)])
    foreign = {
        ("/usr/lib/python3/threading.py", 9, "run"),
        ("/opt/torch/nn/modules/module.py", 1, "forward"),
        ("<string>", 1, "<module>"),
        ("backend.py", 1, "forward_extend"),
    }
    assert index.fingerprint("repo", commit, frozenset(foreign)) == (0, 0)
    assert index.fingerprint("repo", commit, frames(BACKEND) | foreign) == (3, 3)


def test_a_decorated_function_may_begin_on_its_decorator(tmp_path: Path) -> None:
    commit = commit_tree(tmp_path, {"pkg/utils.py": UTILS})
    index = open_sources([("repo", tmp_path)])
    line = line_of(UTILS, "def tanh(")
    for first in (line, line - 1):
        seen = frozenset({("/x/pkg/utils.py", first, "tanh")})
        assert index.fingerprint("repo", commit, seen) == (1, 1)


def test_an_unknown_checkout_or_commit_compares_nothing(tmp_path: Path) -> None:
    commit_tree(tmp_path, {PATH: BACKEND})
    index = open_sources([("repo", tmp_path)])
    assert index.fingerprint("other", "0" * 40, frames(BACKEND)) == (0, 0)
    assert index.fingerprint("repo", "0" * 40, frames(BACKEND)) == (0, 0)
