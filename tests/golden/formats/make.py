"""Write the golden folders of the formats: small inputs, and what a reader must find in them.

    python tests/golden/formats/make.py            write them
    python tests/golden/formats/make.py --check    fail when one differs

The truth is the list of events below. The inputs are those events in the words of each profiler, the
expectations are sums over the list; no reader of ours is used. SQLite inputs are kept as SQL, since
their bytes depend on the SQLite that writes them.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
ORIGIN = 1_550_151_853_000_000
"""Nanoseconds of a boot clock, as the profilers write them."""

GEMM = "Cijk_Alik_Bljk_BBS_BH_MT256x16x64_MI16x16x1_SN"
CAST = (
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
    "at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}, "
    "std::array<char*, 2ul>, 4>(int, char)"
)
NORM = "_ZN5aiter14rmsnorm_kernelIDF16bEEvPT_PKS1_fi"
TRITON = 'triton_poi_fused_add, "quoted" [x/y]'
COMM = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"


@dataclass(frozen=True)
class Event:
    """One thing the GPU did; times relative to ORIGIN."""

    name: str
    start: int
    end: int
    device: int = 4
    stream: int = 1
    queue: int = 3
    correlation: int = 0
    work: str = "kernel"
    replayed: bool = False
    process: int = 4711


EVENTS = (
    Event(NORM, 1_000, 6_000, correlation=11),
    Event(GEMM, 7_000, 47_000, correlation=12),
    Event(COMM, 20_000, 60_000, stream=2, queue=5, correlation=13),
    Event(CAST, 48_000, 50_500, correlation=14),
    Event(GEMM, 61_000, 99_999, correlation=15),
    Event(TRITON, 100_000, 100_000, correlation=16),
    Event(NORM, 200_000, 204_000, correlation=17, replayed=True),
    Event(GEMM, 204_000, 241_000, correlation=17, replayed=True),
    Event(NORM, 300_000, 304_500, correlation=18, replayed=True),
    Event(GEMM, 304_500, 340_000, correlation=18, replayed=True),
)
COPY = Event("copy", 110_000, 130_000, correlation=19, work="memcpy")
FILL = Event("fill", 131_000, 131_400, correlation=20, work="memset")


# --- what a reader must find -------------------------------------------------------------------


def expect(events, *, label, streams="stream", launches=0, graph_launches=(), **more):
    """Sum a list of events by plain arithmetic."""
    named = defaultdict(list)
    for event in events:
        mark = " (replayed)" if event.replayed else ""
        named[f"{event.work}: {event.name}{mark}"].append(event.end - event.start)
    kernels = [event for event in events if event.work == "kernel"]
    replayed = [event for event in events if event.replayed]
    per_launch = [
        sum(event.correlation == launch for event in replayed) for launch in graph_launches
    ]
    return {
        "label": label,
        "kernels": len(kernels),
        "kernel_ns": sum(event.end - event.start for event in kernels),
        "busy_ns": sum(
            busy([event for event in kernels if event.device == device])
            for device in {event.device for event in kernels}
        ),
        "span_ns": max(event.end for event in kernels) - min(event.start for event in kernels),
        "devices": sorted({event.device for event in events}),
        "streams": sorted({getattr(event, streams) for event in events}),
        "launches": launches,
        "graph_launches": per_launch,
        "graph_events": len(replayed),
        "graph_ns": sum(event.end - event.start for event in replayed),
        "signatures": {
            name: [len(times), sum(times), min(times), max(times)]
            for name, times in sorted(named.items())
        },
        **more,
    }


def busy(events):
    """Count the nanoseconds between neighbouring edges that some event covers."""
    edges = sorted({edge for event in events for edge in (event.start, event.end)})
    return sum(
        right - left
        for left, right in zip(edges, edges[1:])
        if any(event.start <= left and right <= event.end for event in events)
    )


def plain(events):
    """Forget what only an API trace would tell: replays."""
    return [replace(event, replayed=False) for event in events]


# --- rocprofv3 CSV -----------------------------------------------------------------------------

TAIL_62 = "Private_Segment_Size Group_Segment_Size".split()
TAIL_70 = "LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count".split()
SIZES = "Workgroup_Size_X Workgroup_Size_Y Workgroup_Size_Z Grid_Size_X Grid_Size_Y Grid_Size_Z".split()
MIDDLE = "Kernel_Id Kernel_Name Correlation_Id Start_Timestamp End_Timestamp".split()
HEADERS = {
    "rocm-6.2": [*"Kind Agent_Id Queue_Id".split(), *MIDDLE, *TAIL_62, *SIZES],
    "rocm-6.3": [*"Kind Agent_Id Queue_Id Thread_Id Dispatch_Id".split(), *MIDDLE, *TAIL_62, *SIZES],
    "rocm-7.0": [
        *"Kind Agent_Id Queue_Id Stream_Id Thread_Id Dispatch_Id".split(), *MIDDLE, *TAIL_70, *SIZES,
    ],
    "rocpd-convert": [
        *"Guid Kind Agent_Id Queue_Id Stream_Id Thread_Id Dispatch_Id".split(),
        *MIDDLE, *(name.title() for name in TAIL_70), *SIZES,
    ],
    "rocprof-v1": (
        "Index KernelName gpu-id queue-id queue-index pid tid grd wgr lds scr arch_vgpr accum_vgpr sgpr"
        " wave_size sig obj DispatchNs BeginNs EndNs CompleteNs DurationNs"
    ).split(),
    "rocprof-v2": (
        "Dispatch_ID GPU_ID Queue_ID PID TID Grid_Size Workgroup_Size LDS_Per_Workgroup"
        " Scratch_Per_Workitem Arch_VGPR Accum_VGPR SGPR Wave_Size Kernel_Name Start_Timestamp"
        " End_Timestamp Correlation_ID"
    ).split(),
}


def csv_text(header, events, *, agent="{}", quoting=csv.QUOTE_NONNUMERIC):
    out = io.StringIO()
    writer = csv.writer(out, quoting=quoting, lineterminator="\n")
    writer.writerow(header)
    for number, event in enumerate(events, 1):
        agent_id = agent.format(event.device)
        device = int(agent_id) if agent_id.isdecimal() and quoting != csv.QUOTE_ALL else agent_id
        known = {
            "guid": "0000ddb5-8903-7903-b269-cd8d3745bb8a",
            "kind": "KERNEL_DISPATCH",
            "agentid": device,
            "gpuid": event.device,
            "queueid": event.queue,
            "streamid": event.stream,
            "pid": event.process,
            "dispatchid": number,
            "index": number - 1,
            "kernelname": event.name,
            "correlationid": event.correlation,
            "starttimestamp": ORIGIN + event.start,
            "endtimestamp": ORIGIN + event.end,
            "beginns": ORIGIN + event.start,
            "endns": ORIGIN + event.end,
            "durationns": event.end - event.start,
        }
        writer.writerow([known.get("".join(c for c in name.lower() if c.isalnum()), 1) for name in header])
    return out.getvalue()


def rocprof_csv():
    events = plain(EVENTS)
    for name, header in HEADERS.items():
        streams = "stream" if "Stream_Id" in header else "queue"
        agent = "Agent {}" if "Stream_Id" in header else "{}"
        text = csv_text(header, events, agent=agent)
        expected = expect(events, label="kernel_trace.csv", streams=streams)
        yield f"rocprofv3-csv/{name}", "kernel_trace.csv", text, [expected]
    quoted = csv_text(HEADERS["rocm-7.0"], events, agent="{}", quoting=csv.QUOTE_ALL)
    expected = expect(events, label="kernel_trace.csv")
    yield "rocprofv3-csv/all-quoted", "kernel_trace.csv", quoted, [expected]
    spread = "\ufeff" + quoted.replace("\n", "\r\n")
    yield "rocprofv3-csv/from-a-spreadsheet", "kernel_trace.csv", spread, [expected]
    silent = [replace(event, stream=0) for event in events]
    text = csv_text(HEADERS["rocm-7.0"], silent, agent="Agent {}")
    expected = expect(silent, label="kernel_trace.csv", streams="queue")
    yield "rocprofv3-csv/streams-not-recorded", "kernel_trace.csv", text, [expected]
    second = [replace(event, process=4712, device=5, start=event.start + 7, end=event.end + 9) for event in events]
    text = csv_text(HEADERS["rocprof-v2"], [*second, *events])
    expected = [
        expect(events, label="GPU 4", streams="queue"),
        expect(second, label="GPU 5", streams="queue"),
    ]
    yield "rocprofv3-csv/two-processes", "kernel_trace.csv", text, expected


def rocprof_stats():
    named = defaultdict(list)
    for event in EVENTS:
        named[event.name].append(event.end - event.start)
    total = sum(map(sum, named.values()))
    rows = [
        [name, len(t), sum(t), f"{sum(t) / len(t):.6f}", f"{100 * sum(t) / total:.2f}", min(t), max(t), "0.000000"]
        for name, t in sorted(named.items(), key=lambda item: -sum(item[1]))
    ]
    header = "Name Calls TotalDurationNs AverageNs Percentage MinNs MaxNs StdDev".split()
    expected = {
        "label": "kernel_stats.csv",
        "kernels": len(EVENTS),
        "kernel_ns": total,
        "busy_ns": None,
        "span_ns": None,
        "signatures": {
            f"kernel: {name}": [len(t), sum(t), min(t), max(t)] for name, t in sorted(named.items())
        },
    }
    yield "rocprofv3-stats/rocprofv3", "kernel_stats.csv", table(header, rows), [expected]
    short = {
        f"kernel: {name}": [len(t), sum(t), sum(t) // len(t), -(-sum(t) // len(t))]
        for name, t in sorted(named.items())
    }
    text = table(header[:5], [row[:5] for row in rows])
    expected = {**expected, "signatures": short, "findings": ["TR071"]}
    yield "rocprofv3-stats/rocprof-v1", "kernel_stats.csv", text, [expected]


def table(header, rows):
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


# --- rocprofv3 JSON ----------------------------------------------------------------------------

OPERATIONS = [
    {"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API", "operations": ["hipFree", "hipLaunchKernel", "hipGraphLaunch", "hipMemcpyAsync"]},
    {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_DEVICE_TO_HOST"]},
    {"kind": "KERNEL_DISPATCH", "operations": ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_COMPLETE"]},
]
AGENTS = [
    {"id": {"handle": 900}, "type": 1, "node_id": 0, "name": "EPYC", "product_name": "EPYC"},
    {"id": {"handle": 904}, "type": 2, "node_id": 4, "name": "gfx942", "product_name": "AMD Instinct MI300X"},
    {"id": {"handle": 905}, "type": 2, "node_id": 5, "name": "gfx942", "product_name": ""},
]


def json_process(events, process, *, symbols_last=False):
    names = sorted({event.name for event in events if event.work == "kernel"})
    ids = {name: number for number, name in enumerate(names, 7)}
    symbols = [{"size": 0, "kernel_id": 0, "kernel_name": "", "formatted_kernel_name": "0"}] + [
        {"size": 80, "kernel_id": ids[name], "kernel_name": name, "formatted_kernel_name": "shown " + name}
        for name in names
    ]

    def record(kind, operation, event, **more):
        return {
            "size": 184, "kind": kind, "operation": operation, "thread_id": process,
            "correlation_id": {"internal": event.correlation, "external": 0},
            "start_timestamp": ORIGIN + event.start, "end_timestamp": ORIGIN + event.end, **more,
        }

    kernels = [
        record(
            3, 1, event,
            dispatch_info={
                "size": 72, "agent_id": {"handle": 900 + event.device}, "queue_id": {"handle": event.queue},
                "kernel_id": ids[event.name], "dispatch_id": number,
                "workgroup_size": {"x": 64, "y": 1, "z": 1}, "grid_size": {"x": 64, "y": 1, "z": 1},
            },
            stream_id={"handle": event.stream},
        )
        for number, event in enumerate(events, 1)
        if event.work == "kernel"
    ]
    copies = [
        record(
            2, 1, event, bytes=4096, dst_agent_id={"handle": 900},
            src_agent_id={"handle": 900 + event.device}, stream_id={"handle": event.stream},
        )
        for event in events
        if event.work == "memcpy"
    ]
    calls = []
    for correlation in sorted({event.correlation for event in events}):
        first = next(event for event in events if event.correlation == correlation)
        operation = 2 if first.replayed else 3 if first.work == "memcpy" else 1
        at = Event("", first.start - 900, first.start - 500, correlation=correlation)
        calls.append(record(1, operation, at))
    calls.append(record(1, 0, Event("", 400_000, 400_100, correlation=99)))
    parts = {
        "metadata": {"node": {"hostname": "host"}, "pid": process, "command": ["serve"]},
        "agents": AGENTS,
        "counters": [],
        "strings": {"buffer_records": OPERATIONS, "marker_api": []},
        "code_objects": [{"size": 0, "uri": 'file://a b "c" },{ '}],
        "kernel_symbols": symbols,
        "host_functions": [],
        "summary": [],
        "callback_records": {"counter_collection": []},
        "buffer_records": {
            "kernel_dispatch": kernels, "hip_api": calls, "hsa_api": [], "marker_api": [],
            "memory_copy": copies,
        },
    }
    if symbols_last:
        parts = dict(reversed(parts.items()))
    return parts


def rocprof_json():
    copy = replace(COPY, name="MEMORY_COPY_DEVICE_TO_HOST")
    events = [*EVENTS, copy]
    graphs = {"launches": 9, "graph_launches": (17, 18), "device_names": ["AMD Instinct MI300X"]}
    expected = expect(events, label="results", **graphs)
    one = {"rocprofiler-sdk-tool": [json_process(events, 4711)]}
    yield "rocprofv3-json/compact", "results.json", json.dumps(one, separators=(",", ":")), [expected]
    last = {"rocprofiler-sdk-tool": [json_process(events, 4711, symbols_last=True)]}
    yield "rocprofv3-json/names-after-records", "results.json", json.dumps(last, indent=1), [expected]
    second = [replace(event, device=5, start=event.start + 7, end=event.end + 9) for event in EVENTS]
    two = {"rocprofiler-sdk-tool": [json_process(second, 4712), json_process(events, 4711)]}
    yield (
        "rocprofv3-json/two-processes", "results.json", json.dumps(two),
        [
            expect(events, label="GPU 4", **graphs),
            expect(second, label="GPU 5", launches=8, graph_launches=(17, 18), device_names=["gfx942"]),
        ],
    )


# --- SQLite ------------------------------------------------------------------------------------


def sql(tables, rows):
    """Write a script: statements as they are, rows as INSERTs."""
    lines = ["BEGIN;", *tables]
    for name, members in rows.items():
        for member in members:
            lines.append(f'INSERT INTO "{name}" VALUES ({", ".join(map(literal, member))});')
    return "\n".join([*lines, "COMMIT;", ""])


def literal(value):
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def create(name, columns):
    quoted = ", ".join(f'"{column}"' for column in columns.split())
    return f'CREATE TABLE "{name}" ({quoted});'


class Ids(dict):
    def __missing__(self, key):
        self[key] = len(self) + 1
        return self[key]


def rocpd_tables(suffix, events, process, guid, *, loose=False):
    """The tables of one process; `loose` leaves out what the view `kernels` wants."""
    strings, kernels = Ids(), Ids()
    rows = defaultdict(list)
    for event in events:
        number = len(rows["rocpd_event" + suffix]) + 1
        rows["rocpd_event" + suffix].append((number, guid, event.correlation))
        at = (ORIGIN + event.start, ORIGIN + event.end)
        if event.work == "kernel":
            region = None if loose and event.name == CAST else strings[""]
            rows["rocpd_kernel_dispatch" + suffix].append(
                (number, guid, 1, 1, 1, event.device, kernels[event.name], number, event.queue, event.stream,
                 *at, region, number)
            )
        else:
            rows["rocpd_memory_copy" + suffix].append(
                (number, guid, 1, 1, 1, *at, strings[event.name], 0, event.device, 4096, event.queue,
                 event.stream, number)
            )
    for correlation in sorted({event.correlation for event in events}):
        first = next(event for event in events if event.correlation == correlation)
        call = "hipGraphLaunch" if first.replayed else "hipLaunchKernel" if first.work == "kernel" else "hipMemcpyAsync"
        number = len(rows["rocpd_event" + suffix]) + 1
        rows["rocpd_event" + suffix].append((number, guid, correlation))
        rows["rocpd_region" + suffix].append(
            (number, guid, 1, 1, 1, ORIGIN + first.start - 900, ORIGIN + first.start - 500, strings[call], number)
        )
    rows["rocpd_string" + suffix] = [(number, guid, text) for text, number in strings.items()]
    rows["rocpd_info_kernel_symbol" + suffix] = [
        (number, guid, 1, 1, name + ".kd", name) for name, number in kernels.items()
    ]
    rows["rocpd_info_process" + suffix] = [(1, guid, 1, process)]
    rows["rocpd_info_thread" + suffix] = [(1, guid, 1, 1, process)]
    rows["rocpd_info_agent" + suffix] = [
        (0, guid, 1, 1, "CPU", 0, 0, "EPYC", "EPYC"),
        *((n, guid, 1, 1, "GPU", n, n - 1, "gfx942", "AMD Instinct MI300X") for n in (4, 5)),
    ]
    columns = {
        "rocpd_event": "id guid stack_id",
        "rocpd_kernel_dispatch": "id guid nid pid tid agent_id kernel_id dispatch_id queue_id stream_id start end"
        " region_name_id event_id",
        "rocpd_memory_copy": "id guid nid pid tid start end name_id dst_agent_id src_agent_id size queue_id"
        " stream_id event_id",
        "rocpd_region": "id guid nid pid tid start end name_id event_id",
        "rocpd_string": "id guid string",
        "rocpd_info_kernel_symbol": "id guid nid pid kernel_name display_name",
        "rocpd_info_process": "id guid nid pid",
        "rocpd_info_thread": "id guid nid pid tid",
        "rocpd_info_agent": "id guid nid pid type absolute_index logical_index name product_name",
    }
    return [create(name + suffix, names) for name, names in columns.items()], rows


def rocpd_views(suffix):
    """Views with the columns and the joins of those that rocprofv3 writes."""
    base = (
        "event kernel_dispatch memory_copy region string info_kernel_symbol info_process info_thread info_agent"
    ).split()
    views = [f'CREATE VIEW "rocpd_{name}" AS SELECT * FROM "rocpd_{name}{suffix}";' for name in base]
    return [
        *views,
        'CREATE VIEW "kernels" AS SELECT K.id, K.guid, T.tid, R.string AS region, S.display_name AS name, K.nid,'
        " P.pid, A.absolute_index AS agent_abs_index, A.logical_index AS agent_log_index, K.stream_id, K.queue_id,"
        ' K.start, K."end", (K."end" - K.start) AS duration, E.stack_id FROM rocpd_kernel_dispatch K'
        " JOIN rocpd_info_agent A ON A.id = K.agent_id JOIN rocpd_event E ON E.id = K.event_id"
        " JOIN rocpd_string R ON R.id = K.region_name_id JOIN rocpd_info_kernel_symbol S ON S.id = K.kernel_id"
        " JOIN rocpd_info_process P ON P.id = K.pid JOIN rocpd_info_thread T ON T.id = K.tid;",
        'CREATE VIEW "memory_copies" AS SELECT M.id, M.guid, M.nid, P.pid, M.start, M."end", S.string AS name,'
        " M.stream_id, M.queue_id, D.absolute_index AS dst_agent_abs_index, D.type AS dst_agent_type,"
        " C.absolute_index AS src_agent_abs_index, E.stack_id FROM rocpd_memory_copy M"
        " JOIN rocpd_string S ON S.id = M.name_id JOIN rocpd_info_agent D ON D.id = M.dst_agent_id"
        " JOIN rocpd_info_agent C ON C.id = M.src_agent_id JOIN rocpd_event E ON E.id = M.event_id"
        " JOIN rocpd_info_process P ON P.id = M.pid;",
        'CREATE VIEW "regions" AS SELECT R.id, R.guid, S.string AS name, P.pid, R.start, R."end", E.stack_id'
        " FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id JOIN rocpd_string S ON S.id = R.name_id"
        " JOIN rocpd_info_process P ON P.id = R.pid;",
    ]


def rocpd():
    copy = replace(COPY, name="MEMORY_COPY_DEVICE_TO_HOST")
    events = [*EVENTS, copy]
    first, second = "_0000aa00_0001", "_0000bb00_0002"
    graphs = {"launches": 9, "graph_launches": (17, 18), "device_names": ["AMD Instinct MI300X"]}
    expected = expect(events, label="results.db", **graphs)
    tables, rows = rocpd_tables(first, events, 4711, "guid-a")
    yield "rocpd/one-process", "results.db.sql", sql([*tables, *rocpd_views(first)], rows), [expected]
    yield "rocpd/without-views", "results.db.sql", sql(tables, rows), [expected]
    tables, rows = rocpd_tables(first, events, 4711, "guid-a", loose=True)
    yield (
        "rocpd/view-hides-rows", "results.db.sql", sql([*tables, *rocpd_views(first)], rows),
        [{**expected, "findings": ["TR068"]}],
    )
    other = [replace(event, device=5, start=event.start + 7, end=event.end + 9) for event in EVENTS]
    tables, rows = rocpd_tables(first, events, 4711, "guid-a")
    more_tables, more_rows = rocpd_tables(second, other, 4712, "guid-b")
    yield (
        "rocpd/two-processes", "results.db.sql",
        sql([*tables, *more_tables, *rocpd_views(first)], {**rows, **more_rows}),
        [
            {**expected, "label": "GPU 4", "findings": ["TR068", "TR068"]},
            expect(other, label="GPU 5", launches=8, graph_launches=(17, 18), device_names=["AMD Instinct MI300X"]),
        ],
    )


RPD_CALLS = {"kernel": "hipLaunchKernel", "memcpy": "hipMemcpyAsync", "memset": "hipMemsetAsync"}
RPD_TYPES = {"memcpy": "CopyDeviceToHost", "memset": "FillBuffer"}


def rpd_script(events, *, version=3, described=True):
    strings, rows = Ids(), defaultdict(list)
    strings[""] = 1
    calls = {}
    for process, correlation in sorted({(event.process, event.correlation) for event in events}):
        first = next(e for e in events if (e.process, e.correlation) == (process, correlation))
        call = "hipGraphLaunch" if first.replayed else RPD_CALLS[first.work]
        api = calls[process, correlation] = len(calls) + 1
        at = (ORIGIN + first.start - 900, ORIGIN + first.start - 500)
        row = (api, process, process, *at, strings[call], strings[""])
        rows["rocpd_api"].append(row if version == 2 else (*row[:-1], 1, 1, 1))
        if first.work == "kernel" and not described:
            rows["rocpd_kernelapi"].append((api, "0x0", strings[first.name]))
    free = len(calls) + 1
    row = (free, events[0].process, 1, ORIGIN, ORIGIN + 50, strings["hipFree"], strings[""])
    rows["rocpd_api"].append(row if version == 2 else (*row[:-1], 1, 1, 1))
    marker = Event("marker", 1, 2, correlation=events[0].correlation, work="marker", process=events[0].process)
    for number, event in enumerate([*events, marker], 1):
        kind = {"marker": "Marker", "kernel": "Task" if event.replayed else "KernelExecution"}.get(
            event.work, RPD_TYPES.get(event.work)
        )
        shown = event.name if event.work == "kernel" and described else ""
        row = [number, event.device, event.queue, 0, "", ORIGIN + event.start, ORIGIN + event.end, strings[shown], strings[kind]]
        rows["rocpd_op"].append(tuple(row if version == 2 else row[:4] + row[5:]))
        rows["rocpd_api_ops"].append((number, calls[event.process, event.correlation], number))
    rows["rocpd_string"] = [(number, text) for text, number in strings.items()]
    rows["rocpd_metadata"] = [(1, "schema_version", str(version))]
    signal = " completionSignal" if version == 2 else ""
    more = "args_id" if version == 2 else "category_id domain_id args_id"
    tables = [
        create("rocpd_metadata", "id tag value"),
        create("rocpd_string", "id string"),
        create("rocpd_api", f"id pid tid start end apiName_id {more}"),
        create("rocpd_op", f"id gpuId queueId sequenceId{signal} start end description_id opType_id"),
        create("rocpd_api_ops", "id api_id op_id"),
        create("rocpd_kernelapi", "api_ptr_id stream kernelName_id"),
    ]
    return sql(tables, rows)


def rpd():
    named = [replace(COPY, name="CopyDeviceToHost"), replace(FILL, name="FillBuffer")]
    events = [replace(event, queue=event.stream, correlation=event.correlation) for event in [*EVENTS, *named]]
    graphs = {"launches": 10, "graph_launches": (17, 18)}
    expected = expect(events, label="trace.rpd", streams="queue", **graphs)
    yield "rpd/schema-3", "trace.rpd.sql", rpd_script(events), [expected]
    yield "rpd/schema-2", "trace.rpd.sql", rpd_script(events, version=2), [expected]
    eager = [event for event in events if not event.replayed]
    expected = expect(eager, label="trace.rpd", streams="queue", launches=8)
    yield "rpd/names-in-the-calls", "trace.rpd.sql", rpd_script(eager, described=False), [expected]
    other = [replace(event, device=5, process=4712, start=event.start + 7, end=event.end + 9) for event in eager]
    yield (
        "rpd/two-processes", "trace.rpd.sql", rpd_script([*other, *events]),
        [
            expect(events, label="GPU 4", streams="queue", **graphs),
            expect(other, label="GPU 5", streams="queue", launches=8),
        ],
    )


NSYS_PLACE = "deviceId contextId greenContextId streamId correlationId globalPid"


def nsys_script(events, *, drop="", nodes=True, calls=True, whole=(), ranges=()):
    """An export; `drop` names columns of the kernel table that older versions lack."""
    strings, rows = Ids(), defaultdict(list)

    def place(event):
        return (event.device, 1, None, event.stream, event.correlation, event.process << 24)

    kernel = f"start end {NSYS_PLACE} demangledName shortName mangledName gridX graphNodeId".split()
    kept = [at for at, name in enumerate(kernel) if name not in drop.split()]
    for event in events:
        at = (event.start, event.end)
        node = 77 if event.replayed and nodes else None
        if event.work == "kernel":
            full = (*at, *place(event), strings[event.name], strings[event.name[:9]], strings["_Z" + event.name[:5]], 1, node)
            rows["CUPTI_ACTIVITY_KIND_KERNEL"].append(tuple(full[at] for at in kept))
        elif event.work == "memcpy":
            rows["CUPTI_ACTIVITY_KIND_MEMCPY"].append((*at, *place(event), 4096, 2, node))
        else:
            rows["CUPTI_ACTIVITY_KIND_MEMSET"].append((*at, *place(event), 0, 4096, node))
    tables = [
        create("StringIds", "id value"),
        create("META_DATA_EXPORT", "name value"),
        create("TARGET_INFO_GPU", "id name"),
    ]
    if "CUPTI_ACTIVITY_KIND_KERNEL" in rows:
        tables.append(create("CUPTI_ACTIVITY_KIND_KERNEL", " ".join(kernel[at] for at in kept)))
    if "CUPTI_ACTIVITY_KIND_MEMCPY" in rows:
        tables.append(create("CUPTI_ACTIVITY_KIND_MEMCPY", f"start end {NSYS_PLACE} bytes copyKind graphNodeId"))
    if "CUPTI_ACTIVITY_KIND_MEMSET" in rows:
        tables.append(create("CUPTI_ACTIVITY_KIND_MEMSET", f"start end {NSYS_PLACE} value bytes graphNodeId"))
    if calls:
        tables.append(create("CUPTI_ACTIVITY_KIND_RUNTIME", "start end eventClass globalTid correlationId nameId"))
        for process, correlation in sorted({(e.process, e.correlation) for e in events}):
            first = next(e for e in events if (e.process, e.correlation) == (process, correlation))
            call = {"memcpy": "cudaMemcpyAsync_v3020", "memset": "cudaMemsetAsync_v3020"}.get(
                first.work, "cudaGraphLaunch_v10000" if first.replayed else "cudaLaunchKernel_v7000"
            )
            thread = (process << 24) + 5
            rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(
                (first.start - 900, first.start - 500, 0, thread, correlation, strings[call])
            )
        rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append((1, 2, 0, (4711 << 24) + 5, 98, strings["cudaEventRecord_v3020"]))
    if ranges:
        tables.append(create("NVTX_EVENTS", "start end eventType text globalTid textId"))
        rows["NVTX_EVENTS"] = [
            (start, end, 59, None if at % 2 else name, (4711 << 24) + 5, strings[name] if at % 2 else None)
            for at, (name, start, end) in enumerate(ranges)
        ]
    if whole:
        tables.append(create("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start end deviceId graphId"))
        rows["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [(start, end, 4, 1) for start, end in whole]
    rows["StringIds"] = [(number, text) for text, number in strings.items()]
    rows["META_DATA_EXPORT"] = [("EXPORT_SCHEMA_VERSION", "3.20.2")]
    rows["TARGET_INFO_GPU"] = [(4, "NVIDIA H200"), (5, "NVIDIA H200")]
    return sql(tables, rows)


def nsys():
    named = [replace(COPY, name="[CUDA memcpy Device-to-Host]"), replace(FILL, name="[CUDA memset]")]
    events = [*EVENTS, *named]
    graphs = {"launches": 10, "graph_launches": (17, 18), "device_names": ["NVIDIA H200"]}
    expected = expect(events, label="report.sqlite", **graphs)
    yield "nsys-sqlite/graph-nodes", "report.sqlite.sql", nsys_script(events), [expected]
    yield "nsys-sqlite/no-node-ids", "report.sqlite.sql", nsys_script(events, nodes=False), [expected]
    kernels = [replace(e, device=-1, stream=-1, process=0) for e in plain(EVENTS)]
    old = nsys_script(
        EVENTS, calls=False,
        drop="deviceId contextId greenContextId streamId correlationId globalPid graphNodeId gridX mangledName",
    )
    yield (
        "nsys-sqlite/kernels-alone", "report.sqlite.sql", old,
        [expect(kernels, label="report.sqlite", device_names=[])],
    )
    eager = [event for event in events if not event.replayed]
    replays = ((200_000, 241_000), (300_000, 340_000))
    expected = expect(eager, label="report.sqlite", launches=8, findings=["TR067"])
    yield "nsys-sqlite/graphs-as-a-whole", "report.sqlite.sql", nsys_script(eager, whole=replays), [expected]
    ranges = [("aten::mm", 50, 99_200), ("step[EXTEND bs=1]", 60, 110_000), ("step[DECODE bs=1]", 199_000, 199_200),
              ("step[DECODE bs=1]", 299_000, None), ("step[DECODE bs=1]", 299_000, 299_200)]
    steps = [["step[EXTEND bs=1]", 0, 129_000], ["step[DECODE bs=1]", 199_000, 240_000], ["step[DECODE bs=1]", 299_000, 339_000]]
    yield (
        "nsys-sqlite/nvtx-steps", "report.sqlite.sql", nsys_script(events, ranges=ranges),
        [{**expect(events, label="report.sqlite", **graphs), "steps": steps}],
    )
    other = [replace(event, device=5, process=4712, start=event.start + 7, end=event.end + 9) for event in eager]
    yield (
        "nsys-sqlite/two-processes", "report.sqlite.sql", nsys_script([*other, *events]),
        [expect(events, label="GPU 4", **graphs), expect(other, label="GPU 5", launches=8)],
    )


# --- writing -----------------------------------------------------------------------------------


def golden_files():
    """Give every file of the golden folders with its text."""
    for source in (rocprof_csv, rocprof_stats, rocprof_json, rocpd, rpd, nsys):
        for folder, name, text, ranks in source():
            yield HERE / folder / name, text
            expected = json.dumps({"ranks": ranks}, indent=1, ensure_ascii=False, sort_keys=True)
            yield HERE / folder / "expected.json", expected + "\n"


def main(arguments):
    stale = []
    for path, text in golden_files():
        content = text.encode()
        if path.is_file() and path.read_bytes() == content:
            continue
        stale.append(path)
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for path in stale:
        print(("differs: " if "--check" in arguments else "wrote ") + str(path.relative_to(HERE)))
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
