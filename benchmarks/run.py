"""Time reading and comparing against their floor: inflating the same files with ISA-L, one by one.

    python benchmarks/run.py [--mb 100] [--repeat 3] [--all] [--peers [PYTHON]] [--write]
        [--keep FOLDER | BASE NEW]

Makes traces (`benchmarks/traces.py`) and runs the floor, `label`, `diff --no-cache`, and `diff`
once more from the cache, in turn, several times over; prints a Markdown table of medians. Read the
ratios: seconds drift from day to day. Time is the whole command's, start included; CPU is what all
its processes took, over two since two read at once; memory is the largest process's peak. With two
traces named, those are measured instead. `--peers` also runs HolisticTraceAnalysis and TraceLens,
installed into a temporary environment, or found in that of PYTHON. `--write` puts the tables into
benchmarks/README.md; `--keep` leaves the traces in a folder, and finds them there again. The
targets are for `--mb 1000`.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "README.md"
BLOCK = "<!-- {name} -->\n{text}\n<!-- end -->"
COMMAND = (sys.executable, "-c", "from agent.cli import run; run()")
FLOOR = """
import sys
from isal import igzip_lib
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
"""
HTA = """
import sys
from hta.common.trace import Trace
from hta.trace_diff import LabeledTrace, TraceDiff
base, new = (
    LabeledTrace(label, Trace(trace_files={0: path}, trace_dir=""))
    for label, path in zip(("base", "new"), sys.argv[1:])
)
print(len(TraceDiff.compare_traces(base, new)))
"""
TRACELENS = """
import sys
from TraceLens import TraceDiff, TreePerfAnalyzer
base, new = (TreePerfAnalyzer.from_file(path).tree for path in sys.argv[1:])
diff = TraceDiff(base, new)
diff.generate_diff_stats()
print(len(diff.diff_stats_df))
"""
PEERS = {"HolisticTraceAnalysis": HTA, "TraceLens": TRACELENS}
FROM = ("HolisticTraceAnalysis", "git+https://github.com/AMD-AGI/TraceLens")
"""Where pip finds them; the `tracelens` of PyPI is another program."""
SHAPES = (
    ("--mix", "stack"),
    ("--mix", "graph"),
    ("--mix", "stack", "--sorted"),
)
MORE_SHAPES = (
    *(("--mix", "stack", "--style", style) for style in ("new", "oneline", "compact", "indent2")),
    *(("--mix", "graph", "--style", style) for style in ("new", "oneline", "compact", "indent2")),
    ("--mix", "stack", "--vendor", "amd"),
    ("--mix", "graph", "--vendor", "amd"),
    ("--mix", "graph", "--sorted"),
)
TITLE = (
    "| trace | gz MB | floor of two, s | label / floor of one | diff / floor | diff / floor, CPU |"
    " diff from the cache, s | label MB | diff MB |\n|---|---|---|---|---|---|---|---|---|"
)
PEER_TITLE = "| diff of the pair | s | times the floor | peak MB |\n|---|---|---|---|"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    failed: bool = False


Costs = Mapping[str, Sequence[Cost]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="BASE and NEW, gzipped")
    parser.add_argument("--mb", type=float, default=100, help="size of each trace made, inflated")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="every style and vendor too")
    parser.add_argument("--peers", nargs="?", const="", metavar="PYTHON", help="other tools, too")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="make the traces there")
    parser.add_argument("--write", action="store_true", help="put the tables into README.md")
    chosen = parser.parse_args()
    if len(chosen.traces) not in {0, 2}:
        parser.error("name two traces, or none")
    with tempfile.TemporaryDirectory(prefix="label-agent-bench-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        made = chosen.keep or Path(folder)
        pairs = named_pair(chosen.traces) if chosen.traces else made_pairs(chosen, made)
        table = shown(TITLE, (row(title, pair, chosen.repeat) for title, pair in pairs))
        tables = {"shapes": table}
        if chosen.peers is not None:
            pair = chosen.traces or make_pair(SHAPES[0], chosen.mb, made)
            python = chosen.peers or peers_python(Path(folder))
            tables["peers"] = shown(PEER_TITLE, peer_rows(pair, python))
    if chosen.write:
        write_page(tables)


def shown(title: str, rows: Iterator[str]) -> str:
    """Print a table as it grows, and give it."""
    lines = [title]
    print(title, flush=True)
    for line in rows:
        print(line, flush=True)
        lines.append(line)
    return "\n".join(lines)


def named_pair(pair: Sequence[Path]) -> Iterator[tuple[str, Sequence[Path]]]:
    yield "the two named", pair


def made_pairs(chosen: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Sequence[Path]]]:
    """Make two traces of each shape, and remove them when they were measured unless kept."""
    for shape in SHAPES + MORE_SHAPES * chosen.all:
        pair = make_pair(shape, chosen.mb, folder)
        yield f"{name_of(shape).replace('-', ' ')}, {chosen.mb:g} MB", pair
        if not chosen.keep:
            for path in pair:
                path.unlink()


def name_of(shape: Sequence[str]) -> str:
    options = {"--mix", "--style", "--vendor"}
    return "-".join(word.removeprefix("--") for word in shape if word not in options)


def make_pair(shape: Sequence[str], mb: float, folder: Path) -> Sequence[Path]:
    """Make a base and a slower run of a shape, where they are not there already."""
    folder.mkdir(parents=True, exist_ok=True)
    pair = [folder / f"{name_of(shape)}-{mb:g}-{name}.json.gz" for name in ("base", "new")]
    for seed, path in enumerate(pair, 1):
        if path.exists():
            continue
        slower = ("--slower", "0.1") if seed == 2 else ()
        made = path.with_suffix(".part")
        make = (str(HERE / "traces.py"), str(made), "--mb", str(mb), "--seed", str(seed))
        subprocess.run([sys.executable, *make, *shape, *slower], check=True)
        made.rename(path)
    return pair


def row(title: str, pair: Sequence[Path], repeat: int) -> str:
    """Run all commands in turn, `repeat` times, and give the medians as a row."""
    paths = [str(path) for path in pair]
    agent("diff", *paths)  # fills the cache
    commands: dict[str, Callable[[], Cost]] = {
        "one": lambda: floor(paths[:1]),
        "label": lambda: agent("label", paths[0], "--no-cache"),
        "two": lambda: floor(paths),
        "diff": lambda: agent("diff", *paths, "--no-cache"),
        "again": lambda: agent("diff", *paths),
    }
    costs: Costs = {name: [] for name in commands}
    for _ in range(repeat):
        for name, command in commands.items():
            costs[name].append(command())
    wall = {name: statistics.median(cost.seconds for cost in each) for name, each in costs.items()}
    cpu = {
        name: statistics.median(cost.cpu_seconds for cost in each) for name, each in costs.items()
    }
    peak = {name: max(cost.peak_mb for cost in each) for name, each in costs.items()}
    cells = (
        title,
        f"{sum(path.stat().st_size for path in pair) / 2e6:.0f}",
        f"{wall['two']:.2f}",
        f"{wall['label'] / wall['one']:.1f}",
        f"{wall['diff'] / wall['two']:.1f}",
        f"{cpu['diff'] / 2 / cpu['two']:.1f}",
        f"{wall['again']:.2f} ({cpu['again']:.2f} CPU)",
        f"{peak['label']:.0f}",
        f"{peak['diff']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def peers_python(folder: Path) -> str:
    """Install the other tools into an environment of their own; what fails is said by its row."""
    home = folder / "peers"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = str(home / "bin" / "python")
    for source in FROM:
        subprocess.run([python, "-m", "pip", "-q", "install", source], check=False)
    return python


def peer_rows(pair: Sequence[Path], python: str) -> Iterator[str]:
    paths = [str(path) for path in pair]
    least = floor(paths)
    yield f"| floor | {least.seconds:.2f} | 1 | {least.peak_mb:.0f} |"
    ours = agent("diff", *paths, "--no-cache")
    yield peer_row("label-agent diff", ours, least)
    for name, script in PEERS.items():
        cost = measured([python, "-c", script, *paths], dict(os.environ))
        if cost.failed:
            yield f"| {name} | not installed, or fails on this trace | | |"
        else:
            yield peer_row(name, cost, least)


def peer_row(name: str, cost: Cost, least: Cost) -> str:
    times = f"{cost.seconds / least.seconds:.1f}"
    return f"| {name} | {cost.seconds:.2f} | {times} | {cost.peak_mb:.0f} |"


def floor(paths: Sequence[str]) -> Cost:
    return measured([sys.executable, "-c", FLOOR, *paths], dict(os.environ))


def agent(*arguments: str) -> Cost:
    """Run label-agent from this checkout; its processes count one by one for memory."""
    cost = measured([*COMMAND, *arguments], os.environ | {"PYTHONPATH": str(HERE.parent)})
    if cost.failed:
        sys.exit(f"label-agent {' '.join(arguments)} failed")
    return cost


def measured(command: Sequence[str], environment: Mapping[str, str]) -> Cost:
    begun = time.perf_counter()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1_024
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return Cost(seconds, cpu_seconds, usage.ru_maxrss * unit / 1e6, failed=status != 0)


def write_page(tables: Mapping[str, str]) -> None:
    """Put each table into its block of the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables.items():
        block = re.compile(rf"<!-- {name} -->\n.*?<!-- end -->", re.DOTALL)
        text = block.sub(lambda _, n=name, t=table: BLOCK.format(name=n, text=t), text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
