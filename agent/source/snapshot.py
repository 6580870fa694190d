"""One commit of one checkout as text: looked up by path, and searched for literals.

Blobs are read once per group (runtime Python, runtime native code, everything else) and shared by
all commits of the checkout; a literal search then runs over words in memory. No parsing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from agent.core.proposals import Finding
from agent.core.source import RepoInfo
from agent.source.checkout import GITLINK, REGULAR, SYMLINK, Checkout, TreeEntry
from agent.source.paths import is_binary, is_native, is_python, is_runtime, path_problem
from agent.source.words import WordTable

Group = Literal["python", "native", "other"]
GROUPS: tuple[Group, ...] = ("python", "native", "other")
MAX_SOURCE = 4 << 20
"""Larger text files are not searched or parsed; the largest hand-written one seen is 0.5 MB."""
_LFS = b"version https://git-lfs.github.com/spec/v1"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One text file of a snapshot; `sha` names its content."""

    repo: str
    path: str
    sha: str
    text: bytes

    def line_count(self) -> int:
        """Count lines as git and editors do: ended by a line feed."""
        return self.text.count(b"\n") + (not self.text.endswith(b"\n") and bool(self.text))

    def lines(self, first: int, last: int) -> tuple[str, ...]:
        """Give lines `first`..`last`, 1-based and inclusive, without their ends."""
        found = _line_bytes(self.text)[max(first, 1) - 1 : last]
        return tuple(line.rstrip(b"\r").decode("utf-8", "replace") for line in found)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Give the bytes of lines `first`..`last`, ends included, as (start, end) offsets."""
        lines = _line_bytes(self.text)
        start = sum(map(len, lines[: first - 1])) + min(first - 1, len(lines))
        size = sum(map(len, lines[first - 1 : last])) + max(last - first + 1, 0)
        return min(start, len(self.text)), min(start + size, len(self.text))

    def line_of(self, offset: int) -> int:
        """Give the 1-based line of a byte offset."""
        return self.text.count(b"\n", 0, offset) + 1


class Store:
    """Blobs of one checkout by sha, shared by its snapshots."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        self._blobs: dict[str, bytes] = {}

    def read(self, shas: Iterable[str]) -> Mapping[str, bytes]:
        """Read blobs, from memory where they were read before; absent ones are left out."""
        wanted = set(shas)
        missing = sorted(wanted - self._blobs.keys())
        if missing:
            self._blobs.update(self.checkout.blobs(missing))
        return {sha: self._blobs[sha] for sha in wanted if sha in self._blobs}

    def read_once(self, sha: str) -> bytes | None:
        """Read a blob without keeping it: binaries."""
        if sha in self._blobs:
            return self._blobs[sha]
        return next((content for _, content in self.checkout.blobs([sha])), None)


