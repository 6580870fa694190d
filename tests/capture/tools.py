"""Stand-ins for vendors' programs: `python -m tests.capture.tools NAME ARGUMENT...`.

They take the options that the vendor documents, no others, and leave behind a file of the kind that
the real one writes. Options are those of
- nsys: https://docs.nvidia.com/nsight-systems/UserGuide/index.html (CLI profile, CLI export);
- rocprofv3: https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html;
- vllm: https://docs.vllm.ai/en/v0.32.0/contributing/profiling/ (`--profiler-config`, from 0.13 on).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.capture.pages import ROOT
from tests.capture.server import Serving, serve

GOLDEN = ROOT / "tests" / "golden" / "formats"
TRACED = {"cuda", "nvtx", "osrt", "cublas", "cudnn", "cusparse", "mpi", "openmp", "ucx", "none"}
EXPORTED = ("arrow", "arrowdir", "hdf", "info", "json", "jsonlines", "parquetdir", "sqlite", "text")
PROFILER_CONFIG = {
    "profiler",
    "torch_profiler_dir",
    "torch_profiler_record_shapes",
    "torch_profiler_with_memory",
    "torch_profiler_with_stack",
    "torch_profiler_with_flops",
}


def nsys(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("nsys", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    profile = commands.add_parser("profile", allow_abbrev=False)
    profile.add_argument("-t", "--trace", default="cuda,nvtx")
    profile.add_argument("--cuda-graph-trace", choices=("graph", "node"), default="graph")
    profile.add_argument("-o", "--output", default="report1")
    profile.add_argument("program", nargs=argparse.REMAINDER)
    export = commands.add_parser("export", allow_abbrev=False)
    export.add_argument("-t", "--type", choices=EXPORTED, required=True)
    export.add_argument("-o", "--output")
    export.add_argument("report", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "profile":
        assert set(options.trace.split(",")) <= TRACED
        subprocess.run(options.program, check=True)
        Path(f"{options.output}.nsys-rep").write_bytes(bytes(range(64)))
        return
    assert options.report.is_file()
    assert options.type == "sqlite"
    rows = GOLDEN / "nsys-sqlite" / "nvtx-steps" / "report.sqlite.sql"
    _database(rows, Path(options.output or options.report.with_suffix(".sqlite")))


def rocprofv3(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("rocprofv3", allow_abbrev=False)
    for domain in ("kernel", "hip", "hip-runtime", "marker", "memory-copy"):
        parser.add_argument(f"--{domain}-trace", action="store_true")
    parser.add_argument("-f", "--output-format", nargs="+", required=True,
                        choices=("csv", "json", "pftrace", "otf2", "rocpd"))  # fmt: skip
    parser.add_argument("-d", "--output-directory", type=Path, default=Path())
    options = parser.parse_args(arguments[: arguments.index("--")])
    subprocess.run(arguments[arguments.index("--") + 1 :], check=True)
    assert options.kernel_trace
    folder = options.output_directory / "host"
    folder.mkdir(parents=True)
    for form in options.output_format:
        _leave_results(form, folder)


def _leave_results(form: str, folder: Path) -> None:
    if form == "csv":
        rows = GOLDEN / "rocprofv3-csv" / "rocm-7.0" / "kernel_trace.csv"
        shutil.copy(rows, folder / "123_kernel_trace.csv")
        return
    assert form == "rocpd"
    _database(GOLDEN / "rocpd" / "one-process" / "results.db.sql", folder / "123_results.db")


def _database(script: Path, path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.executescript(script.read_text(encoding="utf-8"))


def vllm(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("vllm", allow_abbrev=False)
    parser.add_argument("command", choices=("serve",))
    parser.add_argument("model")
    parser.add_argument("-tp", "--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--kv-cache-dtype", choices=("auto", "bfloat16", "fp8", "fp8_e4m3"))
    parser.add_argument("--profiler-config", type=json.loads, required=True)
    options = parser.parse_args(arguments)
    config = options.profiler_config
    assert config["profiler"] == "torch"
    assert config.keys() <= PROFILER_CONFIG
    serving = Serving(options.tensor_parallel_size, "fp8" in (options.kv_cache_dtype or ""))
    shapes = bool(config.get("torch_profiler_record_shapes"))
    serve(serving, vllm_folder=Path(config["torch_profiler_dir"]), shapes=shapes)


PROGRAMS = {"nsys": nsys, "rocprofv3": rocprofv3, "vllm": vllm}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](sys.argv[2:])
