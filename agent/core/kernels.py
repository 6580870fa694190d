"""Kernels, launches and traces as values.

A trace is a *run*: one `RankTrace` per rank (a file, or one rank of a merged file). What everything
downstream sees is the `Signature` with its `SignatureStats`; single events stay in the columns of
`KernelTable`. Times are integer nanoseconds everywhere.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, NewType

if TYPE_CHECKING:
    from agent.core.proposals import Finding

KernelName = NewType("KernelName", str)
"""The raw name of a kernel as the profiler wrote it: the key of everything."""

Vendor = Literal["rocm", "cuda", "unknown"]
GpuWork = Literal["kernel", "memcpy", "memset"]


@dataclass(frozen=True, slots=True, order=True)
class Signature:
    """What a rule can see of a kernel; distinct signatures are few, events are many.

    Attributes:
        name: the raw kernel name.
        op: the innermost operator around the launch (`aten::copy_`), or "" when none is known.
        input_dtypes: the op's `Input type` column; for `aten::copy_` [destination, source, ...].
            Empty when unknown (no shapes recorded, graph replay, no launch).
        replayed: launched by a graph replay, so op and dtypes cannot be known.
        work: what the GPU did.
    """

    name: KernelName
    op: str = ""
    input_dtypes: tuple[str, ...] = ()
    replayed: bool = False
    work: GpuWork = "kernel"

    def __reduce__(self) -> tuple[type[Signature], tuple[object, ...]]:
        """Send it to another process at once: field by field takes three times as long."""
        return Signature, (self.name, self.op, self.input_dtypes, self.replayed, self.work)


@dataclass(frozen=True, slots=True)
class SignatureStats:
    """Running sums over the events of one signature; durations in ns, never negative."""

    count: int
    time_ns: int
    min_ns: int
    max_ns: int

    def __reduce__(self) -> tuple[type[SignatureStats], tuple[int, ...]]:
        """Send it to another process at once, as a signature."""
        return SignatureStats, (self.count, self.time_ns, self.min_ns, self.max_ns)

    def merged(self, other: SignatureStats) -> SignatureStats:
        """Add two disjoint sets of events."""
        return SignatureStats(
            self.count + other.count,
            self.time_ns + other.time_ns,
            min(self.min_ns, other.min_ns),
            max(self.max_ns, other.max_ns),
        )


def merge_stats(
    tables: Iterable[Mapping[Signature, SignatureStats]],
) -> dict[Signature, SignatureStats]:
    """Add signature tables, in a sorted order that does not depend on the order of the tables."""
    each = iter(tables)
    merged: dict[Signature, SignatureStats] = dict(next(each, {}))
    for table in each:
        for signature, stats in table.items():
            seen = merged.get(signature)
            merged[signature] = stats if seen is None else seen.merged(stats)
    return {signature: merged[signature] for signature in sorted(merged)}


def kernels_of(table: Mapping[Signature, SignatureStats]) -> dict[Signature, SignatureStats]:
    """Keep the kernels of a signature table."""
    return {signature: stats for signature, stats in table.items() if signature.work == "kernel"}


def copies_of(table: Mapping[Signature, SignatureStats]) -> dict[Signature, SignatureStats]:
    """Keep what is not a kernel: copies and fills, which run beside kernels on copy engines."""
    return {signature: stats for signature, stats in table.items() if signature.work != "kernel"}


@dataclass(frozen=True, slots=True, eq=False)
class KernelTable:
    """Columns of the GPU work of one rank, in file order; one entry per GPU event.

    `signature_id` indexes `signatures`. `start_ns` is relative to `RankTrace.origin_ns`.
    `duration_ns` is as recorded but never negative (a negative one is stored as 0 and reported).
    `correlation` is -1 where unknown. `device` and `stream` are the file's own numbers.
    """

    signatures: tuple[Signature, ...]
    signature_id: array[int]  # "I"
    start_ns: array[int]  # "q"
    duration_ns: array[int]  # "i", or "q" where one does not fit
    device: array[int]  # "i"
    stream: array[int]  # as duration_ns
    correlation: array[int]  # as duration_ns

    def __len__(self) -> int:
        """Count the kernels."""
        return len(self.signature_id)

    def __eq__(self, other: object) -> bool:
        """Tell whether another table holds the same events, however it came by them."""
        if not isinstance(other, KernelTable):
            return NotImplemented
        names = [column.name for column in fields(self)]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment] # its columns can change


@dataclass(frozen=True, slots=True)
class GraphReplays:
    """Graph launches of a rank and how many kernels each brought.

    `kernels_per_launch` holds one number per `hipGraphLaunch` / `cudaGraphLaunch`, in time order.
    """

    kernels_per_launch: tuple[int, ...] = ()
    kernels: int = 0
    time_ns: int = 0

    @property
    def uneven(self) -> bool:
        """Tell whether some launch brought no kernels at all, or the launches differ in number."""
        return len(set(self.kernels_per_launch)) > 1


@dataclass(frozen=True, slots=True)
class Step:
    """A step or stage the profiler annotated (`ProfilerStep#3`); times relative to the origin."""

    name: str
    start_ns: int
    end_ns: int


def in_order(steps: Iterable[Step]) -> list[Step]:
    """Order steps by time."""
    return sorted(steps, key=lambda step: (step.start_ns, step.end_ns, step.name))


@dataclass(frozen=True, slots=True)
class StepTimes:
    """How long each signature ran in each step: a column of numbers for each, packed to be added.

    A column is one large integer in `width` bytes a step, little-endian. Adding such integers adds
    the times of all steps at once: no sum outgrows its step, since `width` is enough for the time
    of all events of the longest one.

    Attributes:
        steps, stats: the very steps and signature table of the rank they were summed for.
        packed: the columns one after the other, in the order of `stats`; steps in time order.
    """

    steps: tuple[Step, ...]
    stats: Mapping[Signature, SignatureStats]
    width: int
    packed: bytes

    def columns(self) -> Iterator[int]:
        """Give the column of each signature."""
        size = self.width * len(self.steps)
        for at in range(0, size * len(self.stats), size):
            yield int.from_bytes(self.packed[at : at + size], "little")

    def unpacked(self, column: int) -> list[int]:
        """Give the time in each step, in ns, of a column or of a sum of columns."""
        text = column.to_bytes(self.width * len(self.steps), "little")
        return [
            int.from_bytes(text[at : at + self.width], "little")
            for at in range(0, len(text), self.width)
        ]


@dataclass(frozen=True, slots=True)
class ClippedTotal:
    """Recorded durations that run past the next kernel of their stream by far (corrupt)."""

    events: int = 0
    excess_ns: int = 0


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """Where a rank's events came from.

    Attributes:
        source: the file's name relative to what the user named; never an absolute path.
        format: `kineto`, `rocprofv3-csv`, `rocprofv3-stats`, `rocprofv3-json`, `rocpd`, `rpd`,
            `nsys-sqlite`, `profile`.
        digest: sha256 (hex) of the file's bytes as stored; "" where it was not computed.
        complete: False after salvage: something of the file was skipped.
    """

    source: str
    format: str
    vendor: Vendor = "unknown"
    device_names: tuple[str, ...] = ()
    world_size: int | None = None
    digest: str = ""
    complete: bool = True
    skipped_events: int = 0
    has_shapes: bool = False
    has_stacks: bool = False
    properties: tuple[tuple[str, str], ...] = ()


_IMPORT_ROOTS = frozenset({"", "lib", "python", "src"})
"""Folders that hold packages, in checkouts and where they are installed."""


@dataclass(frozen=True, slots=True)
class FrameUse:
    """A Python function on the stack of launches of one signature.

    `path` and `first_line` are Kineto's: the line is the function's first line, not the call's.
    `depth` is 0 for the innermost frame around the launch.
    """

    path: str
    first_line: int
    function: str
    depth: int
    launches: int

    def is_in(self, path: str) -> bool:
        """Tell whether its path ends as a checkout's path does, by two parts or all it has.

        Where both go on with a folder in common, they differ in between: `engine/srt/layers/a.py`
        is not `engine/other/layers/a.py`.
        """
        seen, stands = self.path.replace("\\", "/").split("/"), path.split("/")
        shared = 0
        for one, other in zip(reversed(seen), reversed(stands), strict=False):
            if one != other:
                break
            shared += 1
        above = set(seen[: len(seen) - shared]) & set(stands[: len(stands) - shared])
        return shared >= min(len(seen), len(stands), 2) and not above - _IMPORT_ROOTS


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What was seen around the launches of one signature; kept only when asked for."""

    frames: tuple[FrameUse, ...] = ()
    shapes: tuple[str, ...] = ()
    op_stacks: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One rank of a run: its signature table, and its events where the format has them.

    Attributes:
        label: how reports name this rank (`0`, `TP-3`, or the file's name); unique in the run.
        rank: the rank's number where one is known.
        stage: `DECODE`, `EXTEND`, ... from the file's name, or "".
        stats: per distinct signature; sorted by signature.
        kernels: None for aggregates and profiles, which have no timeline.
        busy_ns, span_ns: union of kernel intervals per device, summed over devices, and last end
            minus first start; None without a timeline.
        origin_ns: what `start_ns` is relative to, in the file's own clock.
        launches: runtime calls that launch a kernel, a graph or a copy.
        linked_ns: kernel time with a launching op.
        context: per signature, only with `read_trace(..., context=True)`.
        fingerprint: distinct (path, first line, function) of all Python frames, only with context.
        summed: what `step_times` gives, where it was summed up when the rank was read.
    """

    label: str
    info: TraceInfo
    stats: Mapping[Signature, SignatureStats]
    rank: int | None = None
    stage: str = ""
    kernels: KernelTable | None = None
    busy_ns: int | None = None
    span_ns: int | None = None
    origin_ns: int = 0
    launches: int = 0
    linked_ns: int = 0
    replays: GraphReplays = field(default_factory=GraphReplays)
    clipped: ClippedTotal = field(default_factory=ClippedTotal)
    steps: tuple[Step, ...] = ()
    context: Mapping[Signature, LaunchContext] = field(default_factory=dict)
    fingerprint: frozenset[tuple[str, int, str]] = frozenset()
    findings: tuple[Finding, ...] = ()
    summed: StepTimes | None = field(default=None, compare=False, repr=False)

    @property
    def step_times(self) -> StepTimes | None:
        """Times by step, if known; never those of other steps or events than the rank has now."""
        known = self.summed
        return known if known and known.steps is self.steps and known.stats is self.stats else None

    @property
    def count(self) -> int:
        """Number of kernels; copies and fills are not kernels."""
        return sum(stats.count for one, stats in self.stats.items() if one.work == "kernel")

    @property
    def kernel_ns(self) -> int:
        """Sum of recorded kernel durations; streams overlap, so this is not busy time."""
        return sum(stats.time_ns for one, stats in self.stats.items() if one.work == "kernel")


@dataclass(frozen=True, slots=True)
class Trace:
    """A run: its ranks in a stable order, and what was wrong with the run as a whole.

    `lost` names the files that could not be read and are in no figure.
    """

    name: str
    ranks: tuple[RankTrace, ...]
    findings: tuple[Finding, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def stats(self) -> dict[Signature, SignatureStats]:
        """Signature table over all ranks, copies and fills included."""
        if len(self.ranks) == 1:
            return dict(self.ranks[0].stats)
        return merge_stats(rank.stats for rank in self.ranks)

    @property
    def kernel_ns(self) -> int:
        """Sum of recorded kernel durations over all ranks."""
        return sum(rank.kernel_ns for rank in self.ranks)

    @property
    def count(self) -> int:
        """Number of kernels over all ranks."""
        return sum(rank.count for rank in self.ranks)

    @property
    def complete(self) -> bool:
        """False when any file was salvaged or could not be read."""
        return not self.lost and all(rank.info.complete for rank in self.ranks)
