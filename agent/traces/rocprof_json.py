"""Read the JSON that rocprofv3 writes (`*_results.json`).

`rocprofiler-sdk-tool` holds one element for each process. Its `buffer_records` give kernels by id
only, `kernel_symbols` their names: mangled, mostly with `.kd`. Times are nanoseconds. Records are
streamed; names, agents and operations are kept.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from agent.core.kernels import RankTrace, TraceInfo
from agent.core.proposals import Finding
from agent.errors import CorruptTrace
from agent.traces.columns import UNKNOWN
from agent.traces.events import launches_graph
from agent.traces.gather import SALVAGE_HINT, Events, finish_processes, incomplete
from agent.traces.inflate import ByteStream
from agent.traces.markers import step_of
from agent.traces.numbers import INT64_MAX
from agent.traces.walk import DamagedJson, Walker, readable

_TOP: Final = "rocprofiler-sdk-tool"
_LAUNCHING: Final = re.compile(r"^hip\w*(?:Launch|Mem(?:cpy|set))")
_GPU: Final = 2
_MAX_DEVICE: Final = 1 << 31
_Element = TypeVar("_Element")


class _Handle(msgspec.Struct, gc=False):
    handle: int = UNKNOWN


class _Correlation(msgspec.Struct, gc=False):
    internal: int = UNKNOWN


class _Dispatch(msgspec.Struct, gc=False):
    kernel_id: int
    agent_id: _Handle = msgspec.field(default_factory=_Handle)
    queue_id: _Handle = msgspec.field(default_factory=_Handle)


class _Kernel(msgspec.Struct, gc=False):
    start_timestamp: int
    end_timestamp: int
    dispatch_info: _Dispatch
    correlation_id: _Correlation = msgspec.field(default_factory=_Correlation)
    stream_id: _Handle = msgspec.field(default_factory=_Handle)


class _Copy(msgspec.Struct, gc=False):
    kind: int
    operation: int
    start_timestamp: int
    end_timestamp: int
    src_agent_id: _Handle = msgspec.field(default_factory=_Handle)
    dst_agent_id: _Handle = msgspec.field(default_factory=_Handle)
    correlation_id: _Correlation = msgspec.field(default_factory=_Correlation)
    stream_id: _Handle = msgspec.field(default_factory=_Handle)


class _Call(msgspec.Struct, gc=False):
    kind: int
    operation: int
    start_timestamp: int
    correlation_id: _Correlation = msgspec.field(default_factory=_Correlation)


class _Marker(msgspec.Struct, gc=False):
    start_timestamp: int
    end_timestamp: int
    correlation_id: _Correlation = msgspec.field(default_factory=_Correlation)


class _Symbol(msgspec.Struct, gc=False):
    kernel_id: int
    kernel_name: str = ""
    formatted_kernel_name: str = ""


class _Agent(msgspec.Struct, gc=False):
    id: _Handle
    type: int = 0
    node_id: int = UNKNOWN
    name: str = ""
    product_name: str = ""


@dataclass(slots=True)
class _Process:
    """What is kept of one element of the top-level list."""

    events: Events = field(default_factory=Events)
    pid: int = 0
    names: dict[int, str] = field(default_factory=dict)
    agents: dict[int, _Agent] = field(default_factory=dict)
    handles: dict[tuple[int, int], int] = field(default_factory=dict)
    operations: list[tuple[str, ...]] = field(default_factory=list)
    calls: dict[tuple[int, int], tuple[array[int], array[int]]] = field(default_factory=dict)
    markers: list[_Marker] = field(default_factory=list)
    messages: dict[object, object] = field(default_factory=dict)

    def place(self, agents: tuple[int, int], stream: int, queue: int) -> tuple[int, int, int]:
        """Number the agents' handles for now; `settle` makes a node id of the first GPU's."""
        return self.handles.setdefault(agents, len(self.handles)), stream, queue

    def operation(self, kind: int, operation: int) -> str:
        """Give the name of an operation, or ""."""
        if 0 <= kind < len(self.operations):
            names = self.operations[kind]
            return names[operation] if 0 <= operation < len(names) else ""
        return ""

    def settle(self) -> None:
        """Put node ids for handles, name the steps, and count the launching calls."""
        nodes = [agent.node_id if agent else UNKNOWN for agent in map(self._gpu, self.handles)]
        columns = self.events.kernels
        columns.device = array("i", [nodes[at] for at in columns.device])
        for marker in self.markers:
            message = self.messages.get(marker.correlation_id.internal)
            if step := step_of(message, marker.start_timestamp, marker.end_timestamp):
                self.events.annotations.append(step)
        launches = self.events.launches
        for (kind, operation), (starts, correlations) in self.calls.items():
            name = self.operation(kind, operation)
            if _LAUNCHING.match(name):
                launches.count += len(starts)
                if self.events.annotations:
                    launches.started.update(zip(correlations, starts, strict=True))
                if launches_graph(name):
                    launches.graphs += zip(starts, correlations, strict=True)

    def _gpu(self, handles: tuple[int, int]) -> _Agent | None:
        """Give the first of two agents that is a GPU, else the first that is known."""
        known = [self.agents[handle] for handle in handles if handle in self.agents]
        return next((agent for agent in known if agent.type == _GPU), known[0] if known else None)

    def name_of(self, what: object) -> str:
        """Give the name of a kernel id, or of a copy's kind and operation."""
        if isinstance(what, tuple):
            return self.operation(*what) or "memory copy"
        return self.names.get(what) or f"unknown kernel {what}"  # type: ignore[call-overload] # an id

    @property
    def device_names(self) -> tuple[str, ...]:
        """Name the GPUs it used, in the order of their nodes."""
        used = sorted(
            (agent.node_id, agent.product_name or agent.name)
            for agent in map(self._gpu, self.handles)
            if agent and agent.type == _GPU
        )
        return tuple(dict.fromkeys(name for _, name in used if name))


