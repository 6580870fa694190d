"""A folder of files that are worth keeping and no loss when they are gone.

Many processes may use it at once: a file appears whole or not at all. Whatever cannot be read or
written is as good as not there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LIMIT_BYTES: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """Files by name, in at most `limit` bytes: what was used longest ago goes first."""

    path: Path
    limit: int = LIMIT_BYTES

    def holds(self, name: str) -> bool:
        """Tell whether there seems to be a file."""
        return (self.path / name).is_file()

    def get(self, name: str) -> bytes | None:
        """Give a file's bytes, or None; it counts as used."""
        try:
            content = (self.path / name).read_bytes()
            os.utime(self.path / name)
        except OSError:
            return None
        return content

    def put(self, name: str, content: bytes) -> None:
        """Keep a file under a name, in place of an older one, and make room for it."""
        with suppress(OSError):
            self._write(self.path / name, content)
            self._make_room()

    def _write(self, path: Path, content: bytes) -> None:
        import tempfile

        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        part, name = tempfile.mkstemp(dir=self.path, suffix=".part")
        try:
            with os.fdopen(part, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _make_room(self) -> None:
        files = [path for path in self.path.iterdir() if path.is_file()]
        aged = sorted((path.stat().st_mtime_ns, path.stat().st_size, path) for path in files)
        total = sum(size for _, size, _ in aged)
        for _, size, path in aged:
            if total <= self.limit:
                return
            path.unlink(missing_ok=True)
            total -= size


def user_folder() -> KeptFolder | None:
    """Give the folder for the user who runs this; None for a user without a home."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = Path(named)
        folder = folder if folder.is_absolute() else _platform_folder()
    except RuntimeError:
        return None
    return KeptFolder(folder / "label-agent")


def _platform_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"


def digest_of_files(paths: Iterable[Path]) -> str:
    """Give sha256 (hex) over the content of some files, in their order.

    Raises:
        OSError: one cannot be read.
    """
    import hashlib  # only here: with all of OpenSSL it takes a while

    hashed = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        hashed.update(f"{len(content)}\n".encode() + content)
    return hashed.hexdigest()
