"""Formats are told by content; what is known and not read is named with the way out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from agent.errors import UnknownTraceFormat
from agent.traces.formats import FORMATS, find_format
from agent.traces.reader import read_trace

XPLANE = b"\x0a\x20\x08\x01\x12\x09/host:CPU" + b"\x22\x11" + b"x" * 17
PACKET = b"\x0a\x06\x08\x01\x40\x02\x50\x03"
MEMORY_COPIES = b'"Kind","Direction","Source_Agent_Id","Start_Timestamp","End_Timestamp"\n'
API_CALLS = b'"Guid","Domain","Function","Process_Id","Start_Timestamp","End_Timestamp"\n'
AGENTS = b'"Node_Id","Logical_Node_Id","Agent_Type"\n0,0,"CPU"\n'

UNREAD = {
    "an ncu report": ("report.bin", b"NVR\0\x10\0\0\0rest", "nsys export --type sqlite"),
    "an nsys report": ("run.nsys-rep", b"\x01\x02\0\0binary", "nsys export --type sqlite"),
    "an nsys report, compressed": ("run.nsys-rep", gzip.compress(b"\1\2\0"), "nsys export"),
    "an nsys Parquet export": ("kernels", b"PAR1\x15\x04", "nsys export --type sqlite"),
    "a table of nsys stats": ("k.csv", b"Time (%),Total Time (ns),Instances,Name\n", "nsys export"),
    "an XSpace protobuf": ("vm", XPLANE, "nsys export --type sqlite"),
    "a Perfetto protobuf": ("out.json", PACKET * 3, "rocprofv3 --kernel-trace"),
    "a Perfetto protobuf cut by the window": ("out", PACKET * 8192, "rocprofv3 --kernel-trace"),
    "an OTF2 archive": ("traces.otf2", b"\0\1\2\3", "rocprofv3 --kernel-trace"),
    "copies of rocprofv3": ("1_memory_copy_trace.csv", MEMORY_COPIES, "name its kernel_trace.csv"),
    "API calls of rocpd": ("hip_api_trace.csv", API_CALLS, "name its kernel_trace.csv"),
    "agents of rocprofv3": ("1_agent_info.csv", AGENTS, "name its kernel_trace.csv"),
    "zstd": ("trace.json.zst", b"\x28\xb5\x2f\xfd\0", "zstd -d"),
    "tar": ("run.tar", b"\0" * 257 + b"ustar  \0", "tar -xf"),
    "a pickle": ("snapshot.pickle", b"\x80\x04\x95\0\0", "export_chrome_trace"),
}


@pytest.mark.parametrize(("name", "content", "hint"), UNREAD.values(), ids=UNREAD)
def test_a_format_that_is_not_read_is_named_with_the_command(
    tmp_path: Path, name: str, content: bytes, hint: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnknownTraceFormat) as caught:
        read_trace(path)
    assert caught.value.code == "TR004"
    assert hint in caught.value.hint


NOT_FOREIGN = {
    "text under the name of a report": ("a.nsys-rep", b"just words\n"),
    "JSON under the name of a protobuf": ("a.xplane.pb", b'{"traceEvents": []}'),
    "a Kineto file": ("a.csv", b'{"schemaVersion": 1, "traceEvents": []}'),
    "a file that begins with an empty line": ("a", b"\n\n{}"),
    "a CSV of something else": ("kernel_trace.csv", b"a,b,c\n1,2,3\n"),
    "nothing": ("a", b""),
    "rocprofv3's key deeper down": ("a.json", b'{"x": {"rocprofiler-sdk-tool": []}}'),
}


@pytest.mark.parametrize(("name", "content"), NOT_FOREIGN.values(), ids=NOT_FOREIGN)
def test_a_suffix_alone_decides_nothing(name: str, content: bytes) -> None:
    assert find_format(content, Path(name)) is None


READ = {
    "rocprofv3-csv": b'"Kind","Agent_Id","Kernel_Name","Start_Timestamp","End_Timestamp"\n',
    "rocprofv3-stats": b'\xef\xbb\xbf"Name","Calls","TotalDurationNs","AverageNs"\r\n',
    "rocprofv3-json": b'\xef\xbb\xbf { "rocprofiler-sdk-tool" : [',
    "sqlite": b"SQLite format 3\0\x10\0",
    "profile": b'{"label_agent_profile":1,"digest":""',
}


@pytest.mark.parametrize("name", READ)
def test_a_format_is_told_under_any_name(name: str) -> None:
    for path in ("a.txt", "b.json", "run.nsys-rep", "c.xplane.pb"):
        known = find_format(READ[name], Path(path))
        assert known is not None
        assert known.name == name
        assert callable(known.load_reader())


def test_every_format_is_read_or_says_what_to_do() -> None:
    assert all(bool(known.reader) != bool(known.export) for known in FORMATS)
