"""Events one by one: the slow reader that takes any legal JSON and says where other text breaks.

It is asked for blocks that the typed decoder refuses: control bytes and bad UTF-8 in names, ids
written as text, odd separators, damage. Damage is never repaired: an event is whole or skipped.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec

from agent.traces.events import NOTHING, Arguments, Event
from agent.traces.walk import readable

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NEXT_EVENT: Final = re.compile(r"\}[ \t\r\n]*,[ \t\r\n]*(?=\{[ \t\r\n]*[\"}])")
_BAD_BYTES: Final = re.compile(r"[\ud800-\udfff]")
_LIST_END: Final = re.compile(r"\}[ \t\r\n]*\]")
_MEMBER: Final = re.compile(
    r'[ \t\r\n]*,[ \t\r\n]*"(?:[^"\\]|\\.)*"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL
)
_DOCUMENT_END: Final = re.compile(r"[ \t\r\n]*\}?[ \t\r\n]*\Z")
_MOST_ENDINGS: Final = 64
"""How many ends of a list after damage are tried as the end of the events."""
_CUT_OFF: Final = re.compile(
    r"(?:-?(?:I[a-z]{0,7})?|Na?|tr?|tru|fa?|fals?|nu?|nul|[.eE][-+]?|\\?(?:u[0-9a-fA-F]{0,4})?)\Z"
)
"""What is left at the end of a block that stops inside a token."""
_MAX_DIGITS: Final = 40
_PIECE: Final = 2_048
"""Characters of an event that are looked at first in a damaged block."""
_BARE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\b(?:NaN|Infinity)\b)', re.DOTALL)


class _Number(str):
    """The text of a JSON number, told apart from a JSON string."""

    __slots__ = ()


class _BareWordError(ValueError):
    """`NaN` or `Infinity` stands where JSON has numbers."""


class _RepeatedKeyError(ValueError):
    """A key that matters stands twice in one object, with different values."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; which of two different values counts is not for us to say."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        for key, value in pairs:
            if key in _MATTER and fields[key] != value:
                raise _RepeatedKeyError(key)
    return fields


def _refuse(word: str) -> Any:  # noqa: ANN401 - the signature json wants
    raise _BareWordError(word)


def _decoder(*, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        parse_float=_Number,
        parse_int=_Number,
        parse_constant=_refuse,
        object_pairs_hook=_unique,
        strict=strict,
    )


_STRICT: Final = _decoder(strict=True)
_LENIENT: Final = _decoder(strict=False)
_MATTER: Final = frozenset(
    field.encode_name for form in (Event, Arguments) for field in msgspec.structs.fields(form)
)


@dataclass(frozen=True, slots=True)
class Damage:
    """Text that is not JSON: how far into the block (in bytes), and what is wrong there."""

    at: int
    what: str


@dataclass(slots=True)
class Block:
    """What a block of text gave.

    Attributes:
        events: whole events, in order.
        used: bytes of the block that are done with.
        closed: the list ended with `]`, just before `used`.
        damage: what stopped reading; only when not salvaging.
        skipped: damaged events that were passed over.
        broken: something between events was wrong.
        separator: what stands between two events, their braces included; b"" when not seen.
        control, bad_utf8: events with control bytes or bytes that are not UTF-8 in their text.
    """

    events: list[Event] = field(default_factory=list)
    used: int = 0
    closed: bool = False
    damage: Damage | None = None
    skipped: int = 0
    broken: bool = False
    separator: bytes = b""
    control: int = 0
    bad_utf8: int = 0


def read_block(raw: bytes, *, salvage: bool, final: bool) -> Block:
    """Read whole events from the start of `raw`, which stands before an event or the list's end.

    `final` says that nothing follows `raw`; otherwise an event that is cut off at the end is left
    for the next block, with `used` at its start.
    """
    return _BlockReader(raw, salvage=salvage, final=final).read()


