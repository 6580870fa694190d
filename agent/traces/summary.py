"""Columns -> `RankTrace`: signatures with their sums, the timeline, and what was odd; pure."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

import msgspec
import numpy as np

from agent.core.kernels import (
    GpuWork,
    KernelName,
    KernelTable,
    RankTrace,
    Signature,
    SignatureStats,
    Step,
    TraceInfo,
    Vendor,
)
from agent.core.proposals import Finding
from agent.traces import odd
from agent.traces.collect import Collector
from agent.traces.columns import UNKNOWN, FileRank, LaunchColumns, SpanColumns
from agent.traces.context import gather_context, known_frames
from agent.traces.events import KERNEL, MEMCPY, MEMSET
from agent.traces.kernel_table import sum_by_signature, without
from agent.traces.link import NO_LINKS, Links, link_launches
from agent.traces.measure import Timeline, has_time, measure
from agent.traces.packed import PackedColumn
from agent.traces.ranks import (
    coordinates_in,
    distributed,
    merged_labels,
    numbers_by_axis,
    parse_file_name,
    stem_of,
)
from agent.traces.steps import Launched, place_steps
from agent.traces.vectors import Vector, as_vector, blocks, distinct
from agent.traces.walk import readable

_WORK: Final[Mapping[int, GpuWork]] = {KERNEL: "kernel", MEMCPY: "memcpy", MEMSET: "memset"}
_VERSIONS: Final = (
    "cuda_driver_version",
    "cuda_runtime_version",
    "cupti_version",
    "hip_driver_version",
    "hip_runtime_version",
    "roctracer_version",
    "trace_id",
)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is known of the file as a whole."""

    source: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    complete: bool = True
    skipped: int = 0
    findings: tuple[Finding, ...] = ()


def summarise_file(collector: Collector, facts: FileFacts) -> tuple[RankTrace, ...]:
    """Give the ranks of one file; ranks without any GPU work are left out."""
    ranks = [rank for rank in collector.ranks.values() if len(rank.kernels.start_ns)]
    ranks.sort(key=lambda rank: rank.key)
    merged = _name_merged([rank.key for rank in ranks if rank.key])
    traces = [_summarise_rank(collector, rank, facts, merged) for rank in ranks]
    first = traces[0]
    traces[0] = replace(first, findings=(*facts.findings, *first.findings))
    return tuple(traces)


def _name_merged(keys: list[str]) -> dict[str, tuple[str, int | None]]:
    """Give label and number of each rank of a merged file."""
    labels = merged_labels(keys)
    numbers = numbers_by_axis({key: coordinates_in(key) for key in keys})
    return {key: (labels[key], numbers.get(key)) for key in keys}


def _summarise_rank(
    collector: Collector,
    rank: FileRank,
    facts: FileFacts,
    merged: Mapping[str, tuple[str, int | None]],
) -> RankTrace:
    links = link_launches(rank)
    if not collector.context:
        _forget_spans(rank)
    signatures, ids = _sign(collector, rank, links)
    if not collector.context:
        links = _forget_operators(rank, links)
    timeline = measure(rank.kernels)
    steps = _steps(rank, links, timeline.origin_ns)
    if not collector.context:
        links = _forget_launches(rank, links)
    table = _table(rank, signatures, ids, timeline)
    stats = sum_by_signature(table)
    number, world_size = distributed(facts.metadata)
    named = parse_file_name(facts.source)
    if rank.key:
        number = merged[rank.key][1]
    elif number is None:
        number = named.number
    signature_of = [signatures[number] for number in ids] if collector.context else []
    context = gather_context(collector, rank, links, signature_of) if collector.context else {}
    label = merged[rank.key][0] if rank.key else "" if number is None else str(number)
    return RankTrace(
        label=label or named.label or stem_of(facts.source),
        info=TraceInfo(
            source=facts.source,
            format="kineto",
            vendor=_vendor(facts.metadata),
            device_names=_device_names(facts.metadata),
            world_size=world_size,
            complete=facts.complete,
            skipped_events=facts.skipped,
            has_shapes=rank.shapes > 0 or _recorded_shapes(facts.metadata),
            has_stacks=collector.n_frames > 0,
            properties=_properties(facts.metadata, links),
        ),
        stats=stats,
        rank=number,
        stage=named.stage,
        kernels=table,
        busy_ns=timeline.busy_ns,
        span_ns=timeline.span_ns,
        origin_ns=timeline.origin_ns,
        launches=links.n_launches,
        linked_ns=_linked_ns(stats),
        replays=links.replays,
        clipped=timeline.clipped,
        steps=steps,
        context=context,
        fingerprint=known_frames(collector) if collector.context else frozenset(),
        findings=odd.describe(rank, table, links, timeline, facts.source),
    )


def _forget_spans(rank: FileRank) -> None:
    """Drop what only led to the links: spans of operators and ids are a third of the memory."""
    rank.operators = SpanColumns(rank.operators.what)
    rank.launches = LaunchColumns(start_ns=rank.launches.start_ns)
    rank.kernels.external_ids = PackedColumn()


def _forget_operators(rank: FileRank, links: Links) -> Links:
    """Drop what only led to the signatures."""
    rank.operators = SpanColumns()
    return replace(links, operator=NO_LINKS[0], replayed=NO_LINKS[2])


def _forget_launches(rank: FileRank, links: Links) -> Links:
    """Drop what only led to the steps."""
    rank.launches = LaunchColumns()
    return replace(links, launch=NO_LINKS[1])


