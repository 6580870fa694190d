"""Read an rpd file (rocmProfileData, schema 2 and 3; CUDA variant included).

GPU work is in `rocpd_op`: kernels launched one by one have opType `KernelExecution`, those of a
graph replay `Task`; counting the first alone loses the replays. Times are nanoseconds. Several
processes may share one file; each is a rank.
"""

from __future__ import annotations

import re
from typing import Final

from agent.core.kernels import GpuWork, RankTrace, TraceInfo, Vendor
from agent.core.proposals import Finding
from agent.traces.columns import UNKNOWN
from agent.traces.events import launches_graph
from agent.traces.gather import Events, finish_processes
from agent.traces.markers import step_of
from agent.traces.sqlite import Database, whole

_REPLAY: Final = "Task"
_CUDA_KERNELS: Final = frozenset({"Kernel", "ConcurrentKernel"})
_WORK: Final[tuple[tuple[GpuWork, re.Pattern[str]], ...]] = (
    ("memset", re.compile(r"fill|memset", re.IGNORECASE)),
    ("memcpy", re.compile(r"copy|memcpy|^(?:read|write)", re.IGNORECASE)),
    ("kernel", re.compile(r"kernel|dispatch|^task$", re.IGNORECASE)),
)
_NO_WORK: Final = re.compile(r"marker|barrier|wait|callback|^$", re.IGNORECASE)
_LAUNCHING: Final = re.compile(r"^(?:hip|cu)\w*(?:Launch|Mem(?:cpy|set))")

_OPS: Final = """
SELECT o.id, o.gpuId, o.queueId, o.sequenceId, o.start, o.end, o.description_id, o.opType_id,
       x.api_id, a.pid, a.apiName_id{kernel_name}
FROM rocpd_op o
LEFT JOIN (SELECT op_id, min(api_id) AS api_id FROM rocpd_api_ops GROUP BY op_id) x
       ON x.op_id = o.id
LEFT JOIN rocpd_api a ON a.id = x.api_id{kernel_api}
ORDER BY o.id
"""
_STRINGS: Final = """
SELECT id, string FROM rocpd_string WHERE id IN (
    SELECT description_id FROM rocpd_op UNION SELECT opType_id FROM rocpd_op
    UNION SELECT apiName_id FROM rocpd_api{kernel_names})
"""
_MARKED: Final = """
SELECT a.pid, a.start, a.end, s.string FROM rocpd_api a JOIN rocpd_string s ON s.id = a.args_id
WHERE a.apiName_id IN (SELECT id FROM rocpd_string WHERE string = 'UserMarker')
"""
_OWNERS: Final = """
SELECT o.gpuId, min(a.pid), count(DISTINCT a.pid) FROM rocpd_op o
JOIN rocpd_api_ops x ON x.op_id = o.id JOIN rocpd_api a ON a.id = x.api_id GROUP BY o.gpuId
"""


def is_rpd(database: Database) -> bool:
    """Tell an rpd file by its table of operations."""
    return database.has("rocpd_op", "gpuid") and database.has("rocpd_string")


def read_rpd(database: Database) -> tuple[RankTrace, ...]:
    """Read one file; a file of several processes gives one `RankTrace` each.

    Raises:
        CorruptTrace: damaged, and the database is not opened for salvage.
        TraceError: no GPU kernels in it.
    """
    for table, columns in (
        ("rocpd_op", "id gpuid queueid sequenceid start end description_id optype_id"),
        ("rocpd_string", "id string"),
        ("rocpd_api", "id pid start apiname_id"),
        ("rocpd_api_ops", "op_id api_id"),
    ):
        database.require(table, *columns.split())
    return _Reader(database).read()


