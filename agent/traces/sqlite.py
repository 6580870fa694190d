"""SQLite files: opened without a trace on disk, told apart by their tables, read row by row.

The schema is as foreign as the rows: views run under a limit of work, and nothing is trusted to
have the type that its column declares.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from agent.core.kernels import RankTrace
from agent.core.proposals import Finding
from agent.errors import CorruptTrace, TraceError, UnknownTraceFormat
from agent.traces.columns import UNKNOWN
from agent.traces.gather import SALVAGE_HINT, Events, What, incomplete
from agent.traces.inflate import ByteStream

MAGIC: Final = b"SQLite format 3\0"
FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What sqlite3 raises; the second for a message that quotes damaged text."""
_STEPS: Final = 1_000_000
_MOST_STEPS: Final = 50
_STEPS_PER_MB: Final = 30
"""All statements together may run 50 million instructions of SQLite and 30 for each byte of file.

Joining and sorting the real ones takes 2 to 6 a byte.
"""


class Database:
    """One open file.

    Attributes:
        columns: lower-case column names of every table and view, by lower-case name.
        tables: those of them that are tables.
        skipped: rows that `salvage` passed over.
        damage: what ended the reading early, or "".
    """

    def __init__(
        self, connection: sqlite3.Connection, source: str, *, size: int, salvage: bool
    ) -> None:
        """Look at the schema of a file of `size` bytes.

        Raises:
            CorruptTrace: there is none that can be read.
        """
        self.source = source
        self.salvage = salvage
        self.skipped = 0
        self.damage = ""
        self.bad_utf8 = 0
        self._connection = connection
        self._rows_left = size
        self._steps_left = _MOST_STEPS + _STEPS_PER_MB * size // _STEPS
        connection.text_factory = self._text
        connection.set_progress_handler(self._step, _STEPS)
        self.columns: dict[str, frozenset[str]] = {}
        self.tables: list[str] = []
        for name, kind in self._schema():
            self.columns[name.lower()] = self._columns_of(name)
            if kind == "table":
                self.tables.append(name.lower())

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Give the rows of a query; damage in the midst of them raises, or ends them with salvage.

        A file that makes SQLite work without end, or gives more rows than it has bytes, is damaged.

        Raises:
            CorruptTrace: the file is damaged.
        """
        if self._is_endless():
            return
        try:
            for row in self._connection.execute(sql):
                self._rows_left -= 1
                if self._is_endless():
                    break
                yield row
        except FAULTS as err:
            if not self._is_endless():
                self._damaged(str(err))
        if self._is_endless():
            self._damaged("a view does not come to an end")

    def _is_endless(self) -> bool:
        return self._rows_left < 0 or self._steps_left < 0

    def one(self, sql: str) -> Any:  # noqa: ANN401 - a foreign value
        """Give the only value of a query, or None."""
        return next(self.rows(sql), (None,))[0]

    def has(self, table: str, *columns: str) -> bool:
        """Tell whether a table or view has all these columns."""
        return table.lower() in self.columns and self.columns[table.lower()].issuperset(columns)

    def require(self, table: str, *columns: str) -> None:
        """Demand columns.

        Raises:
            CorruptTrace: the table or one of them is missing.
        """
        missing = [name for name in columns if not self.has(table, name)]
        if missing:
            raise CorruptTrace(
                "TR060",
                f"table {table} has no column {', '.join(missing)}",
                location=self.source,
                hint="export it again with a current version of the profiler",
            )

    def text(self, value: object) -> str:
        """Give what a column of names holds as text; "" for NULL."""
        if isinstance(value, bytes):
            return self._text(value)
        return "" if value is None else str(value)

    def add(
        self,
        events: Events,
        what: What,
        span: tuple[object, object],
        *,
        place: tuple[object, object, object],
        correlation: object,
        row: tuple[str, int],
    ) -> None:
        """Add one event to its process; `row` is its table and number, for what is damaged.

        Raises:
            CorruptTrace: its times are none, and this is no salvage.
        """
        start, end = span
        if not isinstance(start, int) or not isinstance(end, int):
            self.bad_row(*row, f"start {_brief(start)}, end {_brief(end)}")
            return
        device, stream, queue = map(whole, place)
        try:
            events.add(
                what, start, end, place=(device, stream, queue), correlation=whole(correlation)
            )
        except OverflowError:
            self.bad_row(*row, "a time does not fit in 64 bits")

    def bad_row(self, table: str, row: int, why: str) -> None:
        """Count a damaged row with salvage.

        Raises:
            CorruptTrace: without salvage.
        """
        if not self.salvage:
            raise CorruptTrace(
                "TR061",
                f"row {row} of {table}: {why}",
                location=self.source,
                hint=SALVAGE_HINT,
            )
        self.skipped += 1

    @property
    def complete(self) -> bool:
        """Nothing was skipped."""
        return not self.skipped and not self.damage

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is to be said of the file as a whole."""
        found = []
        if self.bad_utf8:
            message = f"invalid UTF-8 replaced in {self.bad_utf8} texts"
            found.append(Finding("TR021", message, severity="warning", location=self.source))
        if not self.complete:
            found.append(incomplete(self.source, self.skipped, self.damage))
        return tuple(found)

    def _schema(self) -> list[tuple[str, str]]:
        try:
            return self._connection.execute(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"
                " ORDER BY rowid"
            ).fetchall()
        except FAULTS as err:
            raise CorruptTrace(
                "TR062",
                f"damaged SQLite file: {err}",
                location=self.source,
                hint="copy or export it again",
            ) from err

    def _columns_of(self, name: str) -> frozenset[str]:
        try:
            rows = self._connection.execute("SELECT name FROM pragma_table_xinfo(?)", (name,))
            return frozenset(str(column).lower() for (column,) in rows)
        except FAULTS:  # a view of what is not there
            return frozenset()

    def _damaged(self, reason: str) -> None:
        if not self.salvage:
            raise CorruptTrace(
                "TR062",
                f"damaged SQLite file: {reason}",
                location=self.source,
                hint=SALVAGE_HINT,
            )
        self.damage = self.damage or f"damaged SQLite file: {reason}"

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.bad_utf8 += 1
            return raw.decode(errors="replace")

    def _step(self) -> bool:
        self._steps_left -= 1
        return self._steps_left < 0


