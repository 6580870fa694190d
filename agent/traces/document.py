"""The JSON around the events: finds `traceEvents`, reads metadata before and after, cuts blocks.

Three readers share the work. What lies between two event separators goes to the scanner, where one
was compiled (`agent.traces.scanner`); what that refuses is decoded in one call. A block that
decodes proves its cuts. Whatever is refused again goes to `agent.traces.careful`, event by event:
slower, never different.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import msgspec

from agent.traces.careful import Block, read_block
from agent.traces.events import FRAME_CATEGORY, Event, PlainFrame
from agent.traces.walk import bounded_int
from agent.traces.window import Window

MAX_EVENT_BYTES: Final = 16_777_216
"""An event larger than this is taken for an unbalanced quote."""

_VALUE_BYTES: Final = 512
"""How much is decoded at first to find where a metadata value ends; few are longer."""

_FRAME: Final = f'"{FRAME_CATEGORY}"'.encode()
_LAST_BYTES: Final = 512
"""How much of a block's end is looked at to tell whether it ends in a frame."""

_MOST_REFUSALS: Final = 64
"""Refusals in a row, after which a file is taken for one of a kind that is always refused."""

TakeText = Callable[[bytes], int | None]

_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_EVENTS: Final = msgspec.json.Decoder(list[Event])
_FRAMES: Final = msgspec.json.Decoder(list[PlainFrame])
_VALUE: Final = json.JSONDecoder(strict=False, parse_int=bounded_int)


@dataclass(eq=False)
class DamagedDocument(Exception):
    """The text breaks at byte `at` of the decompressed file; `event` counts from 1, 0 outside.

    `foreign` tells that nothing before that place looks like a trace.
    """

    at: int
    what: str
    event: int = 0
    truncated: bool = False
    foreign: bool = False


