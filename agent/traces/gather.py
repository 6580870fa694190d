"""GPU work, event by event, into the `RankTrace` of one rank: for every format but Kineto.

These formats know no operators, so a signature is a name, the kind of work, and whether a graph
launch replayed it. Copies and fills keep the profiler's own name for them.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from agent.core.kernels import (
    ClippedTotal,
    GpuWork,
    GraphReplays,
    KernelName,
    KernelTable,
    RankTrace,
    Signature,
    Step,
    TraceInfo,
)
from agent.core.proposals import Finding
from agent.errors import CorruptTrace, TraceError
from agent.traces import odd
from agent.traces.columns import UNKNOWN, KernelColumns, RankColumns
from agent.traces.events import KERNEL, MEMCPY, MEMSET
from agent.traces.kernel_table import sum_by_signature, without
from agent.traces.link import NO_LINKS, IdIndex, Links
from agent.traces.measure import Timeline, has_time, measure
from agent.traces.numbers import INT64_MAX
from agent.traces.ranks import parse_file_name, stem_of
from agent.traces.steps import Annotation, Launched, place_steps
from agent.traces.vectors import as_vector

SALVAGE_HINT: Final = "--salvage reads the whole rows and stamps the result INCOMPLETE"
_INT32_MAX: Final = (1 << 31) - 1
_KIND: Final[Mapping[GpuWork, int]] = {"kernel": KERNEL, "memcpy": MEMCPY, "memset": MEMSET}

What = tuple[object, GpuWork, bool]
"""A kernel's name or the id that stands for it, the kind of work, and: known to be replayed."""


@dataclass(slots=True)
class Launches:
    """The launching calls of one process, where the file records them.

    Attributes:
        count: calls that launch a kernel, a graph or a copy.
        graphs: start and correlation of each graph launch.
        started: start of each by correlation, kept where steps are annotated.
    """

    count: int = 0
    graphs: list[tuple[int, int]] = field(default_factory=list)
    started: dict[int, int] = field(default_factory=dict)