class Snapshot:
    """A checkout at one commit."""

    def __init__(self, store: Store, commit: str) -> None:
        """Open a commit; raises `CommitMismatch` when the checkout does not have it."""
        self._store = store
        self.repo = store.checkout.info.name
        self.tree = store.checkout.tree(commit)
        self.info = RepoInfo(self.repo, commit, store.checkout.info.versioned)
        self._groups: dict[Group, tuple[SourceFile, ...]] = {}
        self._words: dict[Group, WordTable] = {}
        self._hits: dict[tuple[bytes, Group], tuple[SourceFile, ...]] = {}

    def entry(self, path: str) -> TreeEntry | Finding:
        """Look a path up case-exactly; a `Finding` says why it cannot be read."""
        problem = path_problem(path)
        if problem is not None:
            return problem
        entry = self.tree.get(path)
        if entry is not None:
            return _regular(path, entry)
        for folder in _folders(path):
            above = self.tree.get(folder)
            if above is not None and above.mode == GITLINK:
                return _finding("E_SUBMODULE", path, f"lies in the submodule {folder}, not read")
            if above is not None and above.mode == SYMLINK:
                return _finding("E_PATH_SYMLINK", path, f"goes through the symlink {folder}")
        return self._absent(path)

    def file(self, path: str) -> SourceFile | Finding:
        """Read a text file; a `Finding` says why it cannot be evidence."""
        entry = self.entry(path)
        if isinstance(entry, Finding):
            return entry
        content = self._store.read([entry.sha]).get(entry.sha)
        if content is None:
            return _finding("E_BLOB_MISSING", path, "is not in this partial clone, or too large")
        if content.startswith(_LFS):
            return _finding("E_LFS_POINTER", path, "is a Git LFS pointer; its content is not here")
        if is_binary(path) or b"\x00" in content[:8192]:
            return _finding("E_KIND", path, "is binary: only a symbol of it can be evidence")
        if len(content) > MAX_SOURCE:
            return _finding("E_TOO_LARGE", path, f"is larger than {MAX_SOURCE >> 20} MiB")
        return SourceFile(self.repo, path, entry.sha, content)

    def source(self, path: str) -> SourceFile | None:
        """Read a text file; None when it cannot be read."""
        found = self.file(path)
        return None if isinstance(found, Finding) else found

    def binary(self, path: str) -> bytes | Finding:
        """Read any regular file."""
        entry = self.entry(path)
        if isinstance(entry, Finding):
            return entry
        content = self._store.read_once(entry.sha)
        if content is None:
            return _finding("E_BLOB_MISSING", path, "is not in this partial clone, or too large")
        if content.startswith(_LFS):
            return _finding("E_LFS_POINTER", path, "is a Git LFS pointer; its content is not here")
        return content

    def files(self, group: Group) -> tuple[SourceFile, ...]:
        """Give the text files of a group, sorted by path."""
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = self._load(group)
        return known

    def holding(self, literal: bytes, *groups: Group) -> Iterator[SourceFile]:
        """Yield the files of the groups (runtime code by default) that hold a literal."""
        for group in groups or ("python", "native"):
            key = (literal, group)
            if key not in self._hits:
                files = self.files(group)
                found = self._words_of(group).holding(literal)
                self._hits[key] = tuple(files[index] for index in found)
            yield from self._hits[key]

    def _words_of(self, group: Group) -> WordTable:
        known = self._words.get(group)
        if known is None:
            known = self._words[group] = WordTable([file.text for file in self.files(group)])
        return known

    def _load(self, group: Group) -> tuple[SourceFile, ...]:
        wanted = {
            path: entry.sha
            for path, entry in sorted(self.tree.items())
            if entry.mode in REGULAR and _group_of(path) == group
        }
        blobs = self._store.read(wanted.values())
        return tuple(
            SourceFile(self.repo, path, sha, blobs[sha])
            for path, sha in wanted.items()
            if sha in blobs and len(blobs[sha]) <= MAX_SOURCE
        )

    def _absent(self, path: str) -> Finding:
        folded = path.casefold()
        same = next((known for known in self.tree if known.casefold() == folded), "")
        also = f"; there is {same}" if same else ""
        return _finding("E_PATH_NOT_IN_TREE", path, f"is not in {self._at()}{also}")

    def _at(self) -> str:
        return f"{self.repo} at {self.info.commit[:12]}"


@lru_cache(maxsize=4_096)
def whole_word(name: str) -> re.Pattern[bytes]:
    """Give a pattern that finds a name where it stands as a whole identifier; any text will do.

    It begins with the name itself: that is searched for twenty times as fast as a look-behind.
    """
    word = re.escape(name.encode("utf-8", "replace"))
    return re.compile(word + rb"(?<!\w" + word + rb")(?!\w)")


@lru_cache(maxsize=64)
def _line_bytes(text: bytes) -> list[bytes]:
    return text.split(b"\n")


def _group_of(path: str) -> Group | None:
    if not (is_python(path) or is_native(path)):
        return None
    if not is_runtime(path):
        return "other"
    return "python" if is_python(path) else "native"


def _regular(path: str, entry: TreeEntry) -> TreeEntry | Finding:
    if entry.mode == SYMLINK:
        return _finding("E_PATH_SYMLINK", path, "is a symlink; evidence is never read through one")
    if entry.mode == GITLINK:
        return _finding("E_SUBMODULE", path, "is a submodule, not a file of this checkout")
    if entry.mode not in REGULAR:
        return _finding("E_PATH_NOT_IN_TREE", path, f"has mode {entry.mode}, not a regular file")
    return entry


def _folders(path: str) -> Iterator[str]:
    parts = path.split("/")
    for count in range(1, len(parts)):
        yield "/".join(parts[:count])


def _finding(code: str, path: str, message: str) -> Finding:
    return Finding(code, f"{path} {message}", location=path)
