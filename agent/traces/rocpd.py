"""Read a rocpd database (rocprofv3 `--output-format rocpd`, rocprofiler-systems).

Its tables carry a GUID suffix, one set for each process. The views `kernels` and `memory_copies`
join one set, and so tightly that a dispatch without a thread or a region falls out: where the
tables hold another number of rows than the view shows, the tables are read. Times are nanoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent.core.kernels import GpuWork, RankTrace, TraceInfo
from agent.core.proposals import Finding
from agent.traces.events import launches_graph
from agent.traces.gather import Events, finish_processes
from agent.traces.markers import message_of, step_of
from agent.traces.sqlite import Database

_WORDS: Final = re.compile(r"\b[a-z_]+\b")
_COLUMN: Final = re.compile(r'\b([A-Z])\."?(\w+)"?')
_CALLS: Final = "(name GLOB 'hip*Launch*' OR name GLOB 'hipMem[cs]*')"
_MARKED: Final = "name GLOB 'roctx*Range*'"


@dataclass(frozen=True, slots=True)
class _Source:
    """A view, the tables that hold the same, and the name, joins and columns to read them by.

    `columns` maps what a row gives to where the view and where the tables hold it.
    """

    view: str
    table: str
    columns: Mapping[str, tuple[str, str]]
    joins: tuple[tuple[str, str, str], ...]


_PROCESS: Final = ("P", "rocpd_info_process", "P.id = T.pid")
_EVENT: Final = ("E", "rocpd_event", "E.id = T.event_id")
_KERNELS: Final = _Source(
    "kernels",
    "rocpd_kernel_dispatch",
    {
        "name": ("name", "N.display_name"),
        "start": ("start", "T.start"),
        "end": ('"end"', 'T."end"'),
        "guid": ("guid", "T.guid"),
        "pid": ("pid", "P.pid"),
        "device": ("agent_abs_index", "A.absolute_index"),
        "other_device": ("agent_log_index", "A.logical_index"),
        "stream": ("stream_id", "T.stream_id"),
        "queue": ("queue_id", "T.queue_id"),
        "correlation": ("stack_id", "E.stack_id"),
    },
    (
        ("N", "rocpd_info_kernel_symbol", "N.id = T.kernel_id"),
        ("A", "rocpd_info_agent", "A.id = T.agent_id"),
        _PROCESS,
        _EVENT,
    ),
)
_COPIES: Final = _Source(
    "memory_copies",
    "rocpd_memory_copy",
    {
        "name": ("name", "N.string"),
        "start": ("start", "T.start"),
        "end": ('"end"', 'T."end"'),
        "guid": ("guid", "T.guid"),
        "pid": ("pid", "P.pid"),
        "device": (
            "CASE dst_agent_type WHEN 'GPU' THEN dst_agent_abs_index ELSE src_agent_abs_index END",
            "CASE A.type WHEN 'GPU' THEN A.absolute_index ELSE S.absolute_index END",
        ),
        "other_device": ("NULL", "NULL"),
        "stream": ("stream_id", "T.stream_id"),
        "queue": ("queue_id", "T.queue_id"),
        "correlation": ("stack_id", "E.stack_id"),
    },
    (
        ("N", "rocpd_string", "N.id = T.name_id"),
        ("A", "rocpd_info_agent", "A.id = T.dst_agent_id"),
        ("S", "rocpd_info_agent", "S.id = T.src_agent_id"),
        _PROCESS,
        _EVENT,
    ),
)
_REGIONS: Final = _Source(
    "regions",
    "rocpd_region",
    {
        "name": ("name", "N.string"),
        "start": ("start", "T.start"),
        "end": ('"end"', 'T."end"'),
        "guid": ("guid", "T.guid"),
        "pid": ("pid", "P.pid"),
        "correlation": ("stack_id", "E.stack_id"),
        "extdata": ("extdata", "E.extdata"),
    },
    (("N", "rocpd_string", "N.id = T.name_id"), _PROCESS, _EVENT),
)


def is_rocpd(database: Database) -> bool:
    """Tell a rocpd database by its dispatch tables or its view of kernels."""
    has_tables = any(name.startswith(_KERNELS.table) for name in database.columns)
    return has_tables or database.has("kernels", "name", "start", "end")


def read_rocpd(database: Database) -> tuple[RankTrace, ...]:
    """Read one database; one of several processes gives one `RankTrace` each.

    Raises:
        CorruptTrace: damaged, and the database is not opened for salvage.
        TraceError: no GPU kernels in it.
    """
    return _Reader(database).read()


class _Reader:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.processes: dict[int | str, Events] = {}
        self.findings: list[Finding] = []

    def read(self) -> tuple[RankTrace, ...]:
        database = self.database
        self._annotations()
        self._launches()
        self._work(_KERNELS, "kernel")
        self._work(_COPIES, "memcpy")
        info = TraceInfo(
            source=database.source,
            format="rocpd",
            vendor="rocm",
            complete=database.complete,
            skipped_events=database.skipped,
        )
        return finish_processes(
            self.processes,
            info,
            devices=self._device_names(),
            findings=(*database.findings, *self.findings),
        )

    def _events(self, guid: object, pid: object) -> Events:
        number = pid if isinstance(pid, int) else 0
        return self.processes.setdefault(f"{number:020d}/{guid or ''}", Events())

    def _annotations(self) -> None:
        """Keep the ROCTx ranges whose messages are names of steps."""
        for _, start, end, guid, pid, _, extdata in self._rows(_REGIONS, _MARKED):
            if step := step_of(message_of(extdata), start, end):
                self._events(guid, pid).annotations.append(step)

    def _launches(self) -> None:
        for name, start, _, guid, pid, correlation, _ in self._rows(_REGIONS, _CALLS):
            events = self._events(guid, pid)
            events.launches.count += 1
            if isinstance(start, int) and isinstance(correlation, int):
                if events.annotations:
                    events.launches.started[correlation] = start
                if launches_graph(self.database.text(name)):
                    events.launches.graphs.append((start, correlation))

    def _work(self, source: _Source, work: GpuWork) -> None:
        for number, row in enumerate(self._rows(source), 1):
            name, start, end, guid, pid, device, other, stream, queue, correlation = row
            self.database.add(
                self._events(guid, pid),
                (self.database.text(name) or f"unknown {work}", work, False),
                (start, end),
                place=(other if device is None else device, stream, queue),
                correlation=correlation,
                row=(source.view, number),
            )

    def _rows(self, source: _Source, where: str = "") -> Iterator[tuple[Any, ...]]:
        """Give the rows of a view, or of the tables behind it where they hold another number."""
        tables = self._suffixes(source)
        in_view = self._count(source.view) if self._is_usable(source) else None
        in_tables = sum(self._count(source.table + suffix) or 0 for suffix in tables)
        if in_view is None or (tables and in_view != in_tables):
            if in_view is not None:
                self._note_hidden(source, in_view, in_tables)
            for suffix in tables:
                yield from self.database.rows(self._of_tables(source, suffix, where))
            return
        yield from self.database.rows(self._of_view(source, where))

    def _is_usable(self, source: _Source) -> bool:
        return self.database.has(source.view, "name", "start")

    def _suffixes(self, source: _Source) -> list[str]:
        """Give what follows the base name in each table of the source, in order."""
        stem = len(source.table)
        return [
            name[stem:]
            for name in sorted(self.database.tables)
            if name.startswith(source.table) and self.database.has(name, "start", "pid")
        ]

    def _count(self, name: str) -> int | None:
        count = self.database.one(f'SELECT count(*) FROM "{_quoted(name)}"')  # noqa: S608 - quoted
        return count if isinstance(count, int) else None

    def _of_view(self, source: _Source, where: str) -> str:
        known = self.database.columns[source.view]
        chosen = ", ".join(
            expression if known.issuperset(_WORDS.findall(expression)) else "NULL"
            for expression, _ in source.columns.values()
        )
        condition = f" WHERE {where}" if where else ""
        return f'SELECT {chosen} FROM "{source.view}"{condition}'  # noqa: S608 - our own words

    def _of_tables(self, source: _Source, suffix: str, where: str) -> str:
        """Join what is there; a missing table or column gives NULL."""
        there = {"T": source.table + suffix}
        joins = []
        for alias, table, on in source.joins:
            joined = {**there, alias: table + suffix}
            if self._knows(on, joined):
                there = joined
                joins.append(f'LEFT JOIN "{_quoted(table + suffix)}" {alias} ON {on}')
        columns = [
            expression if self._knows(expression, there) else "NULL"
            for _, expression in source.columns.values()
        ]
        chosen = ", ".join(columns)
        condition = f" WHERE {where.replace('name', columns[0])}" if where else ""
        table = _quoted(source.table + suffix)
        return f'SELECT {chosen} FROM "{table}" T {" ".join(joins)}{condition}'  # noqa: S608

    def _knows(self, expression: str, tables: Mapping[str, str]) -> bool:
        """Tell whether the tables hold all columns of an expression; `tables` are by alias."""
        return all(
            alias in tables and self.database.has(tables[alias], column)
            for alias, column in _COLUMN.findall(expression)
        )

    def _note_hidden(self, source: _Source, in_view: int, in_tables: int) -> None:
        message = (
            f"view {source.view} shows {in_view} of {in_tables} rows: the tables behind it were"
            " read instead"
        )
        finding = Finding("TR068", message, severity="note", location=self.database.source)
        if finding not in self.findings:
            self.findings.append(finding)

    def _device_names(self) -> dict[int | str, tuple[str, ...]]:
        """Give the names of the GPUs that each process used."""
        names: dict[tuple[object, object], str] = {}
        for table in self.database.tables:
            wanted = ("guid", "absolute_index", "product_name", "name", "type")
            if table.startswith("rocpd_info_agent") and self.database.has(table, *wanted):
                sql = f'SELECT {", ".join(wanted)} FROM "{_quoted(table)}"'  # noqa: S608 - quoted
                for guid, index, product, name, kind in self.database.rows(sql):
                    if kind == "GPU":
                        names[guid or "", index] = str(product or name or "")
        return {
            key: tuple(
                dict.fromkeys(
                    name
                    for device in sorted(set(events.rank.kernels.device))
                    if (name := names.get((str(key).partition("/")[2], device)))
                )
            )
            for key, events in self.processes.items()
        }


def _quoted(name: str) -> str:
    return name.replace('"', '""')
