"""Bytes of a trace file as a stream of chunks: plain, gzip (several members) or a one-file zip.

Told by content, not by suffix. Memory is bounded by the chunk size. Damage does not raise here:
everything before it is delivered and `ByteStream.damage` says what is wrong, because only the
reader knows whether what it got is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from isal import igzip_lib

from agent.errors import CorruptTrace, TraceError, UnknownTraceFormat

CHUNK = 262_144
"""Decompressed bytes a chunk; larger ones fall out of the cache and read 25-40 % slower."""

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
_STORED_CHUNK = 65_536
_SMALL_STEP = 64


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """How far a file has been read, in bytes as stored."""

    source: str
    done: int
    total: int


Progress = Callable[[ReadProgress], None]


def cannot_be_read(err: OSError, source: str) -> TraceError:
    """Say what the operating system says."""
    reason = err.strerror or str(err)
    hint = "check that the file is there and that you may read it"
    return TraceError("TR013", f"cannot be read: {reason}", location=source, hint=hint)


class ByteStream:
    """Decompressed chunks of one file, in order; iterate once.

    Attributes:
        damage: what ended the stream early, or "".
        cut_off: the file ends before its data do.
        junk_at: offset of bytes after the last gzip member that are no gzip, or None.
    """

    def __init__(
        self, path: Path, source: str, *, chunk: int = CHUNK, progress: Progress | None = None
    ) -> None:
        """Name the file; nothing is opened before iteration."""
        self.path = path
        self.source = source
        self.damage = ""
        self.cut_off = False
        self.junk_at: int | None = None
        self._chunk = chunk
        self._progress = progress
        self._step = _STORED_CHUNK
        self._read = 0
        self._delivered = 0
        self._total = 0

    def __iter__(self) -> Iterator[bytes]:
        """Deliver the chunks."""
        try:
            with self.path.open("rb") as file:
                self._total = self.path.stat().st_size
                yield from self._chunks(file)
        except OSError as err:
            raise cannot_be_read(err, self.source) from err

    def _chunks(self, file: IO[bytes]) -> Iterator[bytes]:
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(GZIP_MAGIC):
            return self._gzip_members(file)
        if magic == ZIP_MAGIC:
            return self._zip_member(file)
        return self._plain(file)

    def _plain(self, file: IO[bytes]) -> Iterator[bytes]:
        while chunk := file.read(self._chunk):
            self._advance(len(chunk))
            yield chunk

    def _gzip_members(self, file: IO[bytes]) -> Iterator[bytes]:
        member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        stored = b""
        while True:
            if member.needs_input and not stored:
                stored = file.read(self._step)
                if not stored:
                    self.cut_off = True
                    self.damage = f"the gzip stream is cut off at byte {self._read} of the file"
                    return
                self._advance(len(stored))
            try:
                chunk = member.decompress(stored, self._chunk)
            except igzip_lib.IsalError as err:  # type: ignore[misc] # its stub lacks the base class
                if self._step > _SMALL_STEP:
                    yield from self._up_to_damage()
                else:
                    self.damage = _damage(max(0, self._read - self._step), str(err))
                return
            stored = b""
            if chunk:
                self._delivered += len(chunk)
                yield chunk
            if member.eof:
                stored = self._next_member(member.unused_data, file)
                if not stored:
                    return
                member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)

    def _up_to_damage(self) -> Iterator[bytes]:
        """Deliver what a failed call swallowed: once more in small steps, up to the damage."""
        again = ByteStream(self.path, self.source, chunk=self._chunk)
        again._step = _SMALL_STEP
        known = self._delivered
        for chunk in again:
            if len(chunk) > known:
                yield chunk[known:]
            known = max(0, known - len(chunk))
        self.damage, self.cut_off = again.damage, again.cut_off

    def _next_member(self, rest: bytes, file: IO[bytes]) -> bytes:
        """Give the bytes at which the next member starts, or nothing at the end of the file."""
        while len(stripped := rest.lstrip(b"\0")) < len(GZIP_MAGIC):
            more = file.read(self._step)
            if not more:
                break
            self._advance(len(more))
            rest = stripped + more
        if stripped.startswith(GZIP_MAGIC):
            return stripped
        if stripped:
            self.junk_at = self._read - len(stripped)
        return b""

    def _zip_member(self, file: IO[bytes]) -> Iterator[bytes]:
        """Deliver the only file of an archive; what breaks inside it is damage like any other."""
        import lzma
        import struct
        import zipfile
        import zlib

        faults = (
            *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError),
            *(NotImplementedError, RuntimeError, ValueError, OverflowError),
        )
        try:
            archive = zipfile.ZipFile(file)
            members = [member for member in archive.infolist() if not member.is_dir()]
            if len(members) != 1:
                raise _not_one_file(len(members), self.source)
            with archive.open(members[0]) as stored:
                gzipped = stored.read(len(GZIP_MAGIC)) == GZIP_MAGIC
                stored.seek(0)
                yield from self._gzip_members(stored) if gzipped else self._plain(stored)
        except faults as err:
            reason = " ".join(str(err).split()) or type(err).__name__
            if not self._read:
                raise _unreadable_zip(reason, self.source) from err
            self.damage = f"the zip archive is damaged: {reason}"

    def _advance(self, n_bytes: int) -> None:
        self._read += n_bytes
        if self._progress:
            done = min(self._read, self._total)
            self._progress(ReadProgress(self.source, done, self._total))


def _damage(at: int, reason: str) -> str:
    if "checksum" in reason:
        return "the checksum of the gzip data is wrong: any byte of it may have been altered"
    return f"the gzip stream is damaged near byte {at} of the file ({reason})"


def _not_one_file(n_files: int, source: str) -> TraceError:
    return UnknownTraceFormat(
        "TR011",
        f"a zip archive of {n_files} files is not one trace",
        location=source,
        hint="unpack it and name the folder or the files",
    )


def _unreadable_zip(reason: str, source: str) -> TraceError:
    return CorruptTrace(
        "TR011",
        f"the zip archive cannot be read: {reason}",
        location=source,
        hint="unpack it and name the file",
    )


def read_head(path: Path, source: str, n_bytes: int) -> bytes:
    """Give the first decompressed bytes of a file, for sniffing."""
    head = b""
    for chunk in ByteStream(path, source, chunk=n_bytes):
        head += chunk
        if len(head) >= n_bytes:
            break
    return head[:n_bytes]


def read_whole(path: Path, source: str, *, limit: int = 1 << 30) -> bytes:
    """Give all decompressed bytes of a file; an error when it is damaged or over `limit` bytes."""
    stream = ByteStream(path, source, chunk=4 * CHUNK)
    parts: list[bytes] = []
    size = 0
    for chunk in stream:
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            raise TraceError(
                "TR016",
                f"the file holds more than {limit} bytes, too many to read whole",
                location=source,
                hint="name the trace that it was made of",
            )
    if stream.damage:
        raise CorruptTrace("TR010", stream.damage, location=source, hint="copy or write it again")
    return b"".join(parts)
