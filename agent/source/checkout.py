"""A checkout, read-only: git objects at a commit, or a folder without git pinned by its content.

The work tree of a git checkout is never read, so dirty files, symlinks and later edits cannot
matter. Paths are relative to the folder the user named, also when it lies inside a repository.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.core.source import RepoInfo
from agent.errors import CheckoutNotFound, CommitMismatch, SourceError
from agent.source.gitprocess import ObjectReader, run_git

SYMLINK = "120000"
GITLINK = "160000"
REGULAR = frozenset({"100644", "100755"})
MAX_BLOB = 16 << 20
"""Larger files are not read: the largest source file seen is 0.5 MB, the largest `.co` 1.2 MB."""
_SKIPPED_FOLDERS = frozenset({".git", "__pycache__", ".hg", ".svn", "node_modules"})
_MAX_FILES = 200_000


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One path of a tree: its git mode and object name."""

    mode: str
    sha: str


class Checkout(Protocol):
    """What the index asks of a checkout; `commit` is the one read when nothing else is pinned."""

    info: RepoInfo

    def tree(self, commit: str) -> Mapping[str, TreeEntry]:
        """List every path at a commit, symlinks and submodules included.

        Raises:
            CommitMismatch: the commit is not in the checkout.
        """
        ...

    def blobs(self, shas: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield (sha, bytes) of the blobs that are present and not larger than `MAX_BLOB`."""
        ...

    def close(self) -> None:
        """End what reads it."""
        ...


class GitCheckout:
    """A repository, bare or not, shallow or partial, a worktree or a folder within one."""

    def __init__(self, name: str, folder: Path, prefix: str, commit: str) -> None:
        self._folder, self._prefix = folder, prefix
        self._reader = ObjectReader(folder)
        self._trees: dict[str, Mapping[str, TreeEntry]] = {}
        self.info = RepoInfo(name, commit)

    def tree(self, commit: str) -> Mapping[str, TreeEntry]:
        """List every path at a commit."""
        known = self._trees.get(commit)
        if known is None:
            known = self._trees[commit] = self._list(commit)
        return known

    def blobs(self, shas: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the blobs that are present."""
        for sha, kind, content in self._reader.read(shas):
            if kind == "blob" and len(content) <= MAX_BLOB:
                yield sha, content

    def close(self) -> None:
        """End the reading process."""
        self._reader.close()

    def _list(self, commit: str) -> Mapping[str, TreeEntry]:
        if not _is_object_name(commit) or self._kind_of(commit) != "commit":
            raise CommitMismatch(
                "SC002",
                f"commit {commit[:40]!r} is not in the checkout {self.info.name!r}",
                hint=f"fetch it: git -C {self.info.name} fetch origin {commit[:40]}",
            )
        listed = run_git(
            self._folder, "ls-tree", "-r", "-z", "--full-tree", f"{commit}:{self._prefix}"
        )
        return dict(_entries(listed))

    def _kind_of(self, name: str) -> str:
        for _, kind, _ in self._reader.read([name]):
            return kind
        return ""


class FolderCheckout:
    """A folder without git: an unpacked wheel. Pinned by content, reported as unversioned.

    Symlinks are listed but never followed; blobs are re-read and their hash compared, so a file
    that changed since the listing is absent rather than wrong.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self._folder = folder.resolve(strict=True)
        self._tree, self._paths = _scan(self._folder)
        listing = "".join(f"{e.mode} {e.sha}\t{p}\n" for p, e in sorted(self._tree.items()))
        digest = hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()
        self.info = RepoInfo(name, f"sha256:{digest}", versioned=False)

    def tree(self, commit: str) -> Mapping[str, TreeEntry]:
        """List every path; only the folder's own content digest is a known commit."""
        if commit != self.info.commit:
            raise CommitMismatch(
                "SC002",
                f"{commit[:40]!r} is not the content of the folder {self.info.name!r}",
                hint="this checkout has no git history; its pin is the digest of its content",
            )
        return self._tree

    def blobs(self, shas: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the blobs whose file still has that content."""
        for sha in shas:
            path = self._paths.get(sha)
            content = _read_regular(self._folder, path) if path is not None else None
            if content is not None and blob_sha(content) == sha:
                yield sha, content

    def close(self) -> None:
        """Nothing is held open."""


def open_checkout(name: str, folder: Path, commit: str = "") -> GitCheckout | FolderCheckout:
    """Open a checkout at `commit`, else at HEAD; a folder without git by its content.

    Raises:
        CheckoutNotFound: the folder is missing, unreadable or holds nothing.
        CommitMismatch: the commit is not in it.
        SourceError: git is missing or refuses the repository (`dubious ownership`).
    """
    if not folder.is_dir():
        hint = "--repo NAME=DIR names the folder of a checkout"
        raise CheckoutNotFound("SC001", "no such folder", location=str(folder), hint=hint)
    top = _git_place(folder)
    if top is None:
        if commit and not commit.startswith("sha256:"):
            raise CommitMismatch("SC002", f"{name!r} is not a git repository: no commit {commit!r}")
        opened = FolderCheckout(name, folder)
        if not opened.tree(opened.info.commit):
            hint = "name the folder that holds the sources"
            raise CheckoutNotFound(
                "SC001", "the folder holds no files", location=str(folder), hint=hint
            )
        return opened
    head = commit or top.head
    checkout = GitCheckout(name, folder, top.prefix, head)
    checkout.tree(head)
    return checkout


def blob_sha(content: bytes) -> str:
    """Give the name git gives a blob (SHA-1 object format)."""
    header = b"blob %d\x00" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class _Place:
    prefix: str
    head: str


def _git_place(folder: Path) -> _Place | None:
    """Find the repository a folder is (in); None when git does not track the folder."""
    inside = any(
        (parent / ".git").exists() for parent in (folder.resolve(), *folder.resolve().parents)
    )
    bare = (folder / "objects").is_dir() and (folder / "HEAD").is_file()
    if not (inside or bare):
        return None
    try:
        prefix = run_git(folder, "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape")
        head = _head(folder)
    except SourceError as err:
        if "not a git repository" in err.message:
            return None
        hint = "git config --global --add safe.directory FOLDER, if you trust it"
        raise SourceError(
            err.code,
            err.message,
            location=str(folder),
            hint=hint if "dubious ownership" in err.message else err.hint,
        ) from err
    prefix = prefix.rstrip("\n").rstrip("/")
    if prefix and not run_git(folder, "ls-tree", "-d", "--full-tree", head, "--", prefix):
        return None
    return _Place(prefix, head)


def _head(folder: Path) -> str:
    try:
        return run_git(folder, "rev-parse", "--verify", "-q", "HEAD^{commit}").decode().strip()
    except SourceError as err:
        if err.message != "git rev-parse: no message":
            raise
        raise SourceError("SC003", "the repository has no commit yet", hint="commit first") from err


def _is_object_name(text: str) -> bool:
    return len(text) in (40, 64) and all(char in "0123456789abcdef" for char in text)


def _entries(listed: bytes) -> Iterator[tuple[str, TreeEntry]]:
    for record in listed.split(b"\x00"):
        if not record:
            continue
        meta, _, path = record.partition(b"\t")
        mode, _, sha = meta.decode("ascii").split(" ")
        yield path.decode("utf-8", "surrogateescape"), TreeEntry(mode, sha)


def _scan(folder: Path) -> tuple[dict[str, TreeEntry], dict[str, str]]:
    tree: dict[str, TreeEntry] = {}
    paths: dict[str, str] = {}
    for where, folders, files in os.walk(folder, followlinks=False):
        links = [name for name in folders if Path(where, name).is_symlink()]
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS - set(links))
        for name in sorted((*files, *links)):
            path = Path(where, name).relative_to(folder).as_posix()
            entry = _scan_file(folder, path)
            if entry is not None:
                tree[path] = entry
                paths.setdefault(entry.sha, path)
            if len(tree) > _MAX_FILES:
                raise SourceError("SC004", f"the folder holds more than {_MAX_FILES} files")
    return tree, paths


def _scan_file(folder: Path, path: str) -> TreeEntry | None:
    try:
        status = os.lstat(folder / path)
    except OSError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return TreeEntry(SYMLINK, "0" * 40)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BLOB:
        return None
    content = _read_regular(folder, path)
    if content is None:
        return None
    return TreeEntry("100755" if status.st_mode & stat.S_IXUSR else "100644", blob_sha(content))


def _read_regular(folder: Path, path: str) -> bytes | None:
    """Read one file that is regular, not a symlink anywhere on its way, and inside the folder."""
    full = folder / path
    try:
        if Path(os.path.realpath(full)) != full:
            return None
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(full, flags), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None
            return stream.read(MAX_BLOB + 1)
    except OSError:
        return None
