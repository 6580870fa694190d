"""Tell by a trace's Python frames whether it was made from a commit.

A frame is (path, first line, function); the path is the file's on the machine of the trace, so it
is compared from its package on. Kineto counts the first line from the `def` or its decorator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.source.parse import TreeCache
from agent.source.python.tree import functions
from agent.source.snapshot import Snapshot

Frame = tuple[str, int, str]
_MAX_FILES = 60
_MIN_DEPTH = 2


def fingerprint(snapshot: Snapshot, trees: TreeCache, frames: Iterable[Frame]) -> tuple[int, int]:
    """Count the frames of this checkout's files, and those whose function begins where they say."""
    fitting = asked = 0
    for path, known in sorted(_by_file(snapshot, frames).items())[:_MAX_FILES]:
        file = snapshot.source(path)
        tree = trees.tree(file, "python") if file is not None else None
        if tree is None:
            continue
        begins: dict[str, set[int]] = {}
        for one in functions(tree.root_node):
            begins.setdefault(one.name, set()).update((one.line, one.first))
        for line, function in known:
            asked += 1
            fitting += line in begins.get(function, ())
    return fitting, asked


def _by_file(snapshot: Snapshot, frames: Iterable[Frame]) -> dict[str, list[tuple[int, str]]]:
    endings = _endings(snapshot)
    found: dict[str, list[tuple[int, str]]] = {}
    for path, line, function in sorted(set(frames)):
        if function.startswith("<") or not path.endswith(".py"):
            continue
        for ending in _tails(path):
            if ending in endings:
                found.setdefault(endings[ending], []).append((line, function))
                break
    return found


def _endings(snapshot: Snapshot) -> dict[str, str]:
    """Map the end of each Python path, as imported, to the path; ambiguous ends are left out."""
    found: dict[str, str] = {}
    doubled: set[str] = set()
    for path in snapshot.tree:
        if not path.endswith(".py"):
            continue
        for ending in _tails(path):
            if found.setdefault(ending, path) != path:
                doubled.add(ending)
    return {ending: path for ending, path in found.items() if ending not in doubled}


def _tails(path: str) -> Iterator[str]:
    """Yield the ends of a path, longest first, at least a folder and a file."""
    parts = path.replace("\\", "/").split("/")
    for start in range(len(parts) - _MIN_DEPTH + 1):
        yield "/".join(parts[start:])