@dataclass(slots=True)
class Document:
    """What was read beside the events themselves.

    Attributes:
        metadata: top-level keys other than `traceEvents`.
        bare: the file is one list, without an object around it.
        lists: how many event lists there were; 0 means that this is no trace.
        second_list: where the second one begins, in bytes of JSON.
        events: how many events were read.
        frames: how many of them were Python frames that nobody wanted to see.
        size: bytes of JSON read.
        ended: the document was closed and nothing but white space followed.
        cut_off: the text ends before that.
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    bare: bool = False
    lists: int = 0
    second_list: int = 0
    events: int = 0
    frames: int = 0
    size: int = 0
    ended: bool = False
    cut_off: bool = False
    skipped: int = 0
    broken: bool = False
    control: int = 0
    bad_utf8: int = 0


def read_document(
    chunks: Iterable[bytes],
    take: Callable[[list[Event]], None],
    *,
    salvage: bool = False,
    skip_frames: bool = False,
    take_text: TakeText | None = None,
) -> Document:
    """Read a trace, handing blocks of events to `take` in file order.

    With `skip_frames`, whole blocks of complete Python frames are counted and not handed over. The
    text of a block goes to `take_text` first, which gives the number of its events or refuses it.

    Raises:
        DamagedDocument: the text is not JSON or ends too early, and `salvage` is off.
    """
    reader = _Reader(chunks, take, salvage=salvage, skip_frames=skip_frames)
    reader.take_text = take_text
    return reader.read()


class _Reader:
    def __init__(
        self,
        chunks: Iterable[bytes],
        take: Callable[[list[Event]], None],
        *,
        salvage: bool,
        skip_frames: bool,
    ) -> None:
        self.window = Window(chunks)
        self.take = take
        self.salvage = salvage
        self.skip_frames = skip_frames
        self.take_text: TakeText | None = None
        self.refusals = 0
        self.frames_expected = False
        self.document = Document()
        self.separator = b""

    def read(self) -> Document:
        window, document = self.window, self.document
        try:
            self._top()
        except DamagedDocument as damaged:
            if not self.salvage or not document.lists:
                raise
            document.broken, document.cut_off = True, damaged.truncated
        document.size = window.base + len(window.buffer)
        return document

    def _top(self) -> None:
        window = self.window
        while len(window.buffer) < len(_BOM) and window.more():
            pass
        if window.buffer.startswith(_BOM):
            window.drop(len(_BOM))
        match window.peek():
            case b"[":
                window.drop(1)
                self.document.bare = True
                self._events()
            case b"{":
                window.drop(1)
                if window.peek() not in (b'"', b"}", b""):
                    raise DamagedDocument(self.window.base, "a key is missing", foreign=True)
                self._members()
            case _:
                raise DamagedDocument(
                    self.window.base, "neither an object nor a list", foreign=True
                )
        if (rest := window.peek()) and self.document.lists:
            raise DamagedDocument(self.window.base, f"text follows the end of the JSON: {rest!r}")
        self.document.ended = True

    def _members(self) -> None:
        """Read `"key": value` pairs up to the closing brace."""
        window = self.window
        while window.peek() != b"}":
            key = self._value()
            if not isinstance(key, str):
                self._miss("a key")
            if window.peek() != b":":
                self._miss(f"':' after key {key!r}")
            window.drop(1)
            if key == "traceEvents" and window.peek() == b"[":
                window.drop(1)
                self._events()
            else:
                self.document.metadata[key] = self._value()
            if window.peek() == b",":
                window.drop(1)
            elif window.peek() != b"}":
                self._miss("',' or '}'")
        window.drop(1)

    def _miss(self, what: str) -> NoReturn:
        """Say what the metadata lack at this place."""
        if self.window.peek():
            raise DamagedDocument(self.window.base, f"{what} is missing")
        self._miss_end()

    def _miss_end(self) -> NoReturn:
        at = len(self.window.buffer)
        raise DamagedDocument(
            self.window.base + at, "the file ends inside its metadata", truncated=True
        )

    def _value(self) -> Any:  # noqa: ANN401 - foreign JSON enters here
        """Decode one metadata value, reading on until it is whole."""
        window = self.window
        if not window.peek():
            self._miss_end()
        size = _VALUE_BYTES
        while True:
            raw = window.piece(size)
            is_part = len(raw) == size
            size *= 8
            text = raw.decode("utf-8", "surrogateescape")
            try:
                value, end = _VALUE.raw_decode(text)
            except (json.JSONDecodeError, RecursionError) as err:
                if is_part:
                    continue
                pos = getattr(err, "pos", 0)
                if len(window.buffer) < MAX_EVENT_BYTES and window.more():
                    continue
                at = len(text[:pos].encode("utf-8", "surrogateescape"))
                what = getattr(err, "msg", "nested too deeply").lower()
                if window.final and (at >= len(text) - 1 or what.startswith("unterminated string")):
                    self._miss_end()
                raise DamagedDocument(self.window.base + at, what) from None
            if end == len(text) and (is_part or window.more()):
                continue
            window.drop(len(text[:end].encode("utf-8", "surrogateescape")))
            return value

    def _events(self) -> None:
        """Read one list of events; the window stands after its `[`."""
        document, window = self.document, self.window
        document.lists += 1
        if document.lists == 2:
            document.second_list = window.base - 1
        while True:
            if self._typed_block():
                continue
            too_large = len(window.buffer) >= MAX_EVENT_BYTES
            final = window.final or (too_large and self.salvage)
            block = read_block(window.buffer, salvage=self.salvage, final=final)
            self._account(block)
            window.drop(block.used)
            if block.closed:
                return
            if too_large and not block.used:
                raise DamagedDocument(
                    self.window.base, "an event does not end", event=document.events + 1
                )
            if not window.more() and (window.final and final):
                self._end_too_early()

    def _end_too_early(self) -> None:
        inside = bool(self.window.buffer.strip())
        event = self.document.events + 1 if inside else self.document.events
        what = (
            f"the file ends inside event {event}"
            if inside
            else f"the file ends after event {event}"
        )
        raise DamagedDocument(
            self.window.base + len(self.window.buffer), what, event=event, truncated=True
        )

    def _typed_block(self) -> bool:
        """Decode everything up to the last separator in the window; False when that fails."""
        text = self.window.block(self.separator) if self.separator else b""
        ways = (self._take_text, self._skip_frames, self._take_typed)
        if not text or not any(takes(text) for takes in ways):
            self.frames_expected = False
            return False
        self.frames_expected = self.skip_frames and _FRAME in text[-_LAST_BYTES:]
        self.window.drop_block(len(text), self.separator)
        return True

    def _take_text(self, text: bytes) -> bool:
        """Hand over the text of a block; after many refusals in a row that is no longer tried."""
        n_events = self.take_text(text) if self.take_text else None
        if n_events is not None:
            self.document.events += n_events
            self.refusals = 0
            return True
        self.refusals += 1
        if self.refusals >= _MOST_REFUSALS:
            self.take_text = None
        return False

    def _skip_frames(self, text: bytes) -> bool:
        """Count a block of nothing but Python frames; False when it holds anything else.

        In traces with stacks four fifths of the file are frames in one run, and a type with their
        category alone decodes twice as fast: it is tried after a block that seems to end in a
        frame, whoever took that one, so that what becomes of a faulty block is the same.
        """
        if not self.frames_expected:
            return False
        try:
            n_frames = len(_FRAMES.decode(text))
        except (msgspec.DecodeError, RecursionError):
            return False
        if not text.isascii() and not _is_utf8(text):
            return False
        self.document.events += n_frames
        self.document.frames += n_frames
        return True

    def _take_typed(self, text: bytes) -> bool:
        try:
            events = _EVENTS.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if not text.isascii() and not _is_utf8(text):
            return False
        self._take(events)
        return True

    def _account(self, block: Block) -> None:
        document = self.document
        if block.events:
            self._take(block.events)
        self.separator = block.separator or self.separator
        document.skipped += block.skipped
        document.broken |= block.broken or block.skipped > 0
        document.control += block.control
        document.bad_utf8 += block.bad_utf8
        if block.damage:
            begins = self.window.buffer.lstrip()[:1] == b"{"
            foreign = document.bare and not document.events and not begins
            damage, event = block.damage, document.events + 1
            raise DamagedDocument(
                self.window.base + damage.at, damage.what, event=event, foreign=foreign
            )

    def _take(self, events: list[Event]) -> None:
        self.document.events += len(events)
        self.take(events)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
