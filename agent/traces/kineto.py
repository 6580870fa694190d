"""Read one Kineto file (PyTorch profiler JSON, any dialect) into its ranks."""

from __future__ import annotations

from pathlib import Path

from agent.core.kernels import RankTrace
from agent.core.proposals import Finding
from agent.errors import CorruptTrace, TraceError, UnknownTraceFormat
from agent.traces.collect import Collector
from agent.traces.columns import COUNTED
from agent.traces.document import DamagedDocument, Document, read_document
from agent.traces.formats import not_json
from agent.traces.inflate import ByteStream, Progress
from agent.traces.scanned import scanned_blocks
from agent.traces.summary import FileFacts, summarise_file
from agent.traces.walk import readable

SALVAGE_HINT = "--salvage reads the whole events, skips the rest and stamps the result INCOMPLETE"


def read_kineto(
    path: Path,
    source: str,
    *,
    salvage: bool = False,
    context: bool = False,
    progress: Progress | None = None,
) -> tuple[RankTrace, ...]:
    """Read one file; a merged file gives one `RankTrace` per rank.

    Raises:
        CorruptTrace: the JSON or its compression is damaged and `salvage` is off.
        UnknownTraceFormat: JSON, but no trace.
        TraceError: no GPU kernels in it.
    """
    stream = ByteStream(path, source, progress=progress)
    collector = Collector(context=context)
    scanned = None if context else scanned_blocks(collector)
    try:
        document = read_document(
            stream,
            collector.take,
            salvage=salvage,
            skip_frames=not context,
            take_text=scanned.take if scanned else None,
        )
        collector.n_frames += document.frames
    except DamagedDocument as damaged:
        raise _damage_error(damaged, stream, salvage=salvage) from None
    collector.finish()
    _require_trace(document, collector, source)
    if not salvage:
        _require_whole(document, stream)
    _require_kernels(document, collector, stream)
    broken = document.broken or document.lists > 1
    complete = document.ended and not broken and not stream.damage
    findings = _file_findings(document, stream, collector, complete=complete)
    facts = FileFacts(source, document.metadata, complete, document.skipped, findings)
    return summarise_file(collector, facts)


def _damage_error(damaged: DamagedDocument, stream: ByteStream, *, salvage: bool) -> TraceError:
    """Say where the text breaks: line, byte and event, and what to do."""
    source = stream.source
    if damaged.foreign:
        return (
            _no_list(source, "a list that holds no events") if damaged.event else not_json(source)
        )
    hint = "copy or capture it again" if salvage else SALVAGE_HINT
    if stream.damage and not stream.cut_off:
        message = f"{stream.damage}, after {damaged.at} bytes of JSON"
        return CorruptTrace("TR010", message, location=source, hint=hint)
    if damaged.truncated or stream.damage:
        cause = f"; {stream.damage}" if stream.damage else ""
        code = "TR010" if stream.damage else "TR009"
        how = "truncated: " if damaged.truncated else ""
        message = f"{how}{damaged.what}, after {damaged.at} bytes of JSON{cause}"
        return CorruptTrace(code, message, location=source, hint=hint)
    line, column = _line_of(stream.path, source, damaged.at)
    event = f" in event {damaged.event}" if damaged.event else ""
    message = f"damaged JSON at byte {damaged.at} (column {column}){event}: {damaged.what}"
    return CorruptTrace("TR008", message, location=f"{source}:{line}", hint=hint)


def _line_of(path: Path, source: str, at: int) -> tuple[int, int]:
    """Give line and column (from 1) of a byte of the decompressed file."""
    line, column, left = 1, 1, at
    for chunk in ByteStream(path, source):
        part = chunk[:left]
        line += part.count(b"\n")
        last = part.rfind(b"\n")
        column = len(part) - last if last >= 0 else column + len(part)
        left -= len(part)
        if not left:
            break
    return line, column


