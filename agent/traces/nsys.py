"""Read an SQLite file that `nsys export --type sqlite` wrote.

Tables are created lazily and their columns vary by version, so everything but `start`, `end` and a
name is optional. Names are ids into `StringIds`; times are nanoseconds since the session began.
Each process with GPU work is a rank.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from agent.core.kernels import GpuWork, RankTrace, TraceInfo
from agent.core.proposals import Finding
from agent.errors import TraceError
from agent.traces.events import launches_graph
from agent.traces.gather import Events, finish_processes
from agent.traces.markers import step_of
from agent.traces.sqlite import Database, whole

_KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPIES: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
_FILLS: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
_CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_RANGES: Final = "NVTX_EVENTS"
_WHOLE_GRAPHS: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_NAMES: Final = ("demangledname", "mangledname", "shortname", "name")
_THREAD_BITS: Final = 0x1000000
"""A `globalTid` is its process's `globalPid` with the thread in the lowest 24 bits."""

_LAUNCHING: Final = re.compile(r"^cu(?:da)?\w*(?:Launch|Mem(?:cpy|set))")
_COPY_KINDS: Final[Mapping[object, str]] = {
    1: "Host-to-Device",
    2: "Device-to-Host",
    3: "Host-to-Array",
    4: "Array-to-Host",
    5: "Array-to-Array",
    6: "Array-to-Device",
    7: "Device-to-Array",
    8: "Device-to-Device",
    9: "Host-to-Host",
    10: "Peer-to-Peer",
}
"""CUPTI's `CUpti_ActivityMemcpyKind`, in the words of `nsys stats`."""


def is_nsys(database: Database) -> bool:
    """Tell an nsys export by its table of strings and its activities."""
    activities = any(name.startswith("cupti_activity") for name in database.columns)
    exported = database.has("META_DATA_EXPORT") or database.has("TARGET_INFO_SESSION_START_TIME")
    return database.has("StringIds", "id", "value") and (activities or exported)


def read_nsys(database: Database) -> tuple[RankTrace, ...]:
    """Read one export; one of several processes gives one `RankTrace` each.

    Raises:
        CorruptTrace: damaged, and the database is not opened for salvage.
        TraceError: no GPU kernels in it, or graphs recorded as a whole and nothing else.
    """
    return _Reader(database).read()


