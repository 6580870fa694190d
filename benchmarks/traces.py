"""Make a trace like the PyTorch profiler's, of any size: operators, Python frames, GPU work.

    python benchmarks/traces.py OUT.json.gz [--mb 100] [--mix stack|graph] [--style native]
        [--vendor nv|amd] [--sorted] [--seed 1] [--slower 0]

The program is the same for every seed; the seed moves durations, and `--slower 0.1` makes some
kernels slower by a tenth, so that two traces can be compared. Names are variations of the examples
of the built-in rules.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from isal import igzip

STYLES = ("native", "new", "oneline", "compact", "indent2")
MIXES = ("stack", "graph")
VENDORS = ("nv", "amd")
PROCESS, STREAMS = 4242, (7, 20)
KERNELS_A_STEP, FRAMES_A_STEP, N_NAMES = 600, 3_000, 400
HELD_OPEN = ("ts", "dur", "id", "corr", "n", "stream")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a trace looks like."""

    mix: str = "stack"
    style: str = "native"
    vendor: str = "nv"
    sorted: bool = False

    def __str__(self) -> str:
        return " ".join([self.mix, self.style, self.vendor, *["sorted"] * self.sorted])


def native(event: Mapping[str, Any]) -> str:
    """Several keys on a line, times on a line of their own."""
    keys = [key for key in event if key != "args"]
    times = [key for key in keys if key in {"ts", "dur"}]
    lines = [pairs(event, [key for key in keys if key not in times]), pairs(event, times)]
    if "args" in event:
        lines.append('"args": {\n      ' + pairs(event["args"], list(event["args"])) + "\n    }")
    if next(iter(event)) == "args":
        lines.insert(0, lines.pop())
    return "  {\n    " + ",\n    ".join(line for line in lines if line) + "\n  }"


def pairs(members: Mapping[str, Any], keys: list[str]) -> str:
    return ", ".join(f"{json.dumps(key)}: {json.dumps(members[key])}" for key in keys)


LAYOUT: dict[str, tuple[Callable[[Mapping[str, Any]], str], str]] = {
    "native": (native, ",\n"),
    "new": (lambda event: json.dumps(event, indent=2), ",\n  "),
    "oneline": (json.dumps, ", "),
    "compact": (lambda event: json.dumps(event, separators=(",", ":")), ","),
    "indent2": (lambda event: json.dumps(event, indent=2).replace("\n", "\n    "), ",\n    "),
}


@dataclass
class Writer:
    """Renders each kind of event once, and fills in its numbers from then on."""

    shape: Shape
    forms: dict[tuple[str, str], str] = field(default_factory=dict)

    def event(self, kind: str, name: str, make: Callable[[str], dict[str, Any]]) -> str:
        form = self.forms.get((kind, name))
        if form is None:
            render, between = LAYOUT[self.shape.style]
            event = make(name)
            if self.shape.sorted:
                event = in_order(event)
            form = render(event).replace("%", "%%") + between
            for number in HELD_OPEN:
                form = form.replace(f'"@{number}"', f"%({number})s")
            self.forms[kind, name] = form
        return form


def in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return value


def operator(name: str) -> dict[str, Any]:
    return complete("cpu_op", name, PROCESS) | {
        "args": {
            "External id": "@id",
            "Record function id": 0,
            "Concrete Inputs": ["", "", "False"],
            "Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"],
            "Input Strides": [[7168, 1], [1, 7168], []],
            "Input Dims": [[len(name), 7168], [7168, 4096], []],
            "Ev Idx": "@n",
        }
    }


def step_annotation(name: str) -> dict[str, Any]:
    return complete("user_annotation", name, PROCESS)


def frame(name: str) -> dict[str, Any]:
    args = {"Python parent id": "@id", "Python id": "@n", "Ev Idx": "@n"}
    return complete("python_function", name, PROCESS) | {"args": args}


def complete(cat: str, name: str, pid: int) -> dict[str, Any]:
    event = {"ph": "X", "cat": cat, "name": name, "pid": pid}
    return event | {"tid": pid or "@stream", "ts": "@ts", "dur": "@dur"}


def kernel(name: str, vendor: str) -> dict[str, Any]:
    place = {"External id": "@id", "device": 0, "stream": "@stream", "correlation": "@corr"}
    grid = {"grid": [len(name), 8, 1], "block": [256, 1, 1]}
    more = (
        {"kind": "Dispatch Kernel"}
        if vendor == "amd"
        else {"queued": 0, "context": 1, "registers per thread": 96, "shared memory": 2048,
              "blocks per SM": 1.5, "warps per SM": 12.0, "est. achieved occupancy %": 19}
    )  # fmt: skip
    return complete("kernel", name, 0) | {"args": place | more | grid}


def launch(name: str) -> dict[str, Any]:
    args = {"External id": "@id", "cbid": 211, "correlation": "@corr"}
    return complete("cuda_runtime", name, PROCESS) | {"args": args}


def flow(ph: str) -> dict[str, Any]:
    pid = PROCESS if ph == "s" else 0
    event = {"ph": ph, "id": "@corr", "pid": pid, "tid": pid or "@stream", "ts": "@ts"}
    return event | {"cat": "ac2g", "name": "ac2g"} | ({"bp": "e"} if ph == "f" else {})


