"""The ranks of one file as bytes, events and all, and back; pure.

Gzip members one after the other: which ranks have a table of events, the ranks' profile, and the
columns of each table as they lie in memory. Every member carries its own checksum. Nothing in the
bytes is ever executed: what does not fit is refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import msgspec
from isal import igzip_lib

from agent.core.kernels import KernelTable, RankTrace, Trace
from agent.errors import CorruptTrace
from agent.traces.profile import read_profile, write_profile

_COLUMNS: Final = (
    ("signature_id", "I"),
    ("start_ns", "q"),
    ("duration_ns", "q"),
    ("device", "i"),
    ("stream", "q"),
    ("correlation", "q"),
)
"""The columns of a `KernelTable` and their types."""

_LEVEL: Final = 1
_MOST_BYTES: Final = 1 << 30
"""A column that is larger is refused: it stands for over 100 million events."""

_TIMED: Final = msgspec.json.Decoder(tuple[bool, ...])


class DamagedEntryError(ValueError):
    """Bytes that `write_ranks` did not give."""


def write_ranks(ranks: Sequence[RankTrace]) -> bytes:
    """Give the bytes of some ranks: 5-10 for each event."""
    members: list[bytes | memoryview] = [
        msgspec.json.encode([rank.kernels is not None for rank in ranks]),
        write_profile(Trace("", tuple(ranks))),
    ]
    for rank in ranks:
        if rank.kernels is not None:
            members += [memoryview(getattr(rank.kernels, name)).cast("B") for name, _ in _COLUMNS]
    return b"".join(igzip_lib.compress(member, _LEVEL, igzip_lib.COMP_GZIP) for member in members)


def read_ranks(stored: bytes) -> tuple[RankTrace, ...]:
    """Give the ranks that `write_ranks` was given.

    Raises:
        DamagedEntryError: these are no such bytes.
    """
    try:
        members = _members(stored)
        timed = _TIMED.decode(next(members))
        bare = read_profile(next(members), "").ranks
        ranks = tuple(
            replace(rank, kernels=_table(rank, members)) if has_events else rank
            for rank, has_events in zip(bare, timed, strict=True)
        )
        more = next(members, None)
    except (CorruptTrace, msgspec.MsgspecError, ValueError, StopIteration, RuntimeError) as err:
        raise DamagedEntryError(str(err)) from err
    if more is not None:
        raise DamagedEntryError("bytes follow the last column")
    return ranks


def _members(stored: bytes) -> Iterator[bytes]:
    while stored:
        member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        try:
            text = member.decompress(stored, _MOST_BYTES)
        except igzip_lib.IsalError as err:  # type: ignore[misc] # its stub lacks the base class
            raise DamagedEntryError(str(err)) from err
        if not member.eof:
            raise DamagedEntryError("cut off, or larger than any column")
        yield text
        stored = member.unused_data


def _table(rank: RankTrace, members: Iterator[bytes]) -> KernelTable:
    """Take the columns of one rank; its signatures are those of its sums, in their order."""
    columns = [array(code, next(members)) for _, code in _COLUMNS]
    table = KernelTable(tuple(rank.stats), *columns)
    if {len(column) for column in columns} != {len(table)}:
        raise DamagedEntryError("columns of different lengths")
    if max(table.signature_id, default=0) >= max(1, len(table.signatures)):
        raise DamagedEntryError("an event of no signature")
    return table