class Events:
    """Columns of one process while its file is read; `finish` makes the `RankTrace`."""

    def __init__(self) -> None:
        """Begin without events."""
        self.kernels = KernelColumns()
        self.rank = RankColumns("", kernels=self.kernels)
        self.launches = Launches()
        self.annotations: list[Annotation] = []
        self._whats: dict[What, int] = {}

    def __len__(self) -> int:
        """Count the events so far."""
        return len(self.kernels.name)

    def add(
        self,
        what: What,
        start_ns: int,
        end_ns: int,
        *,
        place: tuple[int, int, int] = (UNKNOWN, UNKNOWN, UNKNOWN),
        correlation: int = UNKNOWN,
    ) -> None:
        """Add one event; `place` is device, stream and hardware queue, each -1 where unknown.

        The queue stands for the stream in a process whose streams are not recorded.


        Raises:
            OverflowError: a time or a duration that does not fit in 64 bits.
        """
        number = self._whats.get(what)
        if number is None:
            number = self._whats[what] = len(self._whats)
        if not -INT64_MAX <= start_ns <= end_ns <= INT64_MAX:
            if not -INT64_MAX <= end_ns <= start_ns <= INT64_MAX:
                raise OverflowError
            self.rank.negative += 1
            end_ns = start_ns
        if end_ns - start_ns > INT64_MAX:
            raise OverflowError
        columns = self.kernels
        in_range = -INT64_MAX <= correlation <= INT64_MAX
        columns.correlation.append(correlation if in_range else UNKNOWN)
        columns.name.append(number)
        columns.work.append(_KIND[what[1]])
        columns.start_ns.append(start_ns)
        columns.duration_ns.append(end_ns - start_ns)
        device, stream, queue = place
        columns.device.append(device if -_INT32_MAX <= device <= _INT32_MAX else UNKNOWN)
        columns.stream.append(stream if -INT64_MAX <= stream <= INT64_MAX else UNKNOWN)
        columns.external_id.append(queue if -INT64_MAX <= queue <= INT64_MAX else UNKNOWN)

    def main_device(self) -> int:
        """Give the device with most events, the lowest of equals; -1 where none is known."""
        counts = Counter(self.kernels.device)
        return min(counts, key=lambda device: (-counts[device], device), default=UNKNOWN)

    def finish(
        self,
        label: str,
        info: TraceInfo,
        name_of: Callable[[object], str] = str,
        findings: Sequence[Finding] = (),
    ) -> RankTrace:
        """Close the columns; `name_of` gives the name for what `add` was given.

        Raises:
            CorruptTrace: its events are further apart than 64 bits can tell.
        """
        columns = self.kernels
        _require_range(columns, info.source)
        if not any(stream > 0 for stream in columns.stream):
            columns.stream = columns.external_id
        columns.external_id = array("q")
        timeline = measure(columns)
        if all(stream == UNKNOWN for stream in columns.stream):  # nothing is known to be in order
            timeline = replace(timeline, clipped=ClippedTotal())
        table = self._table(timeline, name_of)
        replays = _replays(table, self.launches.graphs)
        links = Links(*NO_LINKS, replays=replays)
        named = parse_file_name(info.source)
        return RankTrace(
            label=label or named.label or stem_of(info.source),
            info=info,
            stats=sum_by_signature(table),
            rank=None if label else named.number,
            stage=named.stage,
            kernels=table,
            busy_ns=timeline.busy_ns,
            span_ns=timeline.span_ns,
            origin_ns=timeline.origin_ns,
            launches=self.launches.count,
            replays=replays,
            clipped=timeline.clipped,
            steps=self._steps(timeline.origin_ns),
            findings=(*findings, *odd.describe(self.rank, table, links, timeline, info.source)),
        )

    def _steps(self, origin_ns: int) -> tuple[Step, ...]:
        if not self.annotations:
            return ()
        columns = self.kernels
        started = array("q", self.launches.started.values())
        index = IdIndex(np.array(list(self.launches.started), np.int64), lowest=-INT64_MAX)
        launch = np.where(has_time(columns), index.find(as_vector(columns.correlation)), UNKNOWN)
        events = Launched(
            as_vector(columns.start_ns), as_vector(columns.duration_ns), as_vector(started), launch
        )
        return place_steps(self.annotations, events, origin_ns)

    def _table(self, timeline: Timeline, name_of: Callable[[object], str]) -> KernelTable:
        """Make the kernel table, without repeated events."""
        columns, origin = self.kernels, timeline.origin_ns
        graphs = {correlation for _, correlation in self.launches.graphs}
        keys: dict[tuple[int, bool], int] = {}
        ids = array(
            "I",
            [
                keys.setdefault((name, correlation in graphs), len(keys))
                for name, correlation in zip(columns.name, columns.correlation, strict=True)
            ],
        )
        signatures = self._signatures(keys, name_of)
        merged = sorted(set(signatures))
        number = {signature: at for at, signature in enumerate(merged)}
        renumber = [number[signature] for signature in signatures]
        kept = (
            array("I", [renumber[at] for at in ids]),
            array("q", [start - origin for start in columns.start_ns]),
            columns.duration_ns,
            columns.device,
            columns.stream,
            columns.correlation,
        )
        if timeline.duplicates:
            kept = tuple(without(column, timeline.duplicates) for column in kept)  # type: ignore[assignment]
        return KernelTable(tuple(merged), *kept)

    def _signatures(
        self, keys: Iterable[tuple[int, bool]], name_of: Callable[[object], str]
    ) -> list[Signature]:
        whats = list(self._whats)
        return [
            Signature(
                KernelName(name_of(whats[number][0])),
                replayed=by_correlation or whats[number][2],
                work=whats[number][1],
            )
            for number, by_correlation in keys
        ]


