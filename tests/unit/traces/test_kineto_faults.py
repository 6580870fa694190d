"""Damaged and odd files: read with a warning, or refused with the place and the next step."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from agent.core.kernels import RankTrace
from agent.errors import CorruptTrace, TraceError, UnknownTraceFormat
from agent.traces.reader import read_trace

HEAD, TAIL = '{"schemaVersion": 1, "traceEvents": [\n', '\n], "traceName": "x"}'


def kernel(index: int, **fields: Any) -> str:
    args = {"device": 2, "stream": 3, "correlation": index, **fields.pop("args", {})}
    event = {"ph": "X", "cat": "kernel", "name": f"k{index}", "pid": 2, "tid": 3}
    return json.dumps({**event, "ts": 1000 + 20 * index, "dur": 10, **fields, "args": args})


KERNELS = [kernel(index) for index in range(5)]
FRAME = '{"ph": "X", "cat": "python_function", "name": "%s", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'


def document(*events: str, head: str = HEAD, tail: str = TAIL) -> bytes:
    return (head + ",\n".join(events) + tail).encode("utf-8", "surrogateescape")


WHOLE = document(*KERNELS)
PACKED = gzip.compress(WHOLE)


def put(folder: Path, raw: bytes, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_bytes(raw)
    return path


def one(path: Path, *, salvage: bool = False) -> RankTrace:
    (rank,) = read_trace(path, salvage=salvage).ranks
    return rank


def codes(rank: RankTrace) -> list[str]:
    return [finding.code for finding in rank.findings]


def zipped(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in files.items():
            archive.writestr(name, raw)
    return packed.getvalue()


READ = {
    "plain under a foreign suffix": (WHOLE, "trace.txt"),
    "gzip under the suffix of text": (PACKED, "trace.json"),
    "text under the suffix of gzip": (WHOLE, "trace.json.gz"),
    "several gzip members": (gzip.compress(WHOLE[:100]) + gzip.compress(WHOLE[100:]), "t.json.gz"),
    "a member cut inside a character": (
        gzip.compress(b'{"traceEvents": [], "x": "\xc2') + gzip.compress(b'\xb5"}'),
        "t.gz",
    ),
    "zero padding after gzip": (PACKED + bytes(512), "t.json.gz"),
    "a zip of one file": (zipped(trace=WHOLE), "t.zip"),
    "a zip of one gzip": (zipped(trace=PACKED), "t.zip"),
    "a byte order mark": (b"\xef\xbb\xbf" + WHOLE, "t.json"),
    "a byte order mark in gzip": (gzip.compress(b"\xef\xbb\xbf" + WHOLE), "t.json"),
    "a trailing comma": (document(*KERNELS, tail=",\n]}"), "t.json"),
    "a bare list": (document(*KERNELS, head="[", tail="]"), "t.json"),
    "empty events": (document("{}", *KERNELS, "{ }", "{}"), "t.json"),
    "white space around": (b"\n\n  " + WHOLE + b" \r\n\t", "t.json"),
    "escapes that spell events": (
        document(
            *KERNELS[:2], FRAME % '}, {\\"ph\\": \\"X\\", \\"cat\\": \\"kernel\\"}', *KERNELS[2:]
        ),
        "t.json",
    ),
}


@pytest.mark.parametrize(("raw", "name"), READ.values(), ids=READ)
def test_read_without_a_word(tmp_path, raw, name):
    path = put(tmp_path, raw, name)
    if raw.startswith(b"\x1f\x8b") and b"traceEvents" not in gzip.decompress(raw)[:40]:
        pytest.fail("the input of this test is wrong")
    if READ["a member cut inside a character"][0] == raw:
        with pytest.raises(TraceError, match="0 events"):
            read_trace(path)
        return
    rank = one(path)
    assert (rank.count, rank.kernel_ns) == (5, 50_000)
    assert not rank.findings
    assert rank.info.complete


def test_junk_after_gzip_is_read_with_its_offset(tmp_path):
    rank = one(put(tmp_path, PACKED + b"some junk"))
    assert rank.count == 5
    (finding,) = rank.findings
    assert finding.code == "TR022"
    assert f"from byte {len(PACKED)}" in finding.message


def test_control_bytes_and_bad_utf8_are_read_with_a_warning(tmp_path):
    raw = document(
        KERNELS[0].replace("k0", "k\x01"),
        KERNELS[1].replace("k1", "k\udc9f\udcff"),
        KERNELS[2].replace("k2", "\\ud800"),
        FRAME % "raw\nnewline",
    )
    rank = one(put(tmp_path, raw))
    assert [signature.name for signature in rank.stats] == ["k\x01", "k\ufffd\ufffd", "\ufffd"]
    messages = {finding.code: finding.message for finding in rank.findings}
    assert messages == {
        "TR020": "control characters in the text of 2 events",
        "TR021": "invalid UTF-8 replaced in 2 events",
    }


def test_bad_utf8_outside_names_is_seen_too(tmp_path):
    raw = document(kernel(0, args={"kind": "x"}).replace('"x"', '"\udcff"'), *KERNELS[1:])
    assert codes(one(put(tmp_path, raw))) == ["TR021"]


BARE = ["NaN", "Infinity", "-Infinity", "nan", "inf", "-inf", "N/A", "undefined", "None"]
DAMAGED = {
    **{f"a bare {word}": KERNELS[2].replace("1040", word) for word in BARE},
    **{
        f"a bare {word} in args": KERNELS[2].replace('"stream"', f'"o": {word}, "stream"')
        for word in BARE
    },
    "a Windows path": FRAME % r"C:\Users\me\serve.py(3): run",
    "an unescaped quote": FRAME % 'Library("_demo", "IMPL")',
    "a quoted object": FRAME % '{"device": "cpu"}(12): run',
    "a quote and a newline": FRAME % '"IMPL")\n(1): <module>',
    "a number that is none": KERNELS[2].replace("1040", "01040"),
    "no object": "5",
    "null": "null",
    "nothing": "",
    "a missing value": KERNELS[2].replace("1040", ""),
    "a missing colon": KERNELS[2].replace('"ts":', '"ts"'),
    "an unclosed list": KERNELS[2].replace('"args"', '"x": [1, 2, "args"'),
    "nested without end": '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}",
}


@pytest.mark.parametrize("place", [1, 3, 4], ids=["first", "middle", "last but one"])
@pytest.mark.parametrize("event", DAMAGED.values(), ids=DAMAGED)
def test_damage_names_its_place_and_salvage_reads_the_rest(tmp_path, event, place):
    events = [*KERNELS[: place - 1], event, *KERNELS[place - 1 :]][:5]
    whole = 4
    path = put(tmp_path, document(*events))
    with pytest.raises(CorruptTrace) as caught:
        read_trace(path)
    err = caught.value
    assert err.code == "TR008"
    assert "--salvage" in err.hint
    assert f"in event {place}" in err.message
    line = 1 + place
    assert re.fullmatch(rf".*:({line}|{line + 1})", err.location)
    found = re.search(r"at byte (\d+) \(column (\d+)\)", err.message)
    assert found
    before = document(*events)[: int(found[1])]
    assert before.count(b"\n") + 1 == int(err.location.rpartition(":")[2])
    assert len(before.rpartition(b"\n")[2]) + 1 == int(found[2])
    rank = one(path, salvage=True)
    assert (rank.count, rank.kernel_ns) == (whole, 10_000 * whole)
    assert rank.info.skipped_events == 1
    assert not rank.info.complete
    assert "TR023" in codes(rank)


@pytest.mark.parametrize("event", [text for text in DAMAGED.values() if text])
def test_a_damaged_last_event_costs_itself_alone(tmp_path, event):
    path = put(tmp_path, document(*KERNELS[:4], event))
    with pytest.raises(CorruptTrace, match="in event 5"):
        read_trace(path)
    rank = one(path, salvage=True)
    assert (rank.count, rank.info.skipped_events) == (4, 1)


def test_objects_inside_a_damaged_event_are_no_events(tmp_path):
    damaged = '{"ph": "X", "name": "a"b", "args": {"l": [{"a": 1}, {"b": 2}]}}'
    rank = one(put(tmp_path, document(*KERNELS[:2], damaged, *KERNELS[2:])), salvage=True)
    assert (rank.count, rank.info.skipped_events) == (5, 1)


def test_neighbouring_damage_is_counted_one_by_one(tmp_path):
    events = [KERNELS[0], FRAME % 'a"b', FRAME % 'c"d', KERNELS[1], "null", FRAME % 'e"f']
    rank = one(put(tmp_path, document(*events)), salvage=True)
    assert (rank.count, rank.info.skipped_events) == (2, 4)


def test_metadata_after_a_damaged_last_event_are_still_read(tmp_path):
    tail = '], "distributedInfo": {"rank": 3, "world_size": 4}, "deviceProperties": [{"id": 0}]}'
    rank = one(put(tmp_path, document(KERNELS[0], FRAME % 'a"b', tail=tail)), salvage=True)
    assert (rank.rank, rank.info.skipped_events) == (3, 1)


@pytest.mark.parametrize(
    "cut", [1, 60, len(HEAD) + 3, 333, len(WHOLE) - 30, len(WHOLE) - 22, len(WHOLE) - 18]
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_truncation_names_event_and_bytes(tmp_path, cut, packed):
    raw = WHOLE[:cut]
    path = put(tmp_path, gzip.compress(raw)[:-8] if packed else raw)
    with pytest.raises(CorruptTrace) as caught:
        read_trace(path)
    err = caught.value
    assert err.code == ("TR010" if packed else "TR009")
    assert re.search(r"ends (inside|after) event \d|inside its metadata", err.message)
    assert f"after {cut} bytes of JSON" in err.message
    whole = raw.count(b"}}")
    if whole:
        rank = one(path, salvage=True)
        assert rank.count == whole
        assert not rank.info.complete
    else:
        with pytest.raises(TraceError):
            read_trace(path, salvage=True)


@pytest.mark.parametrize("damage", ["checksum", "flipped byte", "no trailer", "header only"])
def test_damaged_gzip_is_named(tmp_path, damage):
    raw = bytearray(PACKED)
    if damage == "checksum":
        raw[-6] ^= 1
    if damage == "flipped byte":
        raw[len(raw) // 2] ^= 255
    if damage == "no trailer":
        del raw[-4:]
    if damage == "header only":
        del raw[12:]
    path = put(tmp_path, bytes(raw), "t.json.gz")
    with pytest.raises(CorruptTrace) as caught:
        read_trace(path)
    assert caught.value.code == "TR010"
    assert caught.value.hint
    if damage in ("checksum", "no trailer"):
        rank = one(path, salvage=True)
        assert rank.count == 5
        assert not rank.info.complete


def test_salvage_keeps_what_was_inflated_before_the_damage(tmp_path):
    raw = document(*(kernel(index) for index in range(20_000)))
    packed = bytearray(gzip.compress(raw))
    at = len(packed) * 3 // 4
    packed[at : at + 500] = b"\xff" * 500
    rank = one(put(tmp_path, bytes(packed)), salvage=True)
    assert 14_000 < rank.count < 16_000
    assert not rank.info.complete


REFUSED = {
    "two lists": (document(*KERNELS, tail='], "traceEvents": [' + KERNELS[0] + "]}"), "TR015"),
    "two documents": (WHOLE + b"\n" + WHOLE, "TR008"),
    "a zip of two files": (zipped(a=WHOLE, b=WHOLE), "TR011"),
    "an empty zip": (zipped(), "TR003"),
    "half a zip": (zipped(trace=WHOLE * 50)[:200], "TR011"),
    "UTF-16": (WHOLE.decode().encode("utf-16"), "TR003"),
    "UTF-16 without a mark": (WHOLE.decode().encode("utf-16-le"), "TR003"),
    "a page of HTML": (b"<!DOCTYPE html><html></html>", "TR003"),
    "white space": (b" \n ", "TR003"),
    "a string": (b'"hello"', "TR003"),
    "nothing": (b"", "TR002"),
    "gzip of nothing": (gzip.compress(b""), "TR010"),
    "an object of something else": (b'{"results": [1]}', "TR005"),
    "an object under traceEvents": (b'{"traceEvents": {"a": 1}}', "TR005"),
    "an empty list": (b"[]", "TR006"),
    "a list of numbers": (b"[1, 2]", "TR005"),
}


@pytest.mark.parametrize(("raw", "code"), REFUSED.values(), ids=REFUSED)
def test_refused_with_a_hint(tmp_path, raw, code):
    with pytest.raises(TraceError) as caught:
        read_trace(put(tmp_path, raw))
    assert caught.value.code == code
    assert caught.value.hint
    assert caught.value.location.startswith(str(tmp_path))


def test_two_lists_are_salvaged_as_incomplete(tmp_path):
    rank = one(put(tmp_path, REFUSED["two lists"][0]), salvage=True)
    assert rank.count == 5
    assert not rank.info.complete
    assert "TR034" in codes(rank)


NUMBERS = {
    "ids beyond 64 bits": kernel(0, args={"correlation": 2**64 - 1, "External id": 2**70}),
    "a device beyond 32 bits": kernel(0, args={"device": 2**40}),
    "a stream beyond 64 bits": kernel(0, args={"stream": -(2**80)}),
    "ids as text": kernel(0, args={"device": "2", "stream": "3", "correlation": "7"}),
    "ids as floats": kernel(0, args={"device": 2.0, "correlation": 7.0}),
    "ids of no kind": kernel(0, args={"device": None, "stream": [], "correlation": {}}),
    "args of no kind": kernel(0).replace('"args": {', '"args": [], "x": {'),
    "no pid": kernel(0, pid=None, tid=None),
    "a float pid": kernel(0, pid=2.5, tid=3.0),
}


@pytest.mark.parametrize("event", NUMBERS.values(), ids=NUMBERS)
def test_odd_ids_do_not_cost_an_event(tmp_path, event):
    rank = one(put(tmp_path, document(event, *KERNELS[1:])))
    assert (rank.count, rank.kernel_ns, rank.busy_ns, rank.span_ns) == (5, 50_000, 50_000, 90_000)


@pytest.mark.parametrize("time", [10**20, -(10**20), None, "N/A", "", {}, True])
def test_times_that_are_none_are_flagged_and_stretch_nothing(tmp_path, time):
    raw = document(kernel(0, ts=time), *KERNELS[1:4], kernel(4, dur=time))
    rank = one(put(tmp_path, raw))
    assert (rank.count, rank.kernel_ns, rank.span_ns) == (5, 40_000, 60_000)
    assert {"TR031", "TR035"} <= set(codes(rank))


def test_begin_and_end_pairs_are_kernels(tmp_path):
    begin = '{"ph": "B", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %s, "args": {"stream": 7}}'
    end = '{"ph": "E", "pid": 0, "tid": 7, "ts": %s}'
    outer = '{"ph": "B", "cat": "other", "name": "o", "pid": 0, "tid": 7, "ts": 1}'
    events = [outer, begin % ("a", 5), end % "7.125", begin % ("b", 8), end % 9, end % 20]
    rank = one(put(tmp_path, document(*events)))
    assert {signature.name: stats.time_ns for signature, stats in rank.stats.items()} == {
        "a": 2_125,
        "b": 1_000,
    }
    backwards = one(put(tmp_path, document(*reversed(events))))
    assert backwards.stats == rank.stats


def test_a_begin_without_end_is_reported(tmp_path):
    begin = '{"ph": "B", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 5}'
    rank = one(put(tmp_path, document(*KERNELS, begin)))
    assert rank.count == 5
    assert codes(rank) == ["TR036"]


def test_a_jump_of_the_clock_is_reported(tmp_path):
    rank = one(put(tmp_path, document(*KERNELS, kernel(6, ts=10**15))))
    assert codes(rank) == ["TR037"]


def spelled_2021(cat: str, name: str, tid: str | int, ts: int, **args: object) -> str:
    fields = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": 3}
    return json.dumps({**fields, "args": {key.replace("_", " "): args[key] for key in args}})


def test_spelling_of_2021(tmp_path):
    types = ["c10::BFloat16", "float"]
    events = [
        spelled_2021("Operator", "aten::copy_", 5, 11, external_id=4, Input_type=types),
        spelled_2021("Runtime", "cudaLaunchKernel", 5, 12, external_id=4, correlation=9),
        spelled_2021("Kernel", "copy", "stream 7", 70, external_id=4, correlation=9),
        spelled_2021("Memcpy", "Memcpy HtoD", "stream 7", 80),
        spelled_2021("Memset", "Memset", "stream 8", 90),
    ]
    rank = one(put(tmp_path, document(*events, head="[", tail="]")))
    assert rank.kernels
    assert list(rank.kernels.stream) == [7, 7, 8]
    (signature,) = (signature for signature in rank.stats if signature.work == "kernel")
    assert (signature.op, signature.input_dtypes) == ("aten::copy_", ("c10::BFloat16", "float"))
    assert {signature.work for signature in rank.stats} == {"kernel", "memcpy", "memset"}
    assert (rank.count, rank.launches) == (1, 1)


def test_an_unreadable_file_is_an_error(tmp_path):
    with pytest.raises(TraceError, match="no such file"):
        read_trace(tmp_path / "missing.json")
    with pytest.raises(TraceError, match="matches nothing"):
        read_trace(str(tmp_path / "*.json"))
    with pytest.raises(TraceError, match="no traces in this folder"):
        read_trace(tmp_path)
    with pytest.raises(TraceError, match="no trace is named"):
        read_trace([])


def test_a_known_but_unsupported_file_names_the_export(tmp_path):
    with pytest.raises(UnknownTraceFormat) as caught:
        read_trace(put(tmp_path, b"\x0a\x7f" + bytes(64), "host.xplane.pb"))
    assert caught.value.hint
