"""The part of a file of JSON that is not done with: given in blocks of whole events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_SPACE: Final = re.compile(rb"[ \t\r\n]*")


class Window:
    """The part of the file that is not done with; `base` is the offset of its first byte.

    It is what a block left over, from `_at` on, and the chunk read after it, which are joined where
    that is needed.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._left = b""
        self._at = 0
        self._chunk = b""
        self.base = 0
        self.final = False

    @property
    def buffer(self) -> bytes:
        """All of it."""
        self._join()
        return self._left

    def _join(self) -> None:
        if self._chunk or self._at:
            self._left = b"".join((memoryview(self._left)[self._at :], self._chunk))
            self._at, self._chunk = 0, b""

    def more(self) -> bool:
        """Append the next chunk; more at once when the buffer has grown: never quadratic."""
        parts = [self.buffer]
        size = 0
        while size == 0 or size < len(parts[0]):
            chunk = next(self._chunks, b"")
            if not chunk:
                self.final = True
                break
            parts.append(chunk)
            size += len(chunk)
        self._left = b"".join(parts)
        return size > 0

    def drop(self, n_bytes: int) -> None:
        """Be done with its first bytes."""
        self._at += n_bytes
        self.base += n_bytes

    def piece(self, size: int) -> bytes:
        """Give that many of its first bytes, or what there is."""
        if len(self._left) - self._at < size:
            return self.buffer[:size]
        return self._left[self._at : self._at + size]

    def block(self, separator: bytes) -> bytes:
        """Give the text up to the last separator as a list; nothing where there is none."""
        if not self._chunk:
            self._join()
            self._chunk = next(self._chunks, b"")
            self.final = not self._chunk
        cut = self._chunk.rfind(separator)
        if cut >= 0:
            return b"".join((b"[", self._left, memoryview(self._chunk)[: cut + 1], b"]"))
        cut = self.buffer.rfind(separator)
        return b"".join((b"[", self._left[: cut + 1], b"]")) if cut >= 0 else b""

    def drop_block(self, size: int, separator: bytes) -> None:
        """Drop a block of `size` with its brackets, and what separates it from the next event."""
        size += len(separator) - 4
        if self._chunk:
            self._chunk, self._left = b"", self._chunk[size - len(self._left) :]
        else:
            self._left = self._left[size:]
        self.base += size

    def peek(self) -> bytes:
        """Give the next byte that is not white space, without dropping it; b"" at the end."""
        while True:
            if self._at == len(self._left) and not self.buffer and not self.more():
                return b""
            found = _SPACE.match(self._left, self._at)
            self.drop(found.end() - self._at if found else 0)
            if self._at < len(self._left):
                return self._left[self._at : self._at + 1]
