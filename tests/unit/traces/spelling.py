"""The same events in many spellings: white space, key order, chunk sizes, hostile names.

`write` makes JSON text of events whose numbers are given as text, so that every decimal survives.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agent.core.kernels import RankTrace
from agent.traces.collect import Collector
from agent.traces.document import Document, read_document
from agent.traces.scanned import scanned_blocks
from agent.traces.scanner import load_library
from agent.traces.summary import FileFacts, summarise_file
from tests.unit.traces.reference import Row

HOSTILE = (
    "plain_kernel",
    'k"}, {"ph": "X", "cat": "kernel", "name": "fake", "ts": 1, "dur": 1}',
    'k},\n  {\n    "ph": "X", "cat": "python_function"',
    "back\\slash\\",
    'ends with quote"',
    "]}",
    '[{"',
    "tab\tnewline\nnull\0",
    "lambda [lambda() (instance 3)]::operator()",
    "µs – ünïcode 内核 \U0001f680",
    '"cat": "python_function"',
    '\\u0041 \\" \\\\',
    "",
)


class Number(str):
    """A number, as text."""

    __slots__ = ()


@dataclass(frozen=True)
class Style:
    """How a file is written."""

    between: str = ", "
    colon: str = ": "
    comma: str = ", "
    open: str = "{"
    close: str = "}"
    order: str = "kineto"
    escape: str = "ascii"
    head: str = '{"schemaVersion": 1, "traceEvents": ['
    tail: str = '], "traceName": "x"}'


STYLES = {
    "native": Style(",\n", open="  {\n    ", close="\n  }", comma=",\n    "),
    "new": Style(",", open="\n  {\n    ", close="\n    \n  }", comma=",\n    "),
    "oneline": Style(),
    "compact": Style(",", ":", ","),
    "indent2": Style(",\n", open="    {\n      ", close="\n    }", comma=",\n      "),
    "sorted keys": Style(order="sorted"),
    "reversed keys": Style(order="reversed"),
    "list at top level": Style(head="[", tail="]"),
    "list with a line each": Style(",\n", head="\n[\n", tail="\n]\n"),
    "metadata after": Style(
        head='{"traceEvents": [', tail='],\n"deviceProperties": [{"id": 0}, {"id": 1}], "x": 1}\n\n'
    ),
    "raw utf-8": Style(escape="raw"),
    "all escaped": Style(escape="all"),
    "carriage returns": Style(" ,\r\n\t", " : ", " , ", open="{ \t", close="\r\n}"),
}


def text_of(value: str, escape: str) -> str:
    if escape == "all":
        units = value.encode("utf-16-be")
        pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
        return '"' + "".join(f"\\u{pair}" for pair in pairs) + '"'
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\0": "\\u0000"}
    if escape == "raw":
        return '"' + "".join(short.get(char, char) for char in value) + '"'
    parts = []
    for char in value:
        if char in short:
            parts.append(short[char])
        elif char.isascii():
            parts.append(char)
        else:
            parts.append(text_of(char, "all")[1:-1])
    return '"' + "".join(parts) + '"'


def json_of(value: Any, style: Style) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return text_of(value, style.escape)
    if isinstance(value, dict):
        pairs = [
            f"{text_of(key, style.escape)}{style.colon}{json_of(value[key], style)}"
            for key in ordered(value, style)
        ]
        return "{" + style.comma.join(pairs) + "}"
    if isinstance(value, list):
        return "[" + style.comma.join(json_of(member, style) for member in value) + "]"
    return "null" if value is None else str(value)


def ordered(value: dict[str, Any], style: Style) -> list[str]:
    keys = list(value)
    if style.order == "sorted":
        return sorted(keys)
    return keys[::-1] if style.order == "reversed" else keys


def write(events: Iterable[dict[str, Any]], style: Style) -> bytes:
    texts = []
    for event in events:
        pairs = [
            f"{text_of(key, style.escape)}{style.colon}{json_of(event[key], style)}"
            for key in ordered(event, style)
        ]
        texts.append(style.open + style.comma.join(pairs) + style.close if pairs else "{}")
    return (style.head + style.between.join(texts) + style.tail).encode()


def chunked(raw: bytes, size: int) -> Iterator[bytes]:
    return (raw[at : at + size] for at in range(0, len(raw), size))


def read(raw: bytes, size: int, *, skip_frames: bool = True) -> tuple[RankTrace, Document]:
    """Read text in chunks of a size, as one rank: with the scanner, if there is one, and without."""
    rank, document = read_in_python(raw, size, skip_frames=skip_frames)
    if load_library() and skip_frames:
        scanned = read_scanned(raw, size)
        assert scanned[0] == rank
        assert scanned[1].events == document.events
        assert scanned[1].size == document.size
        assert scanned[1].metadata == document.metadata
    return rank, document


def read_in_python(
    raw: bytes, size: int, *, skip_frames: bool = True
) -> tuple[RankTrace, Document]:
    collector = Collector()
    document = read_document(chunked(raw, size), collector.take, skip_frames=skip_frames)
    return summarised(collector, document), document


def read_scanned(raw: bytes, size: int) -> tuple[RankTrace, Document]:
    collector = Collector()
    scanned = scanned_blocks(collector)
    assert scanned
    document = read_document(
        chunked(raw, size), collector.take, skip_frames=True, take_text=scanned.take
    )
    return summarised(collector, document), document


def summarised(collector: Collector, document: Document) -> RankTrace:
    collector.n_frames += document.frames
    collector.finish()
    (rank,) = summarise_file(collector, FileFacts("x.json", document.metadata))
    return rank


def columns(rank: RankTrace) -> list[Row]:
    """Give a rank's kernel table as rows to compare."""
    table = rank.kernels
    assert table is not None
    places = zip(table.device, table.stream, table.correlation, strict=True)
    times = zip(table.start_ns, table.duration_ns, strict=True)
    rows = []
    for number, (start, duration), place in zip(table.signature_id, times, places, strict=True):
        signature = table.signatures[number]
        seen = (signature.op, signature.input_dtypes, signature.replayed)
        rows.append(
            Row(signature.name, signature.work, start + rank.origin_ns, duration, *place, *seen)
        )
    return rows


