"""The ranks of large trace files, kept between commands; no result depends on it.

An entry is found by the digest of the trace's bytes, the name that reports give it, how it was read
and the code that read it. A stamp beside it remembers the digest of a file by its size, its times
and hashes of its head and tail, so that an unchanged file is not digested again. What
cannot be understood is as good as not there.
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
from agent.kept import KeptFolder, digest_of_files, user_folder
from agent.traces.stored import DamagedEntryError, read_ranks, write_ranks

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
    """The kept ranks in a folder; files of fewer bytes than `smallest`, as stored, are left out."""

    folder: KeptFolder
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
        return bool(key) and self.folder.holds(f"{key}.ranks")

    def recall(self, key: str) -> tuple[RankTrace, ...] | None:
        """Give what was kept under a key, or None."""
        stored = self.folder.get(f"{key}.ranks") if key else None
        try:
            return None if stored is None else read_ranks(stored)
        except DamagedEntryError:
            return None

    def keep(self, key: str, ranks: Sequence[RankTrace]) -> None:
        """Keep what was read under a key, if it can be written down."""
        with suppress(UnicodeEncodeError, OverflowError):
            if key:
                self.folder.put(f"{key}.ranks", write_ranks(ranks))

    def _digest(self, path: Path, *, again: bool) -> str:
        """Give the digest of a file: the stamp's while it fits, else a new one where allowed."""
        before = _stamp(path)
        beside = f"{_hash(os.fsencode(path.resolve()))}.stamp"
        known = _read_stamp(self.folder.get(beside))
        if known and known == msgspec.structs.replace(before, digest=known.digest):
            return known.digest
        if not again:
            return ""
        stamp = msgspec.structs.replace(before, digest=_digest_file(path))
        if time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) > _SETTLED_NS:
            self.folder.put(beside, msgspec.json.encode(stamp))
        return stamp.digest


def user_cache() -> TraceCache | None:
    """Give the cache of the user who runs this; None for a user without a home."""
    folder = user_folder()
    return TraceCache(folder) if folder else None


@cache
def reader_version() -> str:
    """Give a digest of the code that reads traces: other code never meets its entries."""
    here = Path(__file__).parent
    files = [*here.glob("*.py"), *here.glob("scan/*.[ch]"), here.parent / "core" / "kernels.py"]
    code = digest_of_files(sorted(files))
    return f"{code} {sys.byteorder} {msgspec.__version__}"


def _has_journal(path: Path) -> bool:
    return any(path.with_name(path.name + suffix).exists() for suffix in _JOURNALS)


def _stamp(path: Path) -> _Stamp:
    with path.open("rb") as file:
        seen = os.fstat(file.fileno())
        ends = file.read(_END_BYTES)
        file.seek(max(0, seen.st_size - _END_BYTES))
        ends += file.read(_END_BYTES)
    return _Stamp(seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, _hash(ends), "")


def _read_stamp(stored: bytes | None) -> _Stamp | None:
    try:
        return msgspec.json.decode(stored or b"", type=_Stamp)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _digest_file(path: Path) -> str:
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            hashed.update(block)
    return hashed.hexdigest()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
