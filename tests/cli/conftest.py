"""A way to run the program in this process, and a small trace that is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.cli import main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str | Path) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return call


def kernel(name: str, start_us: int, duration_us: int, stream: int = 0) -> dict[str, object]:
    args = {"device": 0, "stream": stream, "correlation": start_us}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": start_us,
        "dur": duration_us,
        "args": args,
    }


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """Three kernels of 10, 20 and 30 us, of which the last is known to no rule."""
    events = [
        kernel("moe_gemm1_0", 100, 10),
        kernel("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", 200, 20),
        kernel("opaque_device_fn_q7_v3", 300, 30),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path