def read_rocprof_json(path: Path, source: str, *, salvage: bool = False) -> tuple[RankTrace, ...]:
    """Read one file; one of several processes gives one `RankTrace` each.

    Raises:
        CorruptTrace: damaged, and `salvage` is off.
        TraceError: no kernels in it.
    """
    return _Reader(ByteStream(path, source), salvage=salvage).read()


class _Reader:
    def __init__(self, stream: ByteStream, *, salvage: bool) -> None:
        self.stream = stream
        self.salvage = salvage
        self.processes: list[_Process] = []
        self.skipped = 0
        self.damage = ""

    def read(self) -> tuple[RankTrace, ...]:
        walker = Walker(self.stream)
        try:
            self._top(walker)
        except DamagedJson as damaged:
            self._damaged(f"damaged JSON at byte {damaged.at}: {damaged.what}")
        if self.stream.damage:
            self._damaged(self.stream.damage)
        keys = {f"{process.pid:020d}/{at}": process for at, process in enumerate(self.processes)}
        for process in self.processes:
            process.settle()
        source = self.stream.source
        info = TraceInfo(
            source=source,
            format="rocprofv3-json",
            vendor="rocm",
            complete=not self.damage and not self.skipped,
            skipped_events=self.skipped,
        )
        return finish_processes(
            {key: process.events for key, process in keys.items()},
            info,
            name_of=lambda key, what: keys[str(key)].name_of(what),
            devices={key: process.device_names for key, process in keys.items()},
            findings=self._findings(bad_utf8=walker.bad_utf8),
        )

    def _findings(self, *, bad_utf8: bool) -> list[Finding]:
        source = self.stream.source
        found = []
        if bad_utf8:
            message = "invalid UTF-8 replaced"
            found.append(Finding("TR021", message, severity="warning", location=source))
        if self.damage or self.skipped:
            found.append(incomplete(source, self.skipped, self.damage))
        return found

    def _damaged(self, what: str) -> None:
        if not self.salvage:
            location = self.stream.source
            raise CorruptTrace("TR065", what, location=location, hint=SALVAGE_HINT)
        self.damage = self.damage or what

    def _top(self, walker: Walker) -> None:
        for key in walker.members():
            if key == _TOP:
                for _ in walker.elements():
                    self.processes.append(_Process())
                    self._process(walker, self.processes[-1])
            else:
                walker.skip()
        if walker.peek():
            raise DamagedJson(walker.offset, "text follows the end of the JSON")

    def _process(self, walker: Walker, process: _Process) -> None:
        for key in walker.members():
            if key == "metadata":
                process.pid = _pid(walker.value())
            elif key == "strings":
                strings = walker.value()
                process.operations = _operations(strings)
                process.messages = _messages(strings)
            elif key == "agents":
                self._list(walker, _Agent, partial(_take_agent, process), key)
            elif key == "kernel_symbols":
                self._list(walker, _Symbol, partial(_take_symbol, process), key)
            elif key == "buffer_records":
                self._records(walker, process)
            else:
                walker.skip()

    def _records(self, walker: Walker, process: _Process) -> None:
        for key in walker.members():
            if key == "kernel_dispatch":
                self._list(walker, _Kernel, partial(_take_kernel, process), key)
            elif key == "memory_copy":
                self._list(walker, _Copy, partial(_take_copy, process), key)
            elif key == "hip_api":
                self._list(walker, _Call, partial(_take_call, process), key)
            elif key == "marker_api":
                self._list(walker, _Marker, process.markers.append, key)
            else:
                walker.skip()

    def _list(
        self,
        walker: Walker,
        element: type[_Element],
        take: Callable[[_Element], None],
        name: str,
    ) -> None:
        """Stream one list; a member of another shape is converted, or counted as damaged."""
        position = 0

        def take_block(block: Sequence[Any]) -> None:
            nonlocal position
            for member in block:
                position += 1
                try:
                    take(_as(element, member))
                except (msgspec.ValidationError, OverflowError) as err:
                    self._bad_record(name, position, str(err))

        walker.blocks(msgspec.json.Decoder(list[element]), take_block)  # type: ignore[valid-type]

    def _bad_record(self, name: str, position: int, why: str) -> None:
        if not self.salvage:
            raise CorruptTrace(
                "TR061",
                f"record {position} of {name}: {why or 'a time does not fit in 64 bits'}",
                location=self.stream.source,
                hint=SALVAGE_HINT,
            )
        self.skipped += 1