def _recorded_shapes(metadata: Mapping[str, object]) -> bool:
    """Tell whether the profiler says so itself: a run without operators has no shapes to show."""
    return metadata.get("record_shapes") in (1, True, "1")


def _sign(
    collector: Collector, rank: FileRank, links: Links
) -> tuple[tuple[Signature, ...], array[int]]:
    """Give the distinct signatures in order, and for each kernel the number of its own."""
    kernels = rank.kernels
    sizes = (max(_WORK) + 1, len(collector.operators.ids) + 1, 2)
    names, works = as_vector(kernels.name), as_vector(kernels.work)
    kinds: Vector = np.zeros(
        len(rank.operators.what) + 1, np.int32
    )  # its last entry is what -1 finds
    np.add(as_vector(rank.operators.what.unpacked()), 1, out=kinds[:-1], casting="unsafe")

    def code(block: slice) -> Vector:
        replayed = links.replayed[block].view(np.uint8)
        parts = works[block], kinds[links.operator[block]], replayed
        return reduce(_append_digit, zip(parts, sizes, strict=True), names[block].astype(np.int64))

    codes, ids = distinct(code, len(names))
    signatures = _signatures(collector, [_digits(one, sizes) for one in codes])
    ordered = sorted(set(signatures))
    number = {signature: at for at, signature in enumerate(ordered)}
    renumber = np.array([number[signature] for signature in signatures], np.uint32)
    for block in blocks(len(ids)):
        as_vector(ids)[block] = renumber[as_vector(ids)[block]]
    return tuple(ordered), ids


def _append_digit(code: Vector, digit: tuple[Vector, int]) -> Vector:
    value, size = digit
    return code * size + value


def _digits(code: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Take a code apart: the name, the work, the operator + 1 and whether it was replayed."""
    digits: list[int] = []
    for size in reversed(sizes):
        code, digit = divmod(code, size)
        digits.append(digit)
    return code, *reversed(digits)


def _table(
    rank: FileRank,
    signatures: tuple[Signature, ...],
    ids: array[int],
    timeline: Timeline,
) -> KernelTable:
    """Make the kernel table, without repeated events; the columns of the rank become its own."""
    kernels = rank.kernels
    starts = as_vector(kernels.start_ns)
    starts -= timeline.origin_ns
    columns = [
        ids,
        kernels.start_ns,
        kernels.duration_ns,
        kernels.device,
        kernels.stream,
        kernels.correlation,
    ]
    if timeline.duplicates:
        columns = [without(column, timeline.duplicates) for column in columns]
    return KernelTable(signatures, *columns)


def _linked_ns(table: Mapping[Signature, SignatureStats]) -> int:
    """Sum the kernel time that has a launching operator."""
    return sum(
        stats.time_ns
        for signature, stats in table.items()
        if signature.op and signature.work == "kernel"
    )


def _signatures(collector: Collector, keys: Sequence[tuple[int, ...]]) -> list[Signature]:
    names = list(collector.names.ids)
    operators = [None, *collector.operators.ids]
    return [
        Signature(
            KernelName(str(names[name])),
            *_operator(operators[operator]),
            replayed=bool(replayed),
            work=_WORK[work],
        )
        for name, work, operator, replayed in keys
    ]


def _operator(operator: Any) -> tuple[str, tuple[str, ...]]:  # noqa: ANN401 - an interned key
    if operator is None:
        return "", ()
    name, types, _dims = operator
    return name, parse_types(types)


def parse_types(raw: bytes) -> tuple[str, ...]:
    """Give the `Input type` column as text; () where there is none."""
    if not raw:
        return ()
    try:
        decoded = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    if not isinstance(decoded, list):
        return ()
    return tuple(member if isinstance(member, str) else "" for member in decoded)


def _steps(rank: FileRank, links: Links, origin_ns: int) -> tuple[Step, ...]:
    if not rank.steps:
        return ()
    kernels = rank.kernels
    starts, durations = as_vector(kernels.start_ns), as_vector(kernels.duration_ns)
    launch = np.where(has_time(kernels), links.launch, UNKNOWN)
    events = Launched(starts, durations, as_vector(rank.launches.start_ns), launch)
    return place_steps(rank.steps, events, origin_ns)


def _device_names(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    devices = metadata.get("deviceProperties")
    if not isinstance(devices, list):
        return ()
    names = [device.get("name") for device in devices if isinstance(device, dict)]
    known = (readable(name) for name in names if isinstance(name, str) and name)
    return tuple(dict.fromkeys(known))


def _vendor(metadata: Mapping[str, Any]) -> Vendor:
    names = " ".join(_device_names(metadata))
    if "AMD" in names or "Instinct" in names or "Radeon" in names:
        return "rocm"
    if "NVIDIA" in names or "Tesla" in names:
        return "cuda"
    if any(key.startswith(("hip_", "roctracer_", "rocprof")) for key in metadata):
        return "rocm"
    if any(key.startswith(("cuda_", "cupti_")) for key in metadata):
        return "cuda"
    return "unknown"


def _properties(metadata: Mapping[str, Any], links: Links) -> tuple[tuple[str, str], ...]:
    found = {key: readable(str(metadata[key])) for key in _VERSIONS if key in metadata}
    found["linking"] = "enclosure" if links.by_enclosure else "external-id"
    return tuple(sorted(found.items()))
