"""The journal: what was asked, proposed, judged and decided, one JSON line each, append-only.

A line is whole on the disk before `append` returns, so a crash loses nothing that was reported as
done. The last line may be torn by a crash: it is left out, reported, and cut off by the next
append. Any other damage is an error that names the line. One process at a time may append.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from agent.core.proposals import Finding
from agent.errors import JournalError

SCHEMA = 1
FOLDER, FILE = ".label-agent", "journal.jsonl"
_KEYS = {"schema", "seq", "kind", "data", "check"}


@dataclass(frozen=True, slots=True)
class Record:
    """One line: `seq` counts from 1 without gaps; `data` is JSON of the writer's own making."""

    seq: int
    kind: str
    data: Mapping[str, Any]


def journal_path(root: Path) -> Path:
    """Give where the journal of a working folder lies; it ignores itself for git."""
    return root / FOLDER / FILE


def is_record(text: str) -> bool:
    """Tell whether a line of text is one of a journal, sound or not."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and set(value) == _KEYS


class Journal:
    """The journal at one path; usable as a context manager, which takes the lock at once."""

    def __init__(self, path: Path) -> None:
        """Touch nothing yet: a folder is made, and the lock taken, with the first append."""
        self.path = path
        self.findings: tuple[Finding, ...] = ()
        self._file = -1
        self._records: list[Record] = []
        self._mutex = threading.RLock()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def records(self) -> tuple[Record, ...]:
        """Give all whole records, oldest first; none when there is no journal yet.

        Raises:
            JournalError: unreadable, damaged before its last line, out of order, or of a newer
                schema.
        """
        with self._mutex:
            if self._file < 0:
                self._load()
            return tuple(self._records)

    def append(self, kind: str, data: Mapping[str, Any]) -> Record:
        """Write one record and wait until it is on the disk.

        Raises:
            JournalError: it cannot be written, or another process has the journal.
        """
        with self._mutex:
            self.acquire()
            record = Record(len(self._records) + 1, kind, dict(data))
            self._write((_encoded(record) + "\n").encode("ascii"))
            self._records.append(record)
            return record

    def acquire(self) -> None:
        """Take the lock and read what is there; nothing when this object holds it already.

        Raises:
            JournalError: see `append` and `records`.
        """
        with self._mutex:
            if self._file >= 0:
                return
            file = self._open()
            try:
                self._lock(file)
                self._trim(file, self._load())
            except BaseException:
                os.close(file)
                raise
            self._file = file

    def close(self) -> None:
        """Give the lock back."""
        with self._mutex:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _open(self) -> int:
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if folder.is_symlink():
                raise self._error("JR001", f"the folder {folder.name} is a symbolic link")
            if self.path.exists() and not self.path.is_file():
                raise self._error("JR001", "the journal is not a regular file")
            _ignore_for_git(folder)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(self.path, flags, 0o600)
        except OSError as err:
            raise self._error("JR001", f"cannot open the journal: {err.strerror}") from err

    def _lock(self, file: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as err:
            hint = "wait until it has ended; an ended or killed process holds no lock"
            message = "another label-agent is at work with this journal"
            raise self._error("JR006", message, hint=hint) from err

    def _load(self) -> int:
        """Read all records; give how many bytes of the file hold them."""
        content = self._content()
        self._records, self.findings = [], ()
        whole = 0
        lines = content.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            record = self._decoded(line, number, last=number == len(lines))
            if record is None:
                break
            self._records.append(record)
            whole += len(line) + 1
        return whole

    def _content(self) -> bytes:
        try:
            if stat.S_ISLNK(self.path.lstat().st_mode):
                raise self._error("JR001", "the journal is a symbolic link")
            if not stat.S_ISREG(self.path.lstat().st_mode):
                raise self._error("JR001", "the journal is not a regular file")
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as err:
            raise self._error("JR001", f"cannot read the journal: {err.strerror}") from err

    def _decoded(self, line: bytes, number: int, *, last: bool) -> Record | None:
        """Give the record of a line; None, with a finding, for a torn last one."""
        location = f"{self.path}:{number}"
        try:
            value = json.loads(line)
            record = _record_of(value)
        except (ValueError, TypeError, KeyError, RecursionError) as err:
            if last:
                message = "the last line was cut off by a crash and is left out"
                self.findings = (Finding("JR002", message, "warning", location=location),)
                return None
            hint = "restore the file from a copy, or move it away to start afresh"
            message = "this line of the journal is damaged"
            raise JournalError("JR003", message, location=location, hint=hint) from err
        if value["schema"] != SCHEMA:
            message = f"the journal has schema {value['schema']!r}; this release reads {SCHEMA}"
            raise JournalError("JR005", message, location=location, hint="use a newer label-agent")
        if record.seq != number:
            message = f"record {record.seq} stands where record {number} must be"
            hint = "lines were lost, doubled or moved: restore the file from a copy"
            raise JournalError("JR004", message, location=location, hint=hint)
        return record

    def _trim(self, file: int, whole: int) -> None:
        """Cut a torn tail off, and end a last line that lacks only its line end."""
        size = os.fstat(file).st_size
        try:
            if size == whole - 1:
                os.write(file, b"\n")
            elif size > whole:
                os.ftruncate(file, whole)
            os.fsync(file)
        except OSError as err:
            raise self._error("JR001", f"cannot mend the journal: {err.strerror}") from err

    def _write(self, line: bytes) -> None:
        size = os.fstat(self._file).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as err:
            os.ftruncate(self._file, size)
            raise self._error("JR001", f"cannot write to the journal: {err.strerror}") from err

    def _error(self, code: str, message: str, *, hint: str = "") -> JournalError:
        return JournalError(code, message, location=str(self.path), hint=hint)


def _encoded(record: Record) -> str:
    value = {"schema": SCHEMA, "seq": record.seq, "kind": record.kind, "data": record.data}
    return json.dumps({**value, "check": _check(record)}, allow_nan=False, separators=(",", ":"))


def _record_of(value: Any) -> Record:  # noqa: ANN401 - foreign JSON enters here
    if not isinstance(value, dict) or set(value) != _KEYS:
        message = "not a record"
        raise ValueError(message)
    if value["schema"] != SCHEMA:
        return Record(0, "", {})
    record = Record(value["seq"], value["kind"], value["data"])
    if not isinstance(record.data, dict) or value["check"] != _check(record):
        message = "the check sum is wrong"
        raise ValueError(message)
    return record


def _check(record: Record) -> str:
    """Give a sum over the meaning of a record: a changed character does not pass unseen."""
    text = json.dumps([record.seq, record.kind, record.data], sort_keys=True, allow_nan=False)
    return f"{zlib.crc32(text.encode('ascii')):08x}"


def _ignore_for_git(folder: Path) -> None:
    if not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("*\n", encoding="ascii")