class _Reader:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.processes: dict[int | str, Events] = {}
        self.unknown: dict[str, int] = {}
        self.vendor: Vendor = "rocm"
        self.owners: dict[object, int] | None = None
        named = database.has("rocpd_kernelapi", "api_ptr_id", "kernelname_id")
        self.kernel_name = ", k.kernelName_id" if named else ", NULL"
        self.kernel_api = (
            "\nLEFT JOIN rocpd_kernelapi k ON k.api_ptr_id = x.api_id" if named else ""
        )
        kernel_names = " UNION SELECT kernelName_id FROM rocpd_kernelapi" if named else ""
        self.strings = {
            number: database.text(string)
            for number, string in database.rows(_STRINGS.format(kernel_names=kernel_names))
        }

    def read(self) -> tuple[RankTrace, ...]:
        database = self.database
        self._annotations()
        self._launches()
        self._operations()
        info = TraceInfo(
            source=database.source,
            format="rpd",
            vendor=self.vendor,
            complete=database.complete,
            skipped_events=database.skipped,
        )
        return finish_processes(self.processes, info, findings=self._findings())

    def _events(self, pid: object) -> Events:
        key = pid if isinstance(pid, int) else UNKNOWN
        return self.processes.setdefault(key, Events())

    def _annotations(self) -> None:
        """Keep the ROCTx ranges whose messages are names of steps."""
        if self.database.has("rocpd_api", "end", "args_id"):
            for pid, start, end, message in self.database.rows(_MARKED):
                if step := step_of(self.database.text(message), start, end):
                    self._events(pid).annotations.append(step)

    def _launches(self) -> None:
        """Count launching calls, and keep the graph launches."""
        launching = {
            key: launches_graph(name)
            for key, name in self.strings.items()
            if _LAUNCHING.match(name)
        }
        rows = self.database.rows("SELECT id, pid, start, apiName_id FROM rocpd_api")
        for api_id, pid, start, name_id in rows:
            if name_id in launching:
                events = self._events(pid)
                events.launches.count += 1
                if events.annotations and isinstance(start, int):
                    events.launches.started[whole(api_id)] = start
                if launching[name_id] and isinstance(start, int):
                    events.launches.graphs.append((start, whole(api_id)))

    def _operations(self) -> None:
        sql = _OPS.format(kernel_name=self.kernel_name, kernel_api=self.kernel_api)
        database, strings = self.database, self.strings
        works: dict[object, GpuWork | None] = {}
        rows = database.rows(sql)
        for op_id, gpu, queue, seq, start, end, what, kind, api_id, pid, call, kernel in rows:
            if kind not in works:
                works[kind] = self._work(strings.get(kind, ""))
            work = works[kind]
            if work is None:
                continue
            op_type = strings.get(kind, "")
            name = strings.get(what) or (work == "kernel" and strings.get(kernel)) or op_type
            replayed = op_type == _REPLAY or launches_graph(strings.get(call, ""))
            stream = seq if self.vendor == "cuda" else UNKNOWN
            database.add(
                self._events(self._owner(gpu) if pid is None else pid),
                (name, work, replayed),
                (start, end),
                place=(gpu, stream, queue),
                correlation=api_id,
                row=("rocpd_op", op_id),
            )

    def _work(self, op_type: str) -> GpuWork | None:
        """Tell what an opType does; None for what is not GPU work."""
        if op_type in _CUDA_KERNELS:
            self.vendor = "cuda"
        if not _NO_WORK.search(op_type):
            for work, pattern in _WORK:
                if pattern.search(op_type):
                    return work
            self.unknown[op_type] = self.unknown.get(op_type, 0) + 1
        return None

    def _owner(self, gpu: object) -> int:
        """Give the process that alone uses a GPU, for an operation without a call; else -1."""
        if self.owners is None:
            rows = self.database.rows(_OWNERS)
            self.owners = {device: pid for device, pid, n_pids in rows if n_pids == 1}
        return self.owners.get(gpu, UNKNOWN)

    def _findings(self) -> tuple[Finding, ...]:
        named = ", ".join(f"'{op_type}'" for op_type in sorted(self.unknown))
        unknown = (
            [
                Finding(
                    "TR069",
                    f"operations of type {named} are not known and not counted",
                    severity="warning",
                    location=self.database.source,
                )
            ]
            if named
            else []
        )
        return (*self.database.findings, *unknown)