def _as(element: type[_Element], member: object) -> _Element:
    if isinstance(member, element):
        return member
    return msgspec.convert(_without_surrogates(member), element, strict=False)


def _take_agent(process: _Process, agent: _Agent) -> None:
    if abs(agent.node_id) < _MAX_DEVICE:
        process.agents[agent.id.handle] = agent


def _take_symbol(process: _Process, symbol: _Symbol) -> None:
    process.names[symbol.kernel_id] = symbol.kernel_name or symbol.formatted_kernel_name


def _take_kernel(process: _Process, kernel: _Kernel) -> None:
    dispatch = kernel.dispatch_info
    process.events.add(
        (dispatch.kernel_id, "kernel", False),
        kernel.start_timestamp,
        kernel.end_timestamp,
        place=process.place(
            (dispatch.agent_id.handle, UNKNOWN),
            kernel.stream_id.handle,
            dispatch.queue_id.handle,
        ),
        correlation=kernel.correlation_id.internal,
    )


def _take_copy(process: _Process, copy: _Copy) -> None:
    process.events.add(
        ((copy.kind, copy.operation), "memcpy", False),
        copy.start_timestamp,
        copy.end_timestamp,
        place=process.place(
            (copy.dst_agent_id.handle, copy.src_agent_id.handle), copy.stream_id.handle, UNKNOWN
        ),
        correlation=copy.correlation_id.internal,
    )


def _take_call(process: _Process, call: _Call) -> None:
    known = process.operation(call.kind, call.operation)
    if known and not _LAUNCHING.match(known):
        return
    key = (call.kind, call.operation)
    starts, correlations = process.calls.setdefault(key, (array("q"), array("q")))
    starts.append(call.start_timestamp)
    correlation = call.correlation_id.internal
    correlations.append(correlation if abs(correlation) <= INT64_MAX else UNKNOWN)


def _pid(metadata: object) -> int:
    pid = metadata.get("pid") if isinstance(metadata, dict) else None
    return pid if isinstance(pid, int) and pid >= 0 else 0


def _operations(strings: object) -> list[tuple[str, ...]]:
    """Give the operations of each kind of buffer record, in the order of their numbers."""
    kinds = strings.get("buffer_records") if isinstance(strings, dict) else None
    return [
        tuple(map(str, kind["operations"]))
        if isinstance(kind, dict) and isinstance(kind.get("operations"), list)
        else ()
        for kind in (kinds if isinstance(kinds, list) else ())
    ]


def _messages(strings: object) -> dict[object, object]:
    """Give the texts of markers by correlation."""
    texts = strings.get("marker_api") if isinstance(strings, dict) else None
    return {
        text.get("key"): text.get("value")
        for text in (texts if isinstance(texts, list) else ())
        if isinstance(text, dict) and isinstance(text.get("key"), int)
    }


def _without_surrogates(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Put U+FFFD for the halves of characters that JSON can escape and text cannot hold."""
    match value:
        case str():
            return readable(value)
        case list():
            return [_without_surrogates(member) for member in value]
        case dict():
            return {
                _without_surrogates(key): _without_surrogates(member)
                for key, member in value.items()
            }
        case _:
            return value
