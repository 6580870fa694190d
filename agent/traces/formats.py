"""The table of trace formats: how each is recognised and which function reads it.

Kineto JSON is the default and not in the table. Formats are tried in order on the first bytes of
the file *after* decompression, so a suffix never decides. A reader is named by import path and
imported only when its format is met.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from agent.core.kernels import RankTrace
from agent.errors import UnknownTraceFormat
from agent.traces import sniff

HEAD_BYTES = 65_536
"""How much of the decompressed file `TraceFormat.sniff` gets to see."""


class FormatReader(Protocol):
    """What a format's module offers: `path` is the file as stored, `source` how to name it."""

    def __call__(self, path: Path, source: str, *, salvage: bool) -> tuple[RankTrace, ...]:
        """Read one file; `salvage` reads what is whole and counts the rest."""
        ...


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One format.

    Attributes:
        name: as in `TraceInfo.format`.
        sniff: tells from the first decompressed bytes (and the path) whether a file is of it.
        reader: `module:function`, a `FormatReader`; "" for a known format we cannot read.
        export: for those, the command that writes a readable one.
    """

    name: str
    sniff: Callable[[bytes, Path], bool]
    reader: str = ""
    export: str = ""

    def load_reader(self) -> FormatReader:
        """Import the reading function."""
        module, _, function = self.reader.partition(":")
        return cast("FormatReader", getattr(importlib.import_module(module), function))


_NSYS = "nsys export --type sqlite FILE.nsys-rep"
_ROCPROF = "rocprofv3 --kernel-trace --output-format csv -- COMMAND, and name its kernel_trace.csv"

FORMATS: tuple[TraceFormat, ...] = (
    TraceFormat("profile", sniff.is_profile, "agent.traces.profile:read_profile_file"),
    TraceFormat("sqlite", sniff.is_sqlite, "agent.traces.sqlite:read_sqlite"),
    TraceFormat(
        "rocprofv3-json", sniff.is_rocprof_json, "agent.traces.rocprof_json:read_rocprof_json"
    ),
    TraceFormat("rocprofv3-csv", sniff.is_kernel_trace, "agent.traces.rocprof:read_kernel_trace"),
    TraceFormat("rocprofv3-stats", sniff.is_kernel_stats, "agent.traces.rocprof:read_kernel_stats"),
    TraceFormat("rocprofv3 table without kernels", sniff.is_other_rocprof_table, export=_ROCPROF),
    TraceFormat("table of nsys stats", sniff.is_nsys_table, export=_NSYS),
    TraceFormat("nsys JSON", sniff.is_nsys_json, export=_NSYS),
    TraceFormat(
        "Nsight Compute report (ncu-rep)",
        sniff.starts_with(b"NVR\0"),
        export=f"nsys profile -o FILE COMMAND, then {_NSYS} (ncu times kernels one by one)",
    ),
    TraceFormat(
        "Parquet, Arrow or HDF5 export of nsys",
        sniff.starts_with(b"PAR1", b"ARROW1", b"\x89HDF"),
        export=_NSYS,
    ),
    TraceFormat(
        "zstd, xz, bzip2 or 7z archive",
        sniff.starts_with(b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh", b"7z\xbc\xaf\x27\x1c"),
        export="unpack it (zstd -d, xz -d, bzip2 -d, 7z x) and name what was in it",
    ),
    TraceFormat(
        "gzip inside gzip",
        sniff.starts_with(b"\x1f\x8b"),
        export="gunzip FILE.gz, and name what was in it",
    ),
    TraceFormat(
        "zip inside gzip",
        sniff.starts_with(b"PK\x03\x04"),
        export="gunzip FILE.gz, and name what was in it",
    ),
    TraceFormat("tar archive", sniff.is_tar, export="tar -xf FILE, and name the folder"),
    TraceFormat(
        "Python pickle (a memory snapshot?)",
        sniff.starts_with(b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        export="torch.profiler.profile(...).export_chrome_trace('FILE.json')",
    ),
    TraceFormat(
        "Nsight Systems report (nsys-rep)",
        sniff.binary_named(".nsys-rep", ".qdrep", ".qdstrm"),
        export=_NSYS,
    ),
    TraceFormat(
        "OTF2 archive",
        sniff.binary_named(".otf2", ".def", ".evt"),
        export=_ROCPROF,
    ),
    TraceFormat(
        "XSpace protobuf (xplane.pb)",
        sniff.either(sniff.is_xplane, sniff.binary_named(".xplane.pb")),
        export=f"nsys profile -o FILE COMMAND, then {_NSYS} (on ROCm: {_ROCPROF})",
    ),
    TraceFormat(
        "Perfetto protobuf (pftrace)",
        sniff.either(
            sniff.is_perfetto, sniff.binary_named(".pftrace", ".perfetto-trace", ".proto")
        ),
        export=_ROCPROF,
    ),
)


def find_format(head: bytes, path: Path) -> TraceFormat | None:
    """Give the first format whose sniffer says yes; None means Kineto JSON or nothing we know."""
    return next((known for known in FORMATS if known.sniff(head, path)), None)


def not_json(source: str) -> UnknownTraceFormat:
    """Say that a file is no trace at all."""
    return UnknownTraceFormat(
        "TR003",
        "not JSON, and no other trace format that is known",
        location=source,
        hint="name a trace written by the PyTorch profiler, rocprofv3, rpd or nsys",
    )
