"""Time reading and comparing against their floor: inflating the same files with ISA-L, one by one.

    python benchmarks/run.py [--mb 100] [--repeat 3] [--all] [--output TABLE.md] [BASE NEW]

Makes traces (`benchmarks/traces.py`), runs the floor, `label` and `diff` in turn, several times
over, and prints a Markdown table of medians. Read the ratios: seconds drift from day to day. Time
is the whole command's, start included; memory is the largest process's peak. With two traces
named, those are measured instead. The targets are for `--mb 1000`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND = (sys.executable, "-c", "import sys; from agent.cli import main; sys.exit(main())")
FLOOR = """
import sys, time
from isal import igzip_lib
begun = time.perf_counter()
for path in sys.argv[1:]:
    member, stored = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP), b""
    with open(path, "rb") as file:
        while not member.eof:
            if member.needs_input:
                stored = file.read(65_536)
                if not stored:
                    break
            member.decompress(stored, 262_144)
            stored = b""
print(time.perf_counter() - begun)
"""
SHAPES = (
    ("--mix", "stack"),
    ("--mix", "graph"),
    ("--mix", "stack", "--sorted"),
)
MORE_SHAPES = (
    *(("--mix", "stack", "--style", style) for style in ("new", "oneline", "compact", "indent2")),
    ("--mix", "stack", "--vendor", "amd"),
    ("--mix", "graph", "--vendor", "amd"),
)
TITLE = (
    "| trace | gz MB | floor of one, s | label / floor | label MB | floor of two, s |"
    " diff, s | diff / floor | diff MB a process |\n|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took."""

    seconds: float
    peak_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="BASE and NEW, gzipped")
    parser.add_argument("--mb", type=float, default=100, help="size of each trace made, inflated")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="every style and vendor too")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    chosen = parser.parse_args()
    if len(chosen.traces) not in {0, 2}:
        parser.error("name two traces, or none")
    lines = [TITLE]
    print(TITLE, flush=True)
    if chosen.traces:
        rows: Iterator[str] = iter([row("the two named", chosen.traces, chosen.repeat)])
    else:
        rows = made_rows(SHAPES + MORE_SHAPES * chosen.all, chosen.mb, chosen.repeat)
    for line in rows:
        print(line, flush=True)
        lines.append(line)
    if chosen.output:
        chosen.output.write_text("\n".join(lines) + "\n")


def made_rows(shapes: Sequence[Sequence[str]], mb: float, repeat: int) -> Iterator[str]:
    """Measure each shape on two traces of it, made for the purpose and removed."""
    for shape in shapes:
        with tempfile.TemporaryDirectory(prefix="label-agent-bench-") as folder:
            pair = [Path(folder) / name for name in ("base.json.gz", "new.json.gz")]
            for seed, path in enumerate(pair, 1):
                slower = ("--slower", "0.1") if seed == 2 else ()
                make = (str(HERE / "traces.py"), str(path), "--mb", str(mb), "--seed", str(seed))
                subprocess.run([sys.executable, *make, *shape, *slower], check=True)
            title = " ".join(word for word in shape if word not in {"--mix", "--style", "--vendor"})
            yield row(title.replace("--", ""), pair, repeat)


def row(title: str, pair: Sequence[Path], repeat: int) -> str:
    """Run all four commands in turn, `repeat` times, and give the medians as a row."""
    taken: dict[str, list[Cost]] = {}
    paths = [str(path) for path in pair]
    for _ in range(repeat):
        for name, cost in (
            ("one", floor(paths[:1])),
            ("label", run("label", paths[0])),
            ("two", floor(paths)),
            ("diff", run("diff", *paths)),
        ):
            taken.setdefault(name, []).append(cost)
    seconds = {
        name: statistics.median(cost.seconds for cost in costs) for name, costs in taken.items()
    }
    peak = {name: max(cost.peak_mb for cost in costs) for name, costs in taken.items()}
    size = sum(path.stat().st_size for path in pair) / 2e6
    cells = (
        title,
        f"{size:.0f}",
        f"{seconds['one']:.2f}",
        f"{seconds['label'] / seconds['one']:.1f}",
        f"{peak['label']:.0f}",
        f"{seconds['two']:.2f}",
        f"{seconds['diff']:.2f}",
        f"{seconds['diff'] / seconds['two']:.1f}",
        f"{peak['diff']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def floor(paths: Sequence[str]) -> Cost:
    done = subprocess.run(
        [sys.executable, "-c", FLOOR, *paths], check=True, capture_output=True, text=True
    )
    return Cost(float(done.stdout), 0.0)


def run(*arguments: str) -> Cost:
    """Run label-agent from this checkout; its processes count one by one for memory."""
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)}
    begun = time.perf_counter()
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"label-agent {' '.join(arguments)} ended with {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1_024
    return Cost(seconds, usage.ru_maxrss * unit / 1e6)


if __name__ == "__main__":
    main()