class Program:
    """The steps of a model, one after the other; `seed` moves durations and nothing else."""

    def __init__(self, shape: Shape, seed: int, slower: float) -> None:
        plan = random.Random(20_26)
        self.shape = shape
        self.writer = Writer(shape)
        self.times = random.Random(seed)
        self.names = kernel_names(plan)
        self.order = plan.choices(
            range(N_NAMES), [1 / (i + 1) for i in range(N_NAMES)], k=KERNELS_A_STEP
        )
        self.length = [2 + plan.expovariate(1 / 30) for _ in self.names]
        for at in plan.sample(range(N_NAMES), 20):
            self.length[at] *= 1 + slower
        words = ["forward", "apply", "dispatch", "run", "quantize", "attend", "route", "all_reduce"]
        self.frames = [
            f"serve/{plan.choice(words)}_{i % 40}.py({1 + i % 900}): {plan.choice(words)}"
            for i in range(800)
        ]
        self.path = plan.choices(self.frames, k=FRAMES_A_STEP)
        self.operators = [f"aten::{plan.choice(words)}_{i}" for i in range(90)]

    def host(self, step: int) -> Iterator[str]:
        """Give a step's annotation and its operators."""
        form = self.writer.event("step", "ProfilerStep#", step_annotation)
        yield form.replace("ProfilerStep#", f"ProfilerStep#{step}") % numbers(begin(step), 59_999)
        for at in range(self.n_operators(step)):
            ts = begin(step) + at * 40
            name = self.operators[at % len(self.operators)]
            form = self.writer.event("op", name, operator)
            yield form % numbers(ts, 30, id=self.first_id(step) + at, n=at)

    def stacks(self, step: int) -> Iterator[str]:
        """Give the Python frames of a step: in real traces they stand together."""
        for at, name in enumerate(self.path):
            form = self.writer.event("frame", name, frame)
            yield form % numbers(begin(step) + at * 8, 20, id=at, n=at + step * FRAMES_A_STEP)

    def device(self, step: int) -> Iterator[str]:
        """Give the launches and kernels of a step; replays have one launch for all."""
        replay = self.replays(step)
        prefix = "hip" if self.shape.vendor == "amd" else "cuda"
        call = f"{prefix}GraphLaunch" if replay else f"{prefix}LaunchKernel"
        now = begin(step) + 300.0
        for at, which in enumerate(self.order):
            corr = 66_148 + step * KERNELS_A_STEP + (0 if replay else at)
            ident = self.first_id(step) + (0 if replay else at // 2)
            duration = self.length[which] * (0.9 + 0.2 * self.times.random())
            stream = STREAMS[which % 11 == 0]
            launched = begin(step) + (1 if replay else at // 2 * 40 + at % 2 * 10 + 5)
            if not (replay and at):
                yield self.writer.event("launch", call, launch) % numbers(
                    launched, 4, id=ident, corr=corr
                )
                yield self.writer.event("flow", "s", flow) % numbers(launched, 0, corr=corr)
            place = {"id": ident, "corr": corr, "stream": stream}
            form = self.writer.event("kernel", self.names[which], self.kernel)
            yield form % numbers(now, duration, **place)
            yield self.writer.event("flow", "f", flow) % numbers(now, 0, **place)
            now += duration + 1

    def kernel(self, name: str) -> dict[str, Any]:
        return kernel(name, self.shape.vendor)

    def replays(self, step: int) -> bool:
        return self.shape.mix == "graph" and step % 4 != 0

    def n_operators(self, step: int) -> int:
        return 40 if self.replays(step) else KERNELS_A_STEP // 2

    def first_id(self, step: int) -> int:
        return 1 + step * KERNELS_A_STEP


def begin(step: int) -> float:
    return 4_909_913_692_199.694 + step * 60_000


def numbers(ts: float, dur: float, **rest: int) -> dict[str, Any]:
    return {"ts": f"{ts:.3f}", "dur": f"{dur:.3f}", "stream": 7, **rest}


def kernel_names(plan: random.Random) -> list[str]:
    """Vary the built-in rules' examples; one name in eight is as long as nested templates are."""
    from agent.ruleset.codec import load_builtin

    examples = sorted({name for rule in load_builtin().rules for name in rule.examples})
    names = []
    for at in range(N_NAMES):
        name = f"{plan.choice(examples)}_{at}"
        while at % 8 == 0 and len(name) < 2_000:
            name += f", {plan.choice(examples)}"
        names.append(name)
    return names


def write_trace(path: Path, shape: Shape, *, mb: float, seed: int, slower: float) -> None:
    """Write one trace of about `mb` million bytes, gzipped as profilers do."""
    program = Program(shape, seed, slower)
    parts = [program.host, *[program.stacks] * (shape.mix == "stack"), program.device]
    size = sum(len(text) for part in parts for step in range(4) for text in part(step)) / 4
    n_steps = max(1, round(mb * 1e6 / size))
    program.times = random.Random(seed)
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": DEVICES[shape.vendor]}]}
    with igzip.open(path, "wb", compresslevel=1) as out:
        out.write(json.dumps(head, indent=2)[:-2].encode() + b',\n  "traceEvents": [\n')
        for part in parts:
            for step in range(n_steps):
                out.write("".join(part(step)).encode())
        end = {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 1}
        out.write(json.dumps(end).encode() + b'\n  ],\n  "traceName": "trace.json"\n}\n')


DEVICES = {"nv": "NVIDIA H100 80GB HBM3", "amd": "AMD Instinct MI300X"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=100)
    parser.add_argument("--mix", choices=MIXES, default="stack")
    parser.add_argument("--style", choices=STYLES, default="native")
    parser.add_argument("--vendor", choices=VENDORS, default="nv")
    parser.add_argument("--sorted", action="store_true", help="keys in order of the alphabet")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slower", type=float, default=0.0)
    chosen = parser.parse_args()
    shape = Shape(chosen.mix, chosen.style, chosen.vendor, chosen.sorted)
    write_trace(chosen.out, shape, mb=chosen.mb, seed=chosen.seed, slower=chosen.slower)


if __name__ == "__main__":
    main()
