"""A large JSON document, member by member, in memory that does not grow with it.

Lists of objects are handed on in blocks: what lies between two separators is decoded in one call,
and a block that decodes proves that it was cut between two elements, not inside one. Where a block
does not decode, elements are taken one by one: slower, never different.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

MAX_VALUE_BYTES: Final = 67_108_864
"""A single value larger than this is taken for an unbalanced quote."""

_MAX_DEPTH: Final = 64
_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_SEPARATOR: Final = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")
_COMMA: Final = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_NO_TEXT: Final = re.compile("[\ud800-\udfff]")
_MAX_DIGITS: Final = 40


def bounded_int(digits: str) -> int | None:
    """Give a number; one too long to be any id, size or time is as good as none."""
    return int(digits) if len(digits) <= _MAX_DIGITS else None


def readable(text: str) -> str:
    """Put U+FFFD for what no text can hold: bytes that are no UTF-8, halves of characters."""
    return text if text.isascii() else _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


_VALUE: Final = json.JSONDecoder(strict=False, parse_int=bounded_int)

Block = Callable[[Sequence[Any]], None]


class DamagedJson(Exception):
    """The text breaks at byte `at` of the decompressed file."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(at, what)
        self.at = at
        self.what = what


class Walker:
    """A position in a document; every method begins at a value and ends behind it.

    `bad_utf8` tells whether some of what was decoded had to be replaced.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        """Begin at the top-level value."""
        self._chunks: Iterator[bytes] = iter(chunks)
        self._buffer = b""
        self._base = 0
        self.bad_utf8 = False
        while len(self._buffer) < len(_BOM) and self._more():
            pass
        if self._buffer.startswith(_BOM):
            self._drop(len(_BOM))

    @property
    def offset(self) -> int:
        """Where the position is, in bytes of the decompressed file."""
        return self._base

    def peek(self) -> bytes:
        """Give the next byte that is not white space; b"" at the end."""
        while True:
            found = _SPACE.match(self._buffer)
            self._drop(found.end() if found else 0)
            if self._buffer or not self._more():
                return self._buffer[:1]

    def members(self) -> Iterator[str]:
        """Give the keys of an object; the caller takes each value before the next key."""
        self._expect(b"{")
        while self.peek() != b"}":
            key = self.value()
            if not isinstance(key, str):
                raise self._damaged("a key is missing")
            self._expect(b":")
            yield key
            if self.peek() != b"}":
                self._expect(b",")
        self._drop(1)

    def elements(self) -> Iterator[int]:
        """Give the positions in a list; the caller takes each element before the next."""
        self._expect(b"[")
        position = 0
        while self.peek() != b"]":
            yield position
            position += 1
            if self.peek() != b"]":
                self._expect(b",")
        self._drop(1)

    def value(self) -> Any:  # noqa: ANN401 - foreign JSON enters here
        """Decode one value."""
        if not self.peek():
            raise self._damaged("the file ends too early")
        while True:
            text = self._buffer.decode("utf-8", "surrogateescape")
            try:
                value, end = _VALUE.raw_decode(self._readable(text))
            except (json.JSONDecodeError, RecursionError) as err:
                if len(self._buffer) < MAX_VALUE_BYTES and self._more():
                    continue
                what = getattr(err, "msg", "nested too deeply")
                at = len(text[: getattr(err, "pos", 0)].encode("utf-8", "surrogateescape"))
                raise self._damaged(what, at) from None
            if end < len(text) or not self._more():
                self._drop(len(text[:end].encode("utf-8", "surrogateescape")))
                return value

    def skip(self, depth: int = 0) -> None:
        """Pass over one value, however large."""
        match self.peek():
            case b"{" if depth < _MAX_DEPTH:
                for _ in self.members():
                    self.skip(depth + 1)
            case b"[":
                self.blocks(_NOTHING, lambda _: None)
            case _:
                self.value()

    def blocks(self, decoder: msgspec.json.Decoder[Any], take: Block) -> None:
        """Hand on the elements of a list, some at a time, as `decoder` makes them.

        `decoder` is of a list. Elements that it refuses come as plain Python values.
        """
        self._expect(b"[")
        separator = b""
        while self.peek() != b"]":
            if not separator and (found := _SEPARATOR.search(self._buffer)):
                separator = found.group()
            if not (separator and self._block(separator, decoder, take)):
                self._one_by_one(take)
        self._drop(1)

    def _block(self, separator: bytes, decoder: msgspec.json.Decoder[Any], take: Block) -> bool:
        """Decode up to the last separator in the buffer; False when that fails."""
        cut = self._buffer.rfind(separator)
        if cut < 0:
            return False
        try:
            elements = decoder.decode(b"[" + self._buffer[: cut + 1] + b"]")
            if not self._buffer.isascii():
                self._buffer[: cut + 1].decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        take(elements)
        self._drop(cut + len(separator) - 1)
        self._more()
        return True

    def _one_by_one(self, take: Block) -> None:
        """Hand on the elements that the buffer holds whole, and at least one."""
        text = self._buffer.decode("utf-8", "surrogateescape")
        readable = self._readable(text)
        found: list[Any] = []
        at = 0
        try:
            while True:
                value, end = _VALUE.raw_decode(readable, at)
                comma = _COMMA.match(text, end)
                if not comma or comma.end() == len(text):
                    break
                found.append(value)
                at = comma.end()
        except (json.JSONDecodeError, RecursionError):
            pass
        if found:
            take(found)
            self._drop(len(text[:at].encode("utf-8", "surrogateescape")))
            return
        take([self.value()])
        if self.peek() != b"]":
            self._expect(b",")

    def _readable(self, text: str) -> str:
        """Make all of it readable; every position stays what it was."""
        changed = readable(text)
        self.bad_utf8 |= changed != text
        return changed

    def _expect(self, token: bytes) -> None:
        if self.peek() != token:
            raise self._damaged(f"'{token.decode()}' is missing")
        self._drop(1)

    def _damaged(self, what: str, at: int = 0) -> DamagedJson:
        ended = not self._buffer or at >= len(self._buffer) - 1
        return DamagedJson(self._base + at, "the file ends too early" if ended else what)

    def _more(self) -> bool:
        """Append what comes next; more at once when the buffer has grown: nothing is quadratic."""
        parts, size = [self._buffer], 0
        while size == 0 or size < len(parts[0]):
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            parts.append(chunk)
            size += len(chunk)
        self._buffer = b"".join(parts)
        return size > 0

    def _drop(self, n_bytes: int) -> None:
        self._buffer = self._buffer[n_bytes:]
        self._base += n_bytes


class _Nothing(msgspec.Struct, gc=False):
    """An object none of whose members matter."""


_NOTHING: Final = msgspec.json.Decoder(list[_Nothing])