class _Reader:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.processes: dict[int | str, Events] = {}
        self.strings: dict[object, str] = {}
        self.told_apart = database.has(_KERNELS, "globalpid")
        self.annotated = False

    def read(self) -> tuple[RankTrace, ...]:
        database = self.database
        self._annotations()
        self._launches()
        self._kernels()
        self._transfers(_COPIES, "memcpy", "copyKind")
        self._transfers(_FILLS, "memset")
        whole = self._whole_graphs()
        if whole and not any(len(events) for events in self.processes.values()):
            raise _only_whole_graphs(database.source, whole[0])
        info = TraceInfo(
            source=database.source,
            format="nsys-sqlite",
            vendor="cuda",
            complete=database.complete,
            skipped_events=database.skipped,
        )
        return finish_processes(
            self.processes,
            info,
            devices=self._device_names(),
            findings=(*database.findings, *whole),
        )

    def _events(self, global_id: object) -> Events:
        """Give a process by its id or by that of one of its threads."""
        key = global_id if self.told_apart and isinstance(global_id, int) else 0
        if key >= _THREAD_BITS:
            key -= key % _THREAD_BITS
        return self.processes.setdefault(key, Events())

    def _column(self, table: str, *names: str) -> str:
        """Give the first column that the table has, else NULL."""
        there = (name for name in names if self.database.has(table, name.lower()))
        return next((f'"{name}"' for name in there), "NULL")

    def _select(self, table: str, *columns: str) -> str:
        chosen = ", ".join(columns)
        return f'SELECT {chosen}, "start", "end" FROM {table}'  # noqa: S608 - our own words

    def _place(self, table: str) -> list[str]:
        return [
            self._column(table, name)
            for name in ("globalPid", "deviceId", "streamId", "correlationId", "graphNodeId")
        ]

    def _read_strings(self, table: str, column: str) -> None:
        """Keep the strings that a column of a table refers to."""
        sql = f"SELECT id, value FROM StringIds WHERE id IN (SELECT {column} FROM {table})"  # noqa: S608
        text = self.database.text
        self.strings.update((number, text(value)) for number, value in self.database.rows(sql))

    def _annotations(self) -> None:
        """Keep the NVTX ranges whose names are those of steps."""
        if not self.database.has(_RANGES, "start", "end"):
            return
        text, number = self._column(_RANGES, "text"), self._column(_RANGES, "textId")
        if number != "NULL":
            self._read_strings(_RANGES, number)
        thread = self._column(_RANGES, "globalTid")
        for name, name_id, global_tid, start, end in self.database.rows(
            self._select(_RANGES, text, number, thread)
        ):
            name = name if isinstance(name, str) else self.strings.get(name_id)  # noqa: PLW2901
            if step := step_of(name, start, end):
                self._events(global_tid).annotations.append(step)
                self.annotated = True

    def _launches(self) -> None:
        """Count launching calls, and keep the graph launches."""
        table = _CALLS
        if not self.database.has(table, "nameid", "start", "correlationid"):
            return
        self._read_strings(table, "nameId")
        launching = {
            key: launches_graph(name)
            for key, name in self.strings.items()
            if _LAUNCHING.match(name)
        }
        thread = self._column(table, "globalTid")
        sql = f"SELECT {thread}, nameId, start, correlationId FROM {table}"  # noqa: S608
        for global_tid, name, start, correlation in self.database.rows(sql):
            if name in launching:
                launches = self._events(global_tid).launches
                launches.count += 1
                if self.annotated and isinstance(start, int):
                    launches.started[whole(correlation)] = start
                if launching[name] and isinstance(start, int):
                    launches.graphs.append((start, whole(correlation)))

    def _kernels(self) -> None:
        table = _KERNELS
        if table.lower() not in self.database.columns:
            return
        self.database.require(table, "start", "end")
        column = self._column(table, *_NAMES)
        if column == "NULL":
            self.database.require(table, _NAMES[0])
        self._read_strings(table, column)
        for number, row in enumerate(
            self.database.rows(self._select(table, column, *self._place(table))), 1
        ):
            name = self.strings.get(row[0]) or (row[0] if isinstance(row[0], str) else "")
            self._add(table, number, (name or f"unknown kernel {row[0]}", "kernel"), row[1:])

    def _transfers(self, table: str, work: GpuWork, *kind: str) -> None:
        if not self.database.has(table, "start", "end"):
            return
        column = self._column(table, *kind)
        for number, row in enumerate(
            self.database.rows(self._select(table, column, *self._place(table))), 1
        ):
            how = _COPY_KINDS.get(row[0], "")
            name = f"[CUDA {work} {how}]" if how else f"[CUDA {work}]"
            self._add(table, number, (name, work), row[1:])

    def _add(
        self, table: str, number: int, what: tuple[str, GpuWork], row: tuple[Any, ...]
    ) -> None:
        process, device, stream, correlation, node, start, end = row
        name, work = what
        self.database.add(
            self._events(process),
            (name, work, bool(node)),
            (start, end),
            place=(device, stream, None),
            correlation=correlation,
            row=(table, number),
        )

    def _whole_graphs(self) -> list[Finding]:
        """Warn of graphs whose kernels were not recorded one by one."""
        if not self.database.has(_WHOLE_GRAPHS, "start", "end"):
            return []
        sql = f'SELECT count(*), sum("end" - "start") FROM {_WHOLE_GRAPHS}'  # noqa: S608
        count, time_ns = next(self.database.rows(sql), (0, 0))
        if not count:
            return []
        message = (
            f"{count} graph replays of {time_ns} ns in all were recorded as a whole: their kernels"
            " are missing from every figure"
        )
        return [
            Finding(
                "TR067",
                message,
                severity="warning",
                location=self.database.source,
                hint="capture again with nsys profile --cuda-graph-trace=node",
            )
        ]

    def _device_names(self) -> dict[int | str, tuple[str, ...]]:
        """Give the names of the GPUs that each process used."""
        if not self.database.has("TARGET_INFO_GPU", "id", "name"):
            return {}
        rows = self.database.rows("SELECT id, name FROM TARGET_INFO_GPU ORDER BY id")
        names = {number: str(name) for number, name in rows}
        return {
            pid: tuple(
                dict.fromkeys(
                    names[device]
                    for device in sorted(set(events.rank.kernels.device))
                    if device in names
                )
            )
            for pid, events in self.processes.items()
        }


def _only_whole_graphs(source: str, finding: Finding) -> TraceError:
    return TraceError(finding.code, finding.message, location=source, hint=finding.hint)
