"""Replace a file in one step, or leave it exactly as it is."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Give `path` the new content at once; mode and owner stay, a new file follows the umask.

    The content is on the disk before the name is. Raises `OSError` with the file untouched.
    """
    part = path.with_name(f".{path.name}.part")
    _drop_stale(part)
    try:
        _write_part(part, content, path)
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Take a file away, also when it is gone already."""
    path.unlink(missing_ok=True)
    _sync_folder(path.parent)


def read_file(path: Path) -> bytes | None:
    """Give a file's bytes; None when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _drop_stale(part: Path) -> None:
    """Take away what a killed run left; anything but a plain file stays and is an error."""
    with suppress(FileNotFoundError):
        if stat.S_ISREG(part.lstat().st_mode):
            part.unlink()


def _write_part(part: Path, content: bytes, like: Path) -> None:
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with suppress(FileNotFoundError):
            _copy_owner_and_mode(file, like.stat())
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)


def _copy_owner_and_mode(file: int, wanted: os.stat_result) -> None:
    here = os.fstat(file)
    if (here.st_uid, here.st_gid) != (wanted.st_uid, wanted.st_gid):
        with suppress(PermissionError):
            os.fchown(file, wanted.st_uid, wanted.st_gid)
    os.fchmod(file, stat.S_IMODE(wanted.st_mode))


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
