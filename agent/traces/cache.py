"""The ranks of large trace files, kept in the user's cache folder; no result depends on it.

An entry is found by the digest of the trace's bytes, the name that reports give it, how it was read
and the code that read it. A stamp beside it remembers the digest of a file by its size, its times
and hashes of its head and tail, so that an unchanged file is not digested again. Whatever cannot
be read, understood or written is as good as not there.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from agent.core.kernels import RankTrace
from agent.traces.stored import DamagedEntryError, read_ranks, write_ranks

LIMIT_BYTES: Final = 1_000_000_000
"""Bytes the cache may take; what was used longest ago goes first."""

SMALLEST_BYTES: Final = 1_000_000
"""Stored size from which a trace is kept; smaller ones are read as fast as an entry."""

_END_BYTES: Final = 65_536
_BLOCK: Final = 1 << 20
_SETTLED_NS: Final = 100_000_000
"""A file younger than this may change once more without a new time; kernels count in 1-10 ms."""

_JOURNALS: Final = ("-wal", "-journal")
"""Files beside an SQLite database that belong to its content."""


class _Stamp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file looked like when it had a digest; `ends` hashes its head and its tail."""

    size: int
    mtime_ns: int
    ctime_ns: int
    ends: str
    digest: str


@dataclass(frozen=True, slots=True)
class TraceCache:
    """A folder of entries; many processes may use it at once.

    Attributes:
        folder: made when something is kept.
        limit: bytes that all entries together may take.
        smallest: stored size from which files are kept.
    """

    folder: Path
    limit: int = LIMIT_BYTES
    smallest: int = SMALLEST_BYTES

    def key_of(self, path: Path, source: str, options: str, *, digest: bool = True) -> str:
        """Give the key of a file's entry; "" where it is not kept or, without `digest`, not known.

        `options` says how the file is read; results name it `source`.
        """
        try:
            if path.stat().st_size < self.smallest or _has_journal(path):
                return ""
            content = self._digest(path, again=digest)
            parts = (content, source, options, reader_version())
        except OSError:
            return ""
        return _hash("\0".join(parts).encode("utf-8", "surrogateescape")) if content else ""

    def holds(self, key: str) -> bool:
        """Tell whether there seems to be an entry."""
        return bool(key) and self._entry(key).is_file()

    def recall(self, key: str) -> tuple[RankTrace, ...] | None:
        """Give what was kept under a key, or None."""
        if not key:
            return None
        try:
            ranks = read_ranks(self._entry(key).read_bytes())
            os.utime(self._entry(key))
        except (OSError, DamagedEntryError):
            return None
        return ranks

    def keep(self, key: str, ranks: Sequence[RankTrace]) -> None:
        """Keep what was read under a key, and make room for it."""
        if key:
            with suppress(OSError):
                self._write(self._entry(key), write_ranks(ranks))
                self._make_room()

    def _entry(self, key: str) -> Path:
        return self.folder / f"{key}.ranks"

    def _digest(self, path: Path, *, again: bool) -> str:
        """Give the digest of a file: the stamp's while it fits, else a new one where allowed."""
        before = _stamp(path)
        beside = self.folder / f"{_hash(os.fsencode(path.resolve()))}.stamp"
        known = _read_stamp(beside)
        if known == msgspec.structs.replace(before, digest=known.digest if known else ""):
            with suppress(OSError):
                os.utime(beside)
            return known.digest
        if not again:
            return ""
        stamp = msgspec.structs.replace(before, digest=_digest_file(path))
        if time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) > _SETTLED_NS:
            with suppress(OSError):
                self._write(beside, msgspec.json.encode(stamp))
        return stamp.digest

    def _write(self, path: Path, content: bytes) -> None:
        """Put a file into the folder at once; readers see the old one or the new one."""
        import tempfile

        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(part, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _make_room(self) -> None:
        """Take away what was used longest ago, until the rest is within the limit."""
        files = [entry for entry in os.scandir(self.folder) if entry.is_file(follow_symlinks=False)]
        aged = sorted(
            (entry.stat().st_mtime_ns, entry.path, entry.stat().st_size) for entry in files
        )
        total = sum(size for _, _, size in aged)
        for _, path, size in aged:
            if total <= self.limit:
                return
            Path(path).unlink(missing_ok=True)
            total -= size


def user_cache() -> TraceCache | None:
    """Give the cache in the user's cache folder; None for a user without a home."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = Path(named) if os.path.isabs(named) else _platform_folder()  # noqa: PTH117 - of a text
    except RuntimeError:
        return None
    return TraceCache(folder / "label-agent" / "traces")


def _platform_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"


@cache
def reader_version() -> str:
    """Give a digest of the code that reads traces: other code never meets its entries."""
    here = Path(__file__).parent
    hashed = hashlib.sha256(f"{sys.byteorder} {msgspec.__version__}".encode())
    for module in (*sorted(here.glob("*.py")), here.parent / "core" / "kernels.py"):
        hashed.update(module.read_bytes())
    return hashed.hexdigest()


def _has_journal(path: Path) -> bool:
    return any(path.with_name(path.name + suffix).exists() for suffix in _JOURNALS)


def _stamp(path: Path) -> _Stamp:
    with path.open("rb") as file:
        seen = os.fstat(file.fileno())
        ends = file.read(_END_BYTES)
        file.seek(max(0, seen.st_size - _END_BYTES))
        ends += file.read(_END_BYTES)
    return _Stamp(seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, _hash(ends), "")


def _read_stamp(path: Path) -> _Stamp | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Stamp)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _digest_file(path: Path) -> str:
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            hashed.update(block)
    return hashed.hexdigest()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