def _require_range(columns: KernelColumns, source: str) -> None:
    starts = as_vector(columns.start_ns)
    ends = starts + as_vector(columns.duration_ns)
    if int(ends.max(initial=0)) - int(starts.min(initial=0)) > INT64_MAX:
        raise CorruptTrace(
            "TR061",
            "events lie further apart than 64 bits of nanoseconds can tell",
            location=source,
            hint="capture or export it again",
        )


def finish_processes(
    processes: Mapping[int | str, Events],
    info: TraceInfo,
    *,
    name_of: Callable[[int | str, object], str] = lambda _, what: str(what),
    devices: Mapping[int | str, Sequence[str]] | None = None,
    findings: Sequence[Finding] = (),
) -> tuple[RankTrace, ...]:
    """Make one `RankTrace` of each process that did GPU work.

    A process is a rank: it is named after its device (`GPU 3`) where every process has its own,
    else by its place in the order of process ids. `findings` are of the file as a whole.

    Raises:
        TraceError: no process did any.
    """
    keys = sorted((key for key in processes if len(processes[key])), key=_by_number)
    if not keys:
        raise no_kernels(info.source, processes.values(), complete=info.complete)
    labels = _labels([processes[key] for key in keys])
    return tuple(
        processes[key].finish(
            label,
            replace(info, device_names=tuple((devices or {}).get(key, info.device_names))),
            lambda what, key=key: name_of(key, what),  # type: ignore[misc] # bound at once
            () if at else findings,
        )
        for at, (key, label) in enumerate(zip(keys, labels, strict=True))
    )


def no_kernels(
    source: str, processes: Iterable[Events] = (), *, complete: bool = True
) -> TraceError:
    """Say that a trace holds no GPU work; zeros would look like an answer."""
    launches = sum(events.launches.count for events in processes)
    what = f"0 GPU kernels, but {launches} launches" if launches else "0 GPU kernels"
    hint = "capture again while the model runs on the GPU"
    if not complete:
        what, hint = f"{what} in what is whole of it", "copy or export it again"
    return TraceError("TR007", what, location=source, hint=hint)


def incomplete(source: str, skipped: int, cause: str = "") -> Finding:
    """Say what a salvaged file lost."""
    message = f"INCOMPLETE: {skipped} malformed rows were skipped"
    return Finding(
        "TR023", f"{message}; {cause}" if cause else message, severity="warning", location=source
    )


def number_in(value: object) -> int:
    """Give the device or stream number in `4`, `"4"` or `"Agent 4"`; -1 where there is none."""
    if isinstance(value, int):
        return value
    text = str(value or "").strip()
    digits = text[len(text.rstrip("0123456789")) :]
    return int(digits) if 0 < len(digits) < 19 and digits.isascii() else UNKNOWN


def _by_number(key: int | str) -> tuple[int, str]:
    return (key, "") if isinstance(key, int) else (0, key)


def _labels(processes: Sequence[Events]) -> list[str]:
    if len(processes) == 1:
        return [""]
    devices = [events.main_device() for events in processes]
    if len(set(devices)) == len(devices) and UNKNOWN not in devices:
        return [f"GPU {device}" for device in devices]
    return [f"process {number}" for number in range(1, len(processes) + 1)]


def _replays(table: KernelTable, graphs: Sequence[tuple[int, int]]) -> GraphReplays:
    """Count what each graph launch brought, in time order; all of it where launches are unknown."""
    replayed = [signature.replayed for signature in table.signatures]
    of_graph = [at for at, signature in enumerate(table.signature_id) if replayed[signature]]
    counts = Counter(table.correlation[at] for at in of_graph)
    per_launch = tuple(counts[correlation] for _, correlation in sorted(graphs))
    time_ns = sum(table.duration_ns[at] for at in of_graph)
    return GraphReplays(per_launch, len(of_graph), time_ns)