def _brief(value: object) -> str:
    return repr(value)[:40]


def whole(value: object) -> int:
    """Give a value that is an integer; -1 for any other."""
    return value if isinstance(value, int) else UNKNOWN


def read_sqlite(path: Path, source: str, *, salvage: bool = False) -> tuple[RankTrace, ...]:
    """Read a rocpd, rpd or nsys database, whichever it is.

    Raises:
        UnknownTraceFormat: a database, but of nothing we know.
        CorruptTrace: damaged, and `salvage` is off.
        TraceError: no GPU kernels in it.
    """
    with open_database(path, source, salvage=salvage) as database:
        return _reader_for(database)(database)


def _reader_for(database: Database) -> Callable[[Database], tuple[RankTrace, ...]]:
    from agent.traces.nsys import is_nsys, read_nsys
    from agent.traces.rocpd import is_rocpd, read_rocpd
    from agent.traces.rpd import is_rpd, read_rpd

    if is_rpd(database):
        return read_rpd
    if is_rocpd(database):
        return read_rocpd
    if is_nsys(database):
        return read_nsys
    tables = ", ".join(sorted(database.columns)[:5]) or "none"
    raise UnknownTraceFormat(
        "TR063",
        f"an SQLite database, but no trace that is known (tables: {tables})",
        location=database.source,
        hint="name a database written by rocprofv3 (rocpd), rpd or `nsys export --type sqlite`",
    )


@contextmanager
def open_database(path: Path, source: str, *, salvage: bool = False) -> Iterator[Database]:
    """Open a database file, compressed or not; nothing is written beside it.

    A file with a journal beside it was not closed: then a copy of both is opened, because the
    journal holds rows, and because opening it in place would change the user's files.
    """
    with tempfile.TemporaryDirectory(prefix="label-agent-") as scratch:
        file, mode = _plain_file(path, source, Path(scratch))
        connection = None
        try:
            connection = sqlite3.connect(f"{file.resolve().as_uri()}?{mode}", uri=True)
            connection.execute("PRAGMA trusted_schema = OFF")
            yield Database(connection, source, size=file.stat().st_size, salvage=salvage)
        except sqlite3.OperationalError as err:
            message, hint = f"cannot be opened: {err}", "copy it to a folder you may write to"
            raise TraceError("TR013", message, location=source, hint=hint) from err
        except FAULTS as err:
            message, hint = f"damaged SQLite file: {err}", "copy or export it again"
            raise CorruptTrace("TR062", message, location=source, hint=hint) from err
        finally:
            if connection is not None:
                connection.close()


def _plain_file(path: Path, source: str, scratch: Path) -> tuple[Path, str]:
    """Give a file that SQLite may open, and how."""
    with path.open("rb") as file:
        plain = file.read(len(MAGIC)) == MAGIC
    copy = scratch / "trace.sqlite"
    if not plain:
        stream = ByteStream(path, source)
        with copy.open("wb") as file:
            file.writelines(stream)
        if stream.damage:
            raise CorruptTrace("TR010", stream.damage, location=source, hint="copy it again")
        return copy, "mode=ro&immutable=1"
    journals = [suffix for suffix in ("-wal", "-journal") if _is_filled(path, suffix)]
    if not journals:
        return path, "mode=ro&immutable=1"
    shutil.copyfile(path, copy)
    for suffix in journals:
        shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    return copy, "mode=rw"


def _is_filled(path: Path, suffix: str) -> bool:
    beside = Path(f"{path}{suffix}")
    return beside.is_file() and beside.stat().st_size > 0