def program(seed: int, size: int, names: tuple[str, ...] = HOSTILE) -> list[dict[str, Any]]:
    """Make events as a profiler would: nested ops, launches, kernels, flows, frames, metadata."""
    rng = random.Random(seed)
    events: list[dict[str, Any]] = []
    now = rng.choice([1_000, 4_909_913_692_199_694, 1_772_442_166_525_160_130])
    for index in range(size):
        now += rng.randrange(20_000, 400_000)
        shape = rng.randrange(6)
        if shape == 0:
            events += frames(rng, now, names, rng.randrange(1, 30))
        elif shape == 1:
            events.append(rng.choice(_OTHERS))
        elif shape == 2:
            events += replay(rng, now, index, names)
        else:
            events += eager(rng, now, index, names)
    return events


_OTHERS: list[dict[str, Any]] = [
    {},
    {
        "ph": "M",
        "name": "process_name",
        "pid": Number("1"),
        "tid": Number("0"),
        "args": {"name": "p},{"},
    },
    {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": Number("5.000")},
    {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "x",
        "ts": Number("1"),
        "dur": Number("9"),
    },
    {
        "ph": "X",
        "cat": "overhead",
        "name": "o",
        "pid": Number("-1"),
        "tid": Number("0"),
        "ts": Number("1.5"),
        "dur": Number("1e3"),
    },
    {
        "ph": "C",
        "cat": "counter",
        "name": "c",
        "pid": Number("1"),
        "args": {"v": [{"a": Number("1")}, {"b": Number("2")}]},
    },
]


def us(ns: int) -> Number:
    return Number(f"{ns // 1000}.{ns % 1000:03d}")


def event(cat: str, name: str, start: int, duration: int, tid: int, **args: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": Number("0"),
        "tid": Number(tid),
        "ts": us(start),
        "dur": us(duration),
    }
    if args:
        found["args"] = {key.replace("_", " "): value for key, value in args.items()}
    return found


def frames(
    rng: random.Random, now: int, names: tuple[str, ...], count: int
) -> list[dict[str, Any]]:
    return [
        event(
            "python_function",
            f"a/b.py({at}): {rng.choice(names)}",
            now + at,
            5,
            77,
            Python_id=Number(at),
        )
        for at in range(count)
    ]


def eager(rng: random.Random, now: int, index: int, names: tuple[str, ...]) -> list[dict[str, Any]]:
    tid, outer, inner, correlation = 77 + index % 3, 10 * index + 10, 10 * index + 11, 1000 + index
    types = rng.choice([["float", "c10::BFloat16"], [], ["", "Scalar"]])
    made = [
        event("cpu_op", "aten::to", now, 9_000, tid, External_id=Number(outer), Input_type=types),
        event(
            "cpu_op",
            rng.choice(names),
            now + 1_000,
            5_000,
            tid,
            External_id=Number(inner),
            Input_type=types,
        ),
        event(
            "cuda_runtime",
            "hipLaunchKernel",
            now + 2_000,
            900,
            tid,
            External_id=Number(inner),
            correlation=Number(correlation),
        ),
        {
            "ph": "s",
            "id": Number(correlation),
            "pid": Number("0"),
            "tid": Number(tid),
            "ts": us(now),
            "cat": "ac2g",
            "name": "ac2g",
        },
        event(
            rng.choice(["kernel", "kernel", "gpu_memcpy", "gpu_memset"]),
            rng.choice(names),
            now + 9_000,
            rng.randrange(1, 9_000),
            7,
            External_id=Number(inner),
            device=Number("0"),
            stream=Number(rng.choice([7, 20])),
            correlation=Number(correlation),
        ),
    ]
    if rng.random() < 0.2:
        del made[2]
    return made


def replay(
    rng: random.Random, now: int, index: int, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    correlation = Number(1000 + index)
    launch = event("cuda_runtime", "hipGraphLaunch", now, 4_000, 77, correlation=correlation)
    kernels = [
        event(
            "kernel",
            rng.choice(names),
            now + 9_000 * (at + 1),
            8_000,
            7,
            device=Number("0"),
            stream=Number("7"),
            correlation=correlation,
        )
        for at in range(rng.randrange(5))
    ]
    return [launch, *kernels]
