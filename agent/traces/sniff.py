"""What the first bytes of a file say: one test for each format we read, or know and do not read.

Content decides. A suffix is looked at only where the content is binary, of no format known by its
bytes, and the answer is an error message anyway.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

_DELIMITERS: Final = ",;\t"
_ROCPROF_JSON: Final = re.compile(rb"^(?:\xef\xbb\xbf)?\s*\{\s*\"rocprofiler-sdk-tool\"\s*:")
_PROFILE: Final = re.compile(
    rb"^(?:\xef\xbb\xbf)?\s*\{\s*(?:\"digest\"\s*:\s*\"\w*\"\s*,\s*)?\"label_agent_profile\"\s*:"
)
_BINARY: Final = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_NSYS_JSON: Final = re.compile(
    rb"^\s*\{\s*\"(?:Type|CudaEvent|TraceProcessEvent|data)\"\s*:.*CudaEvent", re.DOTALL
)
_XPLANE: Final = (b"/host:CPU", b"/host:metadata", b"/host:CUPTI", b"/device:GPU:", b"/device:TPU:")
_LENGTH_DELIMITED_1: Final = 0x0A
_VARINT_MORE: Final = 0x80

Sniff = Callable[[bytes, Path], bool]


def plain(column: str) -> str:
    """Give a column's name without case, separators and quotes."""
    return "".join(letter for letter in column.casefold() if letter.isalnum())


def parse_csv(lines: Iterable[str]) -> Iterator[list[str]]:
    """Parse lines with the delimiter that the first uses most; a bad quote is a `csv.Error`."""
    rest = iter(lines)
    first = next(rest, "")
    delimiter = max(_DELIMITERS, key=first.count)

    def all_lines() -> Iterator[str]:
        yield first
        yield from rest

    return csv.reader(all_lines(), delimiter=delimiter, strict=True)


def header_of(head: bytes) -> frozenset[str]:
    """Give the plain column names in the first line of a file; none where it is no CSV header."""
    line = head.removeprefix(codecs.BOM_UTF8).partition(b"\n")[0]
    try:
        columns = next(parse_csv([line.decode("ascii")]), [])
    except (UnicodeDecodeError, csv.Error):
        return frozenset()
    return frozenset(map(plain, columns)) if len(columns) > 1 else frozenset()


def is_profile(head: bytes, path: Path) -> bool:
    """Tell our own profile by its first key, or its second where a tool has sorted them."""
    del path
    return bool(_PROFILE.match(head))


def is_sqlite(head: bytes, path: Path) -> bool:
    """Tell an SQLite file; which trace it holds is for its tables to say."""
    del path
    return head.startswith(b"SQLite format 3\0")


def is_rocprof_json(head: bytes, path: Path) -> bool:
    """Tell rocprofv3's JSON by its first key."""
    del path
    return bool(_ROCPROF_JSON.match(head))


def is_kernel_trace(head: bytes, path: Path) -> bool:
    """Tell a `kernel_trace.csv` by its column of names; the reader says which others it lacks."""
    del path
    return "kernelname" in header_of(head)


def is_kernel_stats(head: bytes, path: Path) -> bool:
    """Tell a `kernel_stats.csv` by its header."""
    del path
    return header_of(head) >= {"name", "calls", "totaldurationns"}


def is_other_rocprof_table(head: bytes, path: Path) -> bool:
    """Tell the tables that rocprofv3 writes beside the kernels: API calls, copies, agents."""
    del path
    header = header_of(head)
    timed = header >= {"starttimestamp", "endtimestamp"}
    what = {"direction", "function", "operation", "allocationsize"} & header
    return bool(timed and what) or header >= {"nodeid", "logicalnodeid"}


def is_nsys_table(head: bytes, path: Path) -> bool:
    """Tell the tables of `nsys stats`."""
    del path
    header = header_of(head)
    return header >= {"totaltimens", "instances"} or header >= {"startns", "durationns", "corrid"}


def is_nsys_json(head: bytes, path: Path) -> bool:
    """Tell the JSON lines of `nsys export --type json`."""
    del path
    return bool(_NSYS_JSON.match(head))


def either(*sniffs: Sniff) -> Sniff:
    """Tell a file by any of several tests."""

    def sniff(head: bytes, path: Path) -> bool:
        return any(test(head, path) for test in sniffs)

    return sniff


def is_xplane(head: bytes, path: Path) -> bool:
    """Tell an XSpace protobuf by the names of its planes."""
    del path
    return _is_protobuf_list(head) and any(plane in head for plane in _XPLANE)


def is_perfetto(head: bytes, path: Path) -> bool:
    """Tell a Perfetto protobuf: nothing but packets, each in field 1."""
    del path
    return _is_protobuf_list(head)


def starts_with(*magic: bytes) -> Sniff:
    """Tell a file by its first bytes."""

    def sniff(head: bytes, path: Path) -> bool:
        del path
        return head.startswith(magic)

    return sniff


def is_tar(head: bytes, path: Path) -> bool:
    """Tell a tar archive."""
    del path
    return head[257:262] == b"ustar"


def binary_named(*suffixes: str) -> Sniff:
    """Tell a file that is binary and named so: good enough to say what it seems to be."""
    return partial(_is_binary_named, suffixes)


def _is_binary_named(suffixes: tuple[str, ...], head: bytes, path: Path) -> bool:
    name = path.name.casefold().removesuffix(".gz")
    return name.endswith(suffixes) and bool(_BINARY.search(head[:4096]))


def _is_protobuf_list(head: bytes) -> bool:
    """Tell whether a file is a sequence of length-delimited fields 1."""
    if not _BINARY.search(head[:4096]):
        return False
    at = messages = 0
    while at < len(head):
        if head[at] != _LENGTH_DELIMITED_1:
            return False
        length, shift = 0, 0
        at += 1
        while at < len(head) and head[at] & _VARINT_MORE:
            length |= (head[at] & 0x7F) << shift
            shift += 7
            at += 1
        if at >= len(head) or shift > 28:
            return messages > 0 and shift <= 28
        at += 1 + (length | head[at] << shift)
        messages += 1
    return messages > 0
