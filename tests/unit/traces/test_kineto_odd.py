"""Odd but readable Kineto files, and files that must not be guessed at; sums are worked out here."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agent.core.kernels import RankTrace
from agent.errors import CorruptTrace, TraceError
from agent.traces import document, events
from agent.traces.collect import Collector
from agent.traces.reader import read_trace

Event = dict[str, Any]


def kernel(index: int, **fields: Any) -> Event:
    args = {"device": 0, "stream": 7, "correlation": 100 + index, **fields.pop("args", {})}
    event = {"ph": "X", "cat": "kernel", "name": f"k{index}", "pid": 0, "tid": 7}
    return {**event, "ts": 1000 + 20 * index, "dur": 10, **fields, "args": args}


def half(phase: str, ts: float, **fields: Any) -> Event:
    return {"ph": phase, "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": ts, **fields}


FIVE = [kernel(index) for index in range(5)]


def trace(events: list[Event], **metadata: Any) -> bytes:
    return json.dumps({"schemaVersion": 1, "traceEvents": events, **metadata}).encode()


def changed(old: str, new: str, events: list[Event] = FIVE) -> bytes:
    text = trace(events).decode()
    assert text.count(old) == 1
    return text.replace(old, new).encode()


def one(folder: Path, raw: bytes, *, salvage: bool = False) -> RankTrace:
    path = folder / "trace.json"
    path.write_bytes(raw)
    (rank,) = read_trace(path, salvage=salvage).ranks
    return rank


def codes(rank: RankTrace) -> set[str]:
    return {finding.code for finding in rank.findings}


FIRST = '"ts": 1000, "dur": 10'
DIGITS = "9" * 1_000_000
SAME_FIVE = {
    "empty gzip members between": b"".join(
        gzip.compress(part) for part in (b"", trace(FIVE)[:77], b"", b"", trace(FIVE)[77:], b"")
    ),
    "an escaped key traceEvents": trace(FIVE).replace(b'"traceEvents"', b'"trace\\u0045vents"'),
    "a traceEvents further in": trace(FIVE, other={"traceEvents": [1]}),
    "a null before the list": trace(FIVE).replace(b'"schemaVersion": 1', b'"traceEvents": null'),
    "a display unit of nanoseconds": trace(FIVE, displayTimeUnit="ns"),
    "a display unit of milliseconds": trace(FIVE, displayTimeUnit="ms"),
    "a base time": trace(FIVE, baseTimeNanoseconds=1_769_070_226_071_348_200),
    "a time with an exponent": changed(FIRST, '"ts": 1.0e3, "dur": 1E+1'),
    "times as text": trace([{**event, "ts": f"{event['ts']}.000"} for event in FIVE]),
    "a correlation of a million digits": changed('"correlation": 100', f'"correlation": {DIGITS}'),
    "an unknown number of a million digits": changed('"ph": "X", "cat": "kernel", "name": "k0"',
        f'"z": {DIGITS}, "ph": "X", "cat": "kernel", "name": "k0"'),
    "metadata of a million digits": trace(FIVE).replace(b'a": 1', f'a": {DIGITS}'.encode()),
    "a name of 70 kB": changed('"k0"', f'"{"k" * 70_000}"'),
    "a category in capitals": trace([{**event, "cat": " KERNEL "} for event in FIVE]),
    "a key twice, with one value": changed(FIRST, '"ts": 1000, "dur": 10, "dur": 10'),
    "an unknown key twice": changed(FIRST, f'"z": 1, "z": 2, {FIRST}'),
    "other phases": trace(
        [*FIVE, *({**kernel(9), "ph": phase, "id": 1} for phase in "bneistfNDOCPRcM")]
    ),
    "work that is none": trace(
        [*FIVE, *(kernel(9, cat=cat, ts=0, dur=9_000) for cat in ("gpu_user_annotation", "Trace",
            "cuda_sync", "overhead", "ac2g", "user_annotation"))]
    ),
}  # fmt: skip


@pytest.mark.parametrize("raw", SAME_FIVE.values(), ids=SAME_FIVE)
def test_the_same_five_kernels(tmp_path: Path, raw: bytes) -> None:
    rank = one(tmp_path, raw)
    assert (rank.count, rank.kernel_ns, rank.busy_ns, rank.span_ns) == (5, 50_000, 50_000, 90_000)
    assert codes(rank) == set()


@pytest.mark.parametrize("place", ["few events", "many events"])
@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_a_value_nested_without_end_is_damage_and_no_crash(
    tmp_path: Path, place: str, depth: int
) -> None:
    before = [kernel(index) for index in range(5 if place == "few events" else 3_000)]
    deep = f'{{"z": {"[" * depth}{"]" * depth}, '
    raw = trace([*before, kernel(8_000), kernel(8_001)])
    raw = raw.replace(b'{"ph": "X", "cat": "kernel", "name": "k8000"', deep.encode() + b'"ph": "X"')
    with pytest.raises(CorruptTrace, match=rf"event {len(before) + 1}: nested too deeply"):
        one(tmp_path, raw)
    assert one(tmp_path, raw, salvage=True).count == len(before) + 1


@pytest.mark.parametrize("number", ["1e999999999", "-1e999999999", "1e400", f"1{'0' * 5_000}"])
def test_a_time_with_a_huge_exponent_is_none(tmp_path: Path, number: str) -> None:
    rank = one(tmp_path, changed(FIRST, f'"ts": 1000, "dur": {number}'))
    assert (rank.count, rank.kernel_ns) == (5, 40_000)
    assert "TR035" in codes(rank)


def test_a_ts_of_17_digits_keeps_its_last_decimal(tmp_path: Path) -> None:
    starts = [Decimal("1772442166525160.130"), Decimal("1772442166525160.255")]
    events = [
        kernel(index, ts=str(start), dur="0.125", name="k") for index, start in enumerate(starts)
    ]
    rank = one(tmp_path, trace(events))
    assert (rank.kernel_ns, rank.busy_ns, rank.span_ns) == (250, 250, 250)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        (FIRST, '"ts": 1000, "dur": 99, "dur": 10', "dur"),
        (FIRST, '"ts": 5, "ts": 1000, "dur": 10', "ts"),
        ('"correlation": 100', '"correlation": 1, "correlation": 100', "correlation"),
    ],
)
def test_a_key_that_stands_twice_with_two_values_is_not_chosen_from(
    tmp_path: Path, old: str, new: str, key: str
) -> None:
    raw = changed(old, new)
    with pytest.raises(CorruptTrace, match=f'event 1: key "{key}" stands twice') as caught:
        one(tmp_path, raw)
    assert "byte" in caught.value.message
    assert "--salvage" in caught.value.hint
    rank = one(tmp_path, raw, salvage=True)
    assert (rank.count, rank.info.skipped_events) == (4, 1)


def test_a_second_list_of_events_is_named_by_its_byte(tmp_path: Path) -> None:
    raw = trace(FIVE)[:-1] + b',\n"traceEvents": [' + json.dumps(kernel(9)).encode() + b"]}"
    with pytest.raises(CorruptTrace) as caught:
        one(tmp_path, raw)
    at = raw.rindex(b"[")
    assert f"the second at byte {at} " in caught.value.message
    assert caught.value.location.endswith(":2")
    assert one(tmp_path, raw, salvage=True).kernel_ns == 60_000


@pytest.mark.parametrize("times", [1, 2])
def test_gzip_inside_gzip_is_named(tmp_path: Path, times: int) -> None:
    packed = gzip.compress(trace(FIVE))
    for _ in range(times):
        packed = gzip.compress(packed)
    with pytest.raises(TraceError, match="gzip inside gzip") as caught:
        one(tmp_path, packed)
    assert "gunzip" in caught.value.hint


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_cut_inside_a_character_is_truncated(tmp_path: Path, packed: bool) -> None:
    raw = json.dumps({"traceEvents": [kernel(0), kernel(1, name="é")]}, ensure_ascii=False).encode()
    raw = raw[: raw.index("é".encode()) + 1]
    stored = gzip.compress(raw) if packed else raw
    with pytest.raises(CorruptTrace, match=r"ends inside event 2, after \d+ bytes"):
        one(tmp_path, stored)
    assert one(tmp_path, stored, salvage=True).kernel_ns == 10_000


@pytest.mark.parametrize(
    ("events", "count", "time_ns", "busy_ns"),
    [
        ([half("B", 1), half("B", 2), half("E", 4), half("E", 10)], 2, 11_000, 9_000),
        ([half("B", 1), half("E", 4), half("B", 4), half("E", 6)], 2, 5_000, 5_000),
        ([half("B", 4), half("E", 4), half("B", 4), half("E", 6)], 2, 2_000, 2_000),
        ([half("E", 6), half("B", 4), half("E", 4), half("B", 1)], 2, 5_000, 5_000),
        ([half("B", 1, tid=8), half("B", 2), half("E", 9, tid=8), half("E", 4)], 2, 10_000, 8_000),
    ],
    ids=["nested", "end to end", "of no length", "out of order", "on two threads"],
)
def test_halves_make_whole_events(
    tmp_path: Path, events: list[Event], count: int, time_ns: int, busy_ns: int
) -> None:
    rank = one(tmp_path, trace(events))
    assert (rank.count, rank.kernel_ns, rank.busy_ns) == (count, time_ns, busy_ns)


@pytest.mark.parametrize("lonely", [half("B", 5), half("E", 5)], ids=["begins", "ends"])
def test_half_an_event_is_left_out_and_said(tmp_path: Path, lonely: Event) -> None:
    rank = one(tmp_path, trace([*FIVE, lonely]))
    assert rank.kernel_ns == 50_000
    assert codes(rank) == {"TR036"}


@pytest.mark.parametrize(("past_ns", "events"), [(4_000, 0), (5_000, 0), (5_001, 1)])
def test_neighbours_may_overlap_by_5_us(tmp_path: Path, past_ns: int, events: int) -> None:
    duration = str(Decimal(20_000 + past_ns) / 1000)
    rank = one(tmp_path, trace([kernel(0, dur=duration), kernel(1)]))
    assert rank.kernel_ns == 30_000 + past_ns
    assert rank.busy_ns == 30_000
    assert (rank.clipped.events, rank.clipped.excess_ns) == (events, past_ns * events)


def test_halves_of_characters_reach_no_report(tmp_path: Path) -> None:
    """JSON can escape half a surrogate pair; text that holds one cannot be printed."""
    odd = "\ud800"
    events = [
        kernel(0, name=odd, pid=f"[{odd}] 2", tid=odd),
        {"ph": "X", "cat": "cpu_op", "name": odd, "pid": 0, "tid": odd, "ts": 0, "dur": 9_000,
         "args": {"External id": 4, "Input type": [odd], "Input Dims": [odd]}},
        kernel(1, args={"External id": 4}, pid=f"[{odd}] 2"),
    ]  # fmt: skip
    rank = one(tmp_path, trace(events, deviceProperties=[{"name": odd}], trace_id=odd))
    known = (rank.info.device_names, rank.info.properties, rank.label, list(rank.stats))
    assert "\\ud800" not in repr(known)
    assert rank.count == 2


def test_salvage_of_many_ends_of_lists_comes_to_an_end(tmp_path: Path) -> None:
    text = '{"ph": "X", "name": "a"b", "args": {"x": [{}], ' + '"y": [{}], ' * 200_000
    raw = trace(FIVE).decode().removesuffix("]}") + ", " + text
    rank = one(tmp_path, raw.encode(), salvage=True)
    assert (rank.count, rank.info.complete) == (5, False)


def test_salvage_trusts_no_event_that_a_quote_seems_to_end(tmp_path: Path) -> None:
    """`"name": "a"}"` ends too early: what stands before the quote is not the event, nor twice."""
    raw = changed('"k4", "pid": 0, "tid": 7', '""}", "pid": 0, "tid": 7')
    with pytest.raises(CorruptTrace, match="event 5"):
        one(tmp_path, raw)
    rank = one(tmp_path, raw, salvage=True)
    assert (rank.count, rank.kernel_ns, rank.info.skipped_events) == (4, 40_000, 1)


def test_the_lowest_ids_are_the_same_whatever_stands_in_their_block() -> None:
    """An event without ids sends its whole block another way; these two are one, given twice."""
    lowest = events.Arguments(correlation=-(1 << 63), stream=-(1 << 63), device=-(1 << 31))
    block = [events.Event("X", "kernel", "k", 0, 7, args=args) for args in (lowest, lowest, None)]
    collector = Collector()
    collector.take(block[:1])
    collector.take(block[1:])
    kernels = collector.rank("").kernels
    for column in (kernels.correlation, kernels.stream, kernels.device):
        assert column[0] == column[1] < -1


def test_salvage_of_events_that_are_all_torn_comes_to_an_end(tmp_path: Path) -> None:
    """Each error counted the lines of all text before it: 15 MB of these took over 100 s."""
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents":[' + '},{"' * 1_000_000, encoding="utf-8")
    with pytest.raises(CorruptTrace, match="TR008 no event is whole: 1000001 malformed events"):
        read_trace(path, salvage=True)


def test_many_keys_beside_the_events_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is decoded from a piece of the file, not from all that was read of it."""
    decoded = 0

    class Counting(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
            nonlocal decoded
            decoded += len(s)
            return super().raw_decode(s, idx)

    monkeypatch.setattr(document, "_VALUE", Counting())
    keys = ",".join(f'"key {number}": {number}' for number in range(20_000))
    text = f'{{{keys}, "long": "{"x" * 100_000}", "traceEvents": [], "last": 12}}'.encode()
    chunks = [text[at : at + 262_144] for at in range(0, len(text), 262_144)]
    found = document.read_document(chunks, lambda events: None)
    assert (len(found.metadata), found.metadata["last"]) == (20_002, 12)
    assert decoded < 100 * len(text)


def test_kernels_without_a_launch_among_those_that_have_one_are_told(tmp_path):
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7}
    events = [
        {**launch, "ts": 1, "dur": 1, "args": {"correlation": 1}},
        {**kernel, "ts": 2, "dur": 1, "args": {"correlation": 1, "stream": 7}},
        {**kernel, "ts": 4, "dur": 1, "args": {"correlation": 2, "stream": 7}},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    (finding,) = read_trace(path).ranks[0].findings
    assert (finding.code, finding.message) == (
        "TR051",
        "1 of 2 GPU events have no launch in the trace",
    )
    path.write_text(json.dumps(events[1:]))
    assert not read_trace(path).ranks[0].findings