class _BlockReader:
    """One pass over a block; positions are characters until `read` turns them into bytes."""

    def __init__(self, raw: bytes, *, salvage: bool, final: bool) -> None:
        self.text = raw.decode("utf-8", "surrogateescape")
        self.single_bytes = len(self.text) == len(raw)
        self.has_bad = bool(_BAD_BYTES.search(self.text))
        self.salvage = salvage
        self.final = final
        self.block = Block()
        self.searching = False

    def read(self) -> Block:
        at: int | None = 0
        done = 0
        while at is not None:
            at = self._skip_space(at)
            done = at
            if at >= len(self.text):
                break
            if self.text[at] == "]":
                self.block.closed = True
                done = at + 1
                break
            at = self._step(at)
        self.block.used = self._bytes_to(done)
        return self.block

    def _step(self, at: int) -> int | None:
        """Read one event; give where the next may start, or None to stop with `at` not done."""
        try:
            fields, end, has_control = self._decode(at)
        except (ValueError, RecursionError) as err:
            pos, what = self._explain(at, err)
            return None if self._is_cut_off(pos, what) else self._fail(at, pos, what)
        after = self._skip_space(end)
        follower = self.text[after : after + 1]
        if not follower and not self.final:
            return None
        if follower not in ("", ",", "]") and not (self.salvage and follower == "{"):
            return self._fail(at, after, f"',' or ']' is missing before {follower!r}")
        if not isinstance(fields, dict):
            if not self.salvage:
                return self._fail(at, at, "an event is not an object")
            self.block.skipped += 1
        elif self.searching and fields and "ph" not in fields:
            return self._search(end)
        else:
            self._keep(fields, at, end, has_control=has_control)
        return self._step_over(end, after, follower)

    def _step_over(self, end: int, after: int, follower: str) -> int:
        """Pass the comma after an event; salvage lets it be missing before another."""
        if follower == ",":
            self._note_separator(end, after)
            return after + 1
        self.block.broken |= follower == "{"
        return after

    def _note_separator(self, end: int, comma: int) -> None:
        following = self._skip_space(comma + 1)
        if not self.block.separator and self.text.startswith("{", following):
            self.block.separator = self.text[end - 1 : following + 1].encode()

    def _decode(self, at: int) -> tuple[Any, int, bool]:
        """Decode one value; tell also whether it held raw control bytes."""
        if self.block.skipped:
            self._refuse_early(at)
        try:
            return *_STRICT.raw_decode(self.text, at), False
        except json.JSONDecodeError as err:
            if not err.msg.startswith("Invalid control character"):
                raise
        return *_LENIENT.raw_decode(self.text, at), True

    def _refuse_early(self, at: int) -> None:
        """Raise what is wrong close by: an error counts all lines before it in its text."""
        piece = self.text[at : at + _PIECE]
        try:
            _LENIENT.raw_decode(piece)
        except json.JSONDecodeError as err:
            if err.pos < len(piece) - _MAX_DIGITS and not err.msg.startswith("Unterminated"):
                err.pos += at
                raise
        except (ValueError, RecursionError):
            return

    def _keep(self, fields: dict[str, Any], at: int, end: int, *, has_control: bool) -> None:
        event = _event(fields)
        self.searching = False
        self.block.control += has_control
        bad_name = bool(_BAD_BYTES.search(str(fields.get("name"))))
        bad_text = self.has_bad and bool(_BAD_BYTES.search(self.text, at, end))
        self.block.bad_utf8 += bad_name or bad_text
        self.block.events.append(event)

    def _explain(self, at: int, err: Exception) -> tuple[int, str]:
        """Give where it breaks and why."""
        if isinstance(err, json.JSONDecodeError):
            shown = self.text[err.pos : err.pos + 12].encode("utf-8", "replace").decode()
            return err.pos, f"{err.msg.lower()}, found {shown!r}"
        if isinstance(err, _BareWordError):
            words = (word for word in _BARE.finditer(self.text, at) if word.group(1))
            found = next(words, None)
            if found is None:
                return at, "a bare word in this event is not JSON"
            return found.start(1), f"{found.group(1)} is not JSON"
        if isinstance(err, _RepeatedKeyError):
            return at, f'key "{err}" stands twice with different values'
        return at, "nested too deeply"

    def _is_cut_off(self, pos: int, what: str) -> bool:
        """Tell whether the block merely ends too early; when salvaging, more text cannot help."""
        cut_off = bool(_CUT_OFF.match(self.text, pos)) or what.startswith("unterminated string")
        return cut_off and not (self.salvage and self.final)

    def _fail(self, at: int, pos: int, what: str) -> int | None:
        """Deal with text that does not parse: stop, or pass over it."""
        if not self.salvage:
            self.block.damage = Damage(self._bytes_to(pos), what)
            return None
        if self.text[at] == ",":
            self.block.skipped += 1
            return at + 1
        following = self._search(at)
        self.block.skipped += following is not None
        return following

    def _search(self, at: int) -> int | None:
        """Give where the next event may begin after a damaged one; it has to have a `ph`."""
        self.searching = True
        if boundary := _NEXT_EVENT.search(self.text, at):
            return boundary.end()
        if not self.final:
            return None
        endings = islice(_LIST_END.finditer(self.text, at), _MOST_ENDINGS)
        ends = (found.end() for found in endings if _ends_document(self.text, found.end()))
        return next((end - 1 for end in ends), len(self.text))

    def _skip_space(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def _bytes_to(self, pos: int) -> int:
        if self.single_bytes:
            return pos
        return len(self.text[:pos].encode("utf-8", "surrogateescape"))


def _ends_document(text: str, at: int) -> bool:
    """Tell whether here is what stands after a list of events: nothing, or more metadata."""
    try:
        while member := _MEMBER.match(text, at):
            _, at = _LENIENT.raw_decode(text, member.end())
    except (ValueError, RecursionError):
        return False
    return bool(_DOCUMENT_END.match(text, at))


def _event(fields: dict[str, Any]) -> Event:
    args = fields.get("args")
    return Event(
        ph=_text(fields.get("ph")),
        cat=_text(fields.get("cat")),
        name=_text(fields.get("name")),
        pid=_identity(fields.get("pid")),
        tid=_identity(fields.get("tid")),
        ts=_token(fields.get("ts")),
        dur=_token(fields.get("dur")),
        args=_arguments(args) if isinstance(args, dict) else None,
    )


def _arguments(args: dict[str, Any]) -> Arguments:
    return Arguments(
        external_id=_whole(args.get("External id")),
        external_id_2021=_whole(args.get("external id")),
        correlation=_whole(args.get("correlation")),
        device=_whole(args.get("device")),
        stream=_whole(args.get("stream")),
        input_type=_token(args.get("Input type")),
        input_dims=_token(args.get("Input Dims")),
    )


def _text(value: object) -> str:
    return readable(value) if isinstance(value, str) else ""


def _identity(value: object) -> int | str:
    if isinstance(value, _Number):
        number = _whole(value)
        return str(value) if number is None else number
    return readable(value) if isinstance(value, str) else -1


def _whole(value: object) -> int | None:
    """Give the integer a number or a string holds, or None."""
    if not isinstance(value, str) or len(value) > _MAX_DIGITS:
        return None
    try:
        return int(value)
    except ValueError:
        pass
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _token(value: object) -> msgspec.Raw:
    """Give a value as JSON text again, its numbers as they were written."""
    if value is None:
        return NOTHING
    return msgspec.Raw(_as_json(value).encode("utf-8", "replace"))


def _as_json(value: object) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(_as_json(member) for member in value) + "]"
    if isinstance(value, str):
        return json.dumps(readable(value))
    return json.dumps(value if isinstance(value, bool) else None)
