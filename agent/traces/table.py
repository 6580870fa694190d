"""CSV files as rows of text, with the line each came from; columns are found by name.

Headers differ between tools and versions in case, separators and quotes, so a column's name is
compared without them: `Start_Timestamp`, `start timestamp` and `"StartTimestamp"` are one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.core.proposals import Finding
from agent.errors import CorruptTrace
from agent.traces.gather import SALVAGE_HINT, incomplete
from agent.traces.inflate import ByteStream
from agent.traces.sniff import parse_csv, plain

_FIELD_LIMIT: Final = 16_777_216
_BOM: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `line` counts from 1 in the decompressed file.

    `is_cut`: the file ends right behind it, without a line end.
    """

    line: int
    fields: Sequence[str]
    at: Mapping[str, int]
    is_cut: bool = False

    def has(self, *names: str) -> bool:
        """Tell whether there is one of these columns."""
        return any(name in self.at for name in names)

    def text(self, *names: str) -> str:
        """Give the field of the first of these columns that there is, else ""."""
        for name in names:
            if name in self.at:
                return self.fields[self.at[name]]
        return ""

    def number(self, *names: str) -> int:
        """Give a field as an integer; `"12"`, ` 12 ` and `12.0` are all 12.

        Raises:
            ValueError: it is none.
        """
        text = self.text(*names).strip()
        whole, _, fraction = text.partition(".")
        if fraction.strip("0") or not whole.removeprefix("-").isdecimal() or len(whole) > 40:
            message = f"{names[0]} is {text[:40]!r}, which is no whole number"
            raise ValueError(message)
        return int(whole)


class Table:
    """The rows of one CSV file.

    Attributes:
        header: plain column names.
        skipped: rows that `salvage` passed over.
    """

    def __init__(self, path: Path, source: str, *, salvage: bool) -> None:
        """Name the file; nothing is read before iteration."""
        self.source = source
        self.salvage = salvage
        self.skipped = 0
        self.bad_utf8 = 0
        self._line = 0
        self._is_cut = False
        self._stream = ByteStream(path, source)

    def __iter__(self) -> Iterator[Row]:
        """Give every row below the header; a repeated header is passed over.

        Raises:
            CorruptTrace: a row is damaged or the file is cut off, and `salvage` is off.
        """
        csv.field_size_limit(_FIELD_LIMIT)
        reader = parse_csv(self._lines())
        header = tuple(map(plain, next(reader, [])))
        at = {name: position for position, name in reversed(list(enumerate(header)))}
        while True:
            try:
                fields = next(reader)
            except StopIteration:
                break
            except csv.Error as err:
                self.bad_row(self._line, str(err))
                continue
            if len(fields) == len(header):
                if fields[0].strip() and plain(fields[0]) == header[0]:
                    continue
                yield Row(self._line, fields, at, self._is_cut)
            elif fields:
                self.bad_row(self._line, f"{len(fields)} of {len(header)} columns")
        if self._stream.damage:
            self._cut_off()

    def bad_row(self, line: int, why: str) -> None:
        """Count a damaged row with salvage.

        Raises:
            CorruptTrace: without salvage.
        """
        if not self.salvage:
            raise CorruptTrace(
                "TR061",
                f"damaged row: {why}",
                location=f"{self.source}:{line}",
                hint=SALVAGE_HINT,
            )
        self.skipped += 1

    @property
    def complete(self) -> bool:
        """Nothing was skipped."""
        return not self.skipped and not self._stream.damage

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is to be said of the file as a whole."""
        found = []
        if self.bad_utf8:
            message = f"invalid UTF-8 replaced in {self.bad_utf8} lines"
            found.append(Finding("TR021", message, severity="warning", location=self.source))
        if not self.complete:
            found.append(incomplete(self.source, self.skipped, self._stream.damage))
        return tuple(found)

    def _cut_off(self) -> None:
        if not self.salvage:
            raise CorruptTrace(
                "TR010", self._stream.damage, location=self.source, hint=SALVAGE_HINT
            )

    def _lines(self) -> Iterator[str]:
        """Give the lines with their ends, decoded; the first without its mark of byte order."""
        rest = b""
        for chunk in self._stream:
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            for line in lines:
                yield self._decoded(line + b"\n")
        if rest:
            self._is_cut = True
            yield self._decoded(rest)

    def _decoded(self, line: bytes) -> str:
        self._line += 1
        try:
            return line.decode().removeprefix(_BOM)
        except UnicodeDecodeError:
            self.bad_utf8 += 1
            return line.decode(errors="replace").removeprefix(_BOM)
