"""A stand-in for a serving stack: it answers as SGLang or vLLM does, and its traces are made.

Forward passes happen when requests come, and a profile holds the passes since it was asked for.
File names are those of SGLang's `scheduler_profiler_mixin.py`, fields those of its `io_struct.py`.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

from tests.capture.pages import ROOT

DECODES_PER_REQUEST = 4
CASTS = {
    "to_fp8": ["c10::Float8_e4m3fnuz", "c10::BFloat16", "Scalar"],
    "from_fp8": ["c10::BFloat16", "c10::Float8_e4m3fnuz", "Scalar"],
    "copy": ["c10::BFloat16", "c10::BFloat16", "Scalar"],
}


@dataclass(frozen=True)
class Serving:
    """How the server was started."""

    ranks: int
    fp8: bool
    graphs: bool = True
    fields: frozenset[str] = frozenset()


@dataclass
class Profile:
    """A capture under way; `passes` are the stages of the forward passes so far."""

    folder: Path
    steps: int | None
    by_stage: bool
    shapes: bool
    stack: bool
    prefix: str = ""
    suffix: str = ".trace.json.gz"
    passes: list[str] = field(default_factory=list)

    def wants(self, stage: str) -> bool:
        """Tell whether a pass is still to be recorded."""
        so_far = self.passes.count(stage) if self.by_stage else len(self.passes)
        return self.steps is None or so_far < self.steps

    @property
    def full(self) -> bool:
        return not (self.wants("EXTEND") or self.wants("DECODE"))


class Engine:
    """The passes of a server, and what is recorded of them."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.profile: Profile | None = None
        self._captures = 0
        self._lock = threading.Lock()

    def start(self, profile: Profile) -> str:
        with self._lock:
            if self.profile is not None:
                return "Profiling is already in progress. Call /stop_profile first."
            self.profile = profile
            return ""

    def stop(self) -> str:
        with self._lock:
            if self.profile is None:
                return "Profiling is not in progress. Call /start_profile first."
            self._write(self.profile)
            return ""

    def generate(self) -> None:
        """Run a prefill pass and some decode passes."""
        with self._lock:
            for stage in ("EXTEND", *["DECODE"] * DECODES_PER_REQUEST):
                if self.profile and self.profile.wants(stage):
                    self.profile.passes.append(stage)
                if self.profile and self.profile.full:
                    self._write(self.profile)

    def _write(self, profile: Profile) -> None:
        """Write a file for each rank, and for each stage where they are asked for."""
        self.profile, self._captures = None, self._captures + 1
        profile.folder.mkdir(parents=True, exist_ok=True)
        stages = ("EXTEND", "DECODE") if profile.by_stage else ("",)
        for rank in range(self.serving.ranks):
            for stage in stages:
                passes = [one for one in profile.passes if not stage or one == stage]
                name = f"{profile.prefix}{rank}{stage and '-' + stage}{profile.suffix}"
                seed = f"{self._captures} {rank} {stage}"
                text = rank_json(self.serving, profile, rank, passes, seed)
                (profile.folder / name).write_bytes(gzip.compress(text.encode(), 1))


@cache
def made() -> ModuleType:
    """Give the maker of the demo's traces."""
    spec = importlib.util.spec_from_file_location("made", ROOT / "demo" / "make_traces.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["made"] = module
    spec.loader.exec_module(module)
    module.first_line = cache(module.first_line)
    return module


def rank_json(serving: Serving, profile: Profile, rank: int, passes: list[str], seed: str) -> str:
    """Give one rank's trace: prefill passes eager, decode passes from graphs unless they are off."""
    maker = made()
    writer = maker.Writer(maker.random.Random(seed))
    side = "fp8" if serving.fp8 else "bf16"
    for stage in passes:
        decode = stage == "DECODE"
        keys = [key for _ in range(maker.LAYERS) for key in maker.layer(side, decode=decode)]
        if decode and serving.graphs:
            writer.replay(keys)
            continue
        for key in keys:
            at = len(writer.events)
            writer.eager(key)
            writer.events[at:] = [_kept(event, key, profile) for event in writer.events[at:]]
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 2, "name": "AMD Instinct MI308X"}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": serving.ranks},
        "record_shapes": int(profile.shapes),
        "with_stack": int(profile.stack),
    }
    events = ",\n".join(filter(None, writer.events))
    return f'{json.dumps(head)[:-1]}, "traceEvents": [\n{events}\n]}}'


def _kept(event: str, key: str, profile: Profile) -> str:
    """Drop frames where no stack was asked for; add dtypes where shapes were."""
    if '"cat": "python_function"' in event:
        return event if profile.stack else ""
    if profile.shapes and '"aten::copy_"' in event:
        return event.replace('"args": {', f'"args": {{"Input type": {json.dumps(CASTS[key])}, ')
    return event


def serve(serving: Serving, *, vllm_folder: Path | None = None, shapes: bool = True) -> None:
    """Answer until killed, on the port that `STAND_IN_PORT` names."""
    engine = Engine(serving)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path in {"/health", "/server_info", "/get_server_info"}
            self._answer("" if known else "Not Found", {"tp_size": serving.ranks})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
            said = "Not Found"
            if self.path in {"/generate", "/v1/completions"}:
                said = engine.generate() or ""
            elif self.path == "/start_profile" and vllm_folder:
                said = engine.start(Profile(vllm_folder, None, False, shapes, True, "host_1-rank-"))
            elif self.path == "/start_profile":
                unknown = sorted(body.keys() - serving.fields)
                said = f"no such field: {unknown}" if unknown else engine.start(asked(body))
            elif self.path == "/stop_profile":
                said = engine.stop()
            self._answer(said, {})

        def _answer(self, refusal: str, document: dict[str, object]) -> None:
            self.send_response(422 if refusal else 200)
            self.end_headers()
            self.wfile.write((refusal or json.dumps(document)).encode())

        def log_message(self, *_: object) -> None:
            pass

    address = ("127.0.0.1", int(os.environ["STAND_IN_PORT"]))
    ThreadingHTTPServer(address, Handler).serve_forever()


def asked(body: dict[str, object]) -> Profile:
    """Read a request to SGLang; shapes and stacks are on unless they are refused."""
    prefix = f"{body['profile_prefix']}-" if body.get("profile_prefix") else ""
    folder = body.get("output_dir") or os.environ.get("SGLANG_TORCH_PROFILER_DIR", "/tmp")
    return Profile(
        Path(str(folder)),
        int(str(body["num_steps"])) if body.get("num_steps") else None,
        bool(body.get("profile_by_stage")),
        body.get("record_shapes") is not False,
        body.get("with_stack") is not False,
        f"{prefix}{time.time()}-TP-",
    )
