"""The ranks of one file as bytes, events and all, and back; pure.

A checksum, then the ranks' profile and, for each rank with events, its columns and its times by
step as they lie in memory, compressed. Columns are unpacked when one is first asked for: most
reports are made of sums. Nothing in the bytes is ever executed: what does not fit is refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from isal import igzip_lib, isal_zlib

from agent.core.kernels import KernelTable, RankTrace, Signature, StepTimes, Trace
from agent.traces.profile import Profile, profile_of, trace_of

_COLUMNS: Final = {
    "signature_id": "I",
    "start_ns": "q",
    "duration_ns": "iq",
    "device": "i",
    "stream": "iq",
    "correlation": "iq",
}
"""The columns of a `KernelTable` and the types each may have."""

_LEVEL: Final = 1
_CHECK_BYTES: Final = 4
_MOST_BYTES: Final = 1 << 30
"""A column that is larger is refused: it stands for over 100 million events."""


class DamagedEntryError(ValueError):
    """Bytes that `write_ranks` did not give."""


class _Events(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a rank holds beside its profile: of each column its type and itself, packed.

    `width` is 0 where times by step are not known.
    """

    columns: Mapping[str, tuple[str, bytes]]
    width: int
    step_times: bytes


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    profile: Profile
    events: tuple[_Events | None, ...]


_DECODER: Final = msgspec.msgpack.Decoder(_Entry)


def write_ranks(ranks: Sequence[RankTrace]) -> bytes:
    """Give the bytes of some ranks: 5-10 for each event.

    Raises:
        UnicodeEncodeError, OverflowError: a text that is no UTF-8, or a sum beyond 64 bits.
    """
    entry = _Entry(profile_of(Trace("", tuple(ranks))), tuple(map(_events_of, ranks)))
    content = msgspec.msgpack.encode(entry)
    return _check(content) + content


def read_ranks(stored: bytes) -> tuple[RankTrace, ...]:
    """Give the ranks that `write_ranks` was given.

    Raises:
        DamagedEntryError: these are no such bytes.
    """
    content = memoryview(stored)[_CHECK_BYTES:]
    if stored[:_CHECK_BYTES] != _check(content):
        raise DamagedEntryError("the bytes do not have their checksum")
    try:
        entry = _DECODER.decode(content)
        bare = trace_of(entry.profile).ranks
        return tuple(_with_events(*one) for one in zip(bare, entry.events, strict=True))
    except (msgspec.MsgspecError, ValueError, IndexError, RecursionError) as err:
        raise DamagedEntryError(str(err)) from err


def _check(content: bytes | memoryview) -> bytes:
    return isal_zlib.crc32(content).to_bytes(_CHECK_BYTES, "little")


def _events_of(rank: RankTrace) -> _Events | None:
    table, times = rank.kernels, rank.step_times
    if table is None:
        return None
    known = {name: getattr(table, name) for name in _COLUMNS}
    columns = {
        name: (column.typecode, _pack(memoryview(column).cast("B")))
        for name, column in known.items()
    }
    if times is None:
        return _Events(columns, 0, b"")
    return _Events(columns, times.width, _pack(times.packed))


def _with_events(rank: RankTrace, events: _Events | None) -> RankTrace:
    """Give a rank its events; their signatures are those of its sums, in their order."""
    if events is None:
        return rank
    types = {name: code for name, (code, _) in events.columns.items()}
    if types.keys() != _COLUMNS.keys() or not all(
        len(code) == 1 and code in _COLUMNS[name] for name, code in types.items()
    ):
        raise DamagedEntryError("other columns than a table of events has")
    summed = None
    if events.width:
        packed = _unpack(events.step_times)
        if len(packed) != events.width * len(rank.steps) * len(rank.stats):
            raise DamagedEntryError("times of other steps or signatures")
        summed = StepTimes(rank.steps, rank.stats, events.width, packed)
    return replace(rank, kernels=_KeptTable(tuple(rank.stats), events.columns), summed=summed)


class _KeptTable(KernelTable):
    """A table of events that unpacks its columns when one is first asked for."""

    __slots__ = ("_packed",)

    _packed: Mapping[str, tuple[str, bytes]]

    def __init__(
        self, signatures: tuple[Signature, ...], packed: Mapping[str, tuple[str, bytes]]
    ) -> None:
        """Keep the columns as they are."""
        object.__setattr__(self, "signatures", signatures)
        object.__setattr__(self, "_packed", packed)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what an empty slot asks for
        """Unpack all columns.

        Raises:
            DamagedEntryError: they are no table; only a forged checksum lets such bytes in here.
        """
        if name not in _COLUMNS:
            raise AttributeError(name)
        columns = _columns(self._packed, len(self.signatures))
        for column_name, column in columns.items():
            object.__setattr__(self, column_name, column)
        return columns[name]


def _columns(packed: Mapping[str, tuple[str, bytes]], n_signatures: int) -> dict[str, array[int]]:
    try:
        columns = {name: array(code, _unpack(column)) for name, (code, column) in packed.items()}
    except ValueError as err:
        raise DamagedEntryError(str(err)) from err
    if len({len(column) for column in columns.values()}) != 1:
        raise DamagedEntryError("columns of different lengths")
    if max(columns["signature_id"], default=-1) >= n_signatures:
        raise DamagedEntryError("an event of no signature")
    return columns


def _pack(column: bytes | memoryview) -> bytes:
    return igzip_lib.compress(column, _LEVEL, igzip_lib.COMP_GZIP)


def _unpack(packed: bytes) -> bytes:
    member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    try:
        text = member.decompress(packed, _MOST_BYTES)
    except igzip_lib.IsalError as err:  # type: ignore[misc] # its stub lacks the base class
        raise DamagedEntryError(str(err)) from err
    if not member.eof or member.unused_data:
        raise DamagedEntryError("not one column, or larger than any")
    return text