def _require_trace(document: Document, collector: Collector, source: str) -> None:
    if not document.lists:
        keys = readable(", ".join(sorted(document.metadata)[:5])) or "none"
        raise _no_list(source, f"JSON without a traceEvents list (keys: {keys})")
    read = document.events + document.skipped
    if document.bare and read and not (collector.phased or document.frames):
        raise _no_list(source, "a list that holds no events")


def _no_list(source: str, what: str) -> UnknownTraceFormat:
    hint = "export it with torch.profiler's export_chrome_trace"
    return UnknownTraceFormat("TR005", f"not a trace: {what}", location=source, hint=hint)


def _require_whole(document: Document, stream: ByteStream) -> None:
    if stream.damage:
        message = f"{stream.damage}, after {document.size} bytes of JSON"
        raise CorruptTrace("TR010", message, location=stream.source, hint=SALVAGE_HINT)
    if document.lists > 1:
        line, column = _line_of(stream.path, stream.source, document.second_list)
        message = (
            f"{document.lists} traceEvents lists in one file, the second at byte"
            f" {document.second_list} (column {column}): it is not clear which to read"
        )
        location = f"{stream.source}:{line}"
        raise CorruptTrace("TR015", message, location=location, hint=SALVAGE_HINT)


def _require_kernels(document: Document, collector: Collector, stream: ByteStream) -> None:
    source = stream.source
    if any(len(rank.kernels.start_ns) for rank in collector.ranks.values()):
        return
    if not document.events and document.skipped:
        raise CorruptTrace(
            "TR008",
            f"no event is whole: {document.skipped} malformed events",
            location=source,
            hint="capture it again",
        )
    if not document.events:
        raise TraceError(
            "TR006",
            "0 events in traceEvents",
            location=source,
            hint="capture again: the profiler was stopped before anything ran",
        )
    launches = sum(
        flag & COUNTED for rank in collector.ranks.values() for flag in rank.launches.flags
    )
    if not document.ended or stream.damage:
        what = "the file ends before its GPU part"
        hint = "salvage needs a file that reaches its kernels: copy or capture it again"
        message = f"0 GPU kernels in {document.events} whole events: {what}"
        raise TraceError("TR007", message, location=source, hint=hint)
    if launches:
        what = (
            f"but {launches} kernel launches: the profiler had no GPU activity (CUPTI / roctracer)"
        )
        hint = "profile with ProfilerActivity.CUDA and check that no other profiler holds the GPU"
    else:
        what = "and no kernel launches: nothing ran on a GPU in this window"
        hint = "profile while the model runs, with ProfilerActivity.CUDA"
    raise TraceError(
        "TR007", f"0 GPU kernels in {document.events} events, {what}", location=source, hint=hint
    )


def _file_findings(
    document: Document, stream: ByteStream, collector: Collector, *, complete: bool
) -> tuple[Finding, ...]:
    found: list[tuple[str, str]] = []
    if document.control:
        found.append(("TR020", f"control characters in the text of {document.control} events"))
    if document.bad_utf8:
        found.append(("TR021", f"invalid UTF-8 replaced in {document.bad_utf8} events"))
    if stream.junk_at is not None:
        found.append(("TR022", f"bytes after the gzip data ignored, from byte {stream.junk_at} on"))
    if not complete:
        found.append(("TR023", f"INCOMPLETE: {_lost(document, stream)}"))
    if collector.unpaired:
        message = f"{collector.unpaired} events that only begin (B) or only end (E) are left out"
        found.append(("TR036", message))
    return tuple(
        Finding(code, message, severity="warning", location=stream.source)
        for code, message in found
    )


def _lost(document: Document, stream: ByteStream) -> str:
    """Say what salvaging passed over, and where the file ends if that is too early."""
    n = document.skipped
    parts = ["1 malformed event was skipped" if n == 1 else f"{n} malformed events were skipped"]
    if document.cut_off and (stream.cut_off or not stream.damage):
        parts.append(f"the file is cut off after {document.size} bytes of JSON")
    elif not n and not stream.damage:
        parts.append("the JSON around the events is damaged")
    if stream.damage:
        parts.append(stream.damage)
    return "; ".join(parts)
