"""Read what rocprofv3 writes as CSV: `kernel_trace.csv` and `kernel_stats.csv`.

The trace's columns were added over the versions (6.2: Kind … Kernel_Id, Kernel_Name, …; then
Thread_Id and Dispatch_Id; then Stream_Id and LDS/VGPR columns; `rocpd convert`: Guid first), and
rocprof v1 and v2 call theirs BeginNs / EndNs and gpu-id. Needed are a name, a start and an end, in
nanoseconds. The statistics hold sums only: no timeline.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from agent.core.kernels import (
    GpuWork,
    KernelName,
    RankTrace,
    Signature,
    SignatureStats,
    TraceInfo,
    merge_stats,
)
from agent.core.proposals import Finding
from agent.errors import CorruptTrace, UnknownTraceFormat
from agent.traces.columns import UNKNOWN
from agent.traces.gather import Events, finish_processes, no_kernels, number_in
from agent.traces.ranks import parse_file_name, stem_of
from agent.traces.table import Row, Table

_NAME: Final = ("kernelname",)
_START: Final = ("starttimestamp", "beginns", "startns")
_END: Final = ("endtimestamp", "endns")
_DEVICE: Final = ("agentid", "gpuid")
_STREAM: Final = ("streamid",)
_QUEUE: Final = ("queueid",)
_CORRELATION: Final = ("correlationid",)
_PROCESS: Final = ("guid", "processid", "pid")
_KINDS: Final[dict[str, GpuWork]] = {"": "kernel", "KERNEL_DISPATCH": "kernel"}

_MOST_DIGITS: Final = 20
_CUT: Final = "the file ends without a line end, and this kernel before it began"
_NOT_A_KERNEL: Final = re.compile(
    r"^(?:_{0,2}hip|hsa_|roctx|rocDec|rocJpeg|nccl)\w*$"
    r"|^(?:HIP|HSA|MARKER|ROCTX|RCCL|ROCDECODE|ROCJPEG|SCRATCH|MEMORY)_[A-Z_]+$|^KERNEL_DISPATCH$"
)


def read_kernel_trace(path: Path, source: str, *, salvage: bool = False) -> tuple[RankTrace, ...]:
    """Read one `kernel_trace.csv`; one with several GUIDs or processes gives a rank for each.

    Raises:
        CorruptTrace: a row is damaged and `salvage` is off, or a column is missing.
        UnknownTraceFormat: the file holds counters: the same dispatch once for each of them.
        TraceError: no kernels in it.
    """
    table = Table(path, source, salvage=salvage)
    processes: dict[int | str, Events] = {}
    others: set[str] = set()
    for row in table:
        _require_columns(row, source)
        kind = row.text("kind")
        work = _KINDS.get(kind)
        if work is None:
            others.add(kind)
            continue
        try:
            process = row.text(*_PROCESS)
            key = int(process) if _is_id(process) else process
            _add(processes.setdefault(key, Events()), row, work)
        except (ValueError, OverflowError) as err:
            table.bad_row(row.line, str(err) or "a time does not fit in 64 bits")
    info = TraceInfo(
        source=source,
        format="rocprofv3-csv",
        vendor="rocm",
        complete=table.complete,
        skipped_events=table.skipped,
    )
    findings = (*table.findings, *_not_counted(others, source))
    return finish_processes(processes, info, findings=findings)


def _require_columns(row: Row, source: str) -> None:
    if "countername" in row.at:
        raise _is_counters(source)
    if not row.has(*_START) or not row.has(*_END):
        missing = "Start_Timestamp" if row.has(*_END) else "End_Timestamp"
        raise CorruptTrace(
            "TR060",
            f"no column {missing}",
            location=f"{source}:1",
            hint="run rocprofv3 --kernel-trace --output-format csv again",
        )


def _not_counted(kinds: set[str], source: str) -> list[Finding]:
    if not kinds:
        return []
    named = ", ".join(f"'{kind[:40]}'" for kind in sorted(kinds)[:5])
    message = f"rows of kind {named} are not known and not counted"
    return [Finding("TR069", message, severity="warning", location=source)]


def _add(events: Events, row: Row, work: GpuWork) -> None:
    start, end = row.number(*_START), row.number(*_END)
    if row.is_cut and end < start:
        raise ValueError(_CUT)
    correlation = row.text(*_CORRELATION)
    name = row.text(*_NAME) or f"unknown kernel {row.text('kernelid')}".strip()
    events.add(
        (name, work, False),
        start,
        end,
        place=(
            number_in(row.text(*_DEVICE)),
            number_in(row.text(*_STREAM)),
            number_in(row.text(*_QUEUE)),
        ),
        correlation=int(correlation) if _is_id(correlation) else UNKNOWN,
    )


def _is_id(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def _is_counters(source: str) -> UnknownTraceFormat:
    return UnknownTraceFormat(
        "TR064",
        "a table of hardware counters: every dispatch is there once for each counter",
        location=source,
        hint="run rocprofv3 --kernel-trace and name its kernel_trace.csv",
    )


def read_kernel_stats(path: Path, source: str, *, salvage: bool = False) -> tuple[RankTrace, ...]:
    """Read one `kernel_stats.csv` into sums; it has no timeline, so no busy time and no span.

    Raises:
        CorruptTrace: a row is damaged and `salvage` is off.
        UnknownTraceFormat: statistics of API calls, copies or domains.
        TraceError: no kernels in it.
    """
    table = Table(path, source, salvage=salvage)
    parts: list[dict[Signature, SignatureStats]] = []
    bounded = True
    for row in table:
        try:
            stats = _sums(row)
        except ValueError as err:
            table.bad_row(row.line, str(err))
            continue
        bounded &= "minns" in row.at and "maxns" in row.at
        if stats:
            parts.append({Signature(KernelName(row.text("name"))): stats})
    kernels = merge_stats(parts)
    if not kernels:
        raise no_kernels(source, complete=table.complete)
    if all(_NOT_A_KERNEL.match(signature.name) for signature in kernels):
        raise _is_no_kernels(source, next(iter(kernels)).name)
    named = parse_file_name(source)
    rank = RankTrace(
        label=named.label or stem_of(source),
        info=TraceInfo(
            source=source,
            format="rocprofv3-stats",
            vendor="rocm",
            complete=table.complete,
            skipped_events=table.skipped,
        ),
        stats=kernels,
        rank=named.number,
        stage=named.stage,
        findings=(*table.findings, *([] if bounded else [_unbounded(source)])),
    )
    return (rank,)


def _sums(row: Row) -> SignatureStats | None:
    """Give the sums of one row; None for a kernel that never ran."""
    calls, total = row.number("calls"), row.number("totaldurationns")
    if calls < 0 or total < 0:
        message = f"{calls} calls of {total} ns in all"
        raise ValueError(message)
    if not calls:
        return None
    has_bounds = "minns" in row.at and "maxns" in row.at
    least = row.number("minns") if has_bounds else total // calls
    most = row.number("maxns") if has_bounds else -(-total // calls)
    if not least * calls <= total <= most * calls:
        message = f"{calls} calls of {least} to {most} ns do not add up to {total} ns"
        raise ValueError(message)
    return SignatureStats(calls, total, least, most)


def _is_no_kernels(source: str, name: str) -> UnknownTraceFormat:
    return UnknownTraceFormat(
        "TR064",
        f"statistics, but not of kernels (the first is '{name[:80]}')",
        location=source,
        hint="name the kernel_stats.csv or the kernel_trace.csv beside it",
    )


def _unbounded(source: str) -> Finding:
    return Finding(
        "TR071",
        "the file gives no shortest and longest call: both are shown as the average",
        severity="note",
        location=source,
    )
