"""Count what the proposers settle, offline and with a recorded model, and what they recover.

    python benchmarks/agent.py [--write] [--sglang-trace TRACE --sglang-wheel DIR]
        [--ablate --trace TRACE ... --repo NAME=DIR ...]

The model's replies are replayed from `cassettes/recorded/` with the network blocked. Without
options the demo is counted; with a trace of SGLang and the wheel, unpacked in a git checkout, that
run too. `--ablate` takes the rules of one category after another out of the built-in file, lets
`propose` work offline on each trace and on the names the rules give as examples, and compares the
labels with those of the whole file. `--write` puts the tables into `docs/agent-benchmark.md`;
parts whose input is not given stay as they are.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import re
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pytest_recording.network import blocking_context

from agent.bundled import bundled_folder
from agent.cli import main as label_agent
from agent.core.kernels import Trace
from agent.core.rules import UNLABELLED, RuleSet
from agent.ruleset.codec import load_builtin, load_rules
from agent.ruleset.match import label_trace
from agent.traces.reader import read_trace
from tests.replay import runs
from tests.replay.cassettes import MODEL, recorder

PAGE = Path(__file__).resolve().parent.parent / "docs" / "agent-benchmark.md"
RUNS_HEAD = (
    "| proposer | families | settled | admitted | rejected | abstained | failed | calls | tokens"
    " | a family |"
    "\n| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
)
FAMILIES_HEAD = (
    "| family | share | offline | model | calls | tokens |"
    "\n| --- | ---: | --- | --- | ---: | ---: |"
)
ABLATION_HEAD = (
    "| category taken out | GPU time | recovered | wrongly | by another rule | left open"
    " | names | recovered | wrongly | by another rule | left open |"
    "\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def main(arguments: Sequence[str]) -> int:
    given = _options().parse_args(arguments)
    parts = {"demo": _counted(_demo_runs())}
    if given.sglang_trace and given.sglang_wheel:
        sglang = runs.Sglang(given.sglang_trace, given.sglang_wheel)
        parts["sglang"] = _counted(_sglang_runs(sglang))
    if given.ablate:
        parts["ablation"] = _ablation(given.trace, given.repo)
    for name, table in parts.items():
        print(f"{name}\n\n{table}\n")
    if given.write:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), parts), encoding="utf-8")
    return 0


def filled(page: str, parts: dict[str, str]) -> str:
    """Put tables into the page's blocks `<!-- agent: NAME -->` ... `<!-- end -->`."""
    for name, table in parts.items():
        block = re.compile(rf"<!-- agent: {name} -->\n.*?<!-- end -->", re.DOTALL)
        page = block.sub(lambda _: f"<!-- agent: {name} -->\n{table}\n<!-- end -->", page)  # noqa: B023
    return page


def demo_table() -> str:
    """Give the part of the page that needs nothing but the repository."""
    return _counted(_demo_runs())


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--sglang-trace", type=Path)
    parser.add_argument("--sglang-wheel", type=Path)
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--trace", action="append", default=[])
    parser.add_argument("--repo", action="append", default=[])
    return parser


# What each proposer settles.


def _demo_runs() -> Iterator[tuple[str, str, dict]]:
    for proposer, model, cassette in (
        ("offline", "offline", ""),
        ("recorded, OpenAI's interface", f"openai:{MODEL}", runs.OPENAI_DEMO),
        ("recorded, Anthropic's interface", f"anthropic:{MODEL}", runs.ANTHROPIC_DEMO),
    ):
        yield (proposer, *_replayed(cassette, lambda to, of=model: runs.propose_on_demo(to, of)))


def _sglang_runs(sglang: runs.Sglang) -> Iterator[tuple[str, str, dict]]:
    for proposer, model, cassette in (
        ("offline", "offline", ""),
        ("recorded, OpenAI's interface", f"openai:{MODEL}", runs.SGLANG),
    ):
        run = lambda to, of=model: runs.propose_on_sglang(to, sglang, of)  # noqa: E731
        yield (proposer, *_replayed(cassette, run))


def _replayed(cassette: str, run) -> tuple[str, dict]:
    replay = recorder("none").use_cassette(cassette) if cassette else contextlib.nullcontext()
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, blocking_context(), replay as played:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            run(Path(folder) / "run")
        if played is not None and not played.all_played:
            raise RuntimeError(f"{cassette}: the run did not ask all that was recorded")
    return cassette, json.loads(out.getvalue())


def _counted(every: Iterator[tuple[str, str, dict]]) -> str:
    counted = list(every)
    rows = [_run_row(proposer, result) for proposer, _, result in counted]
    families = _family_rows(counted[0][2], counted[1][2])
    return "\n".join([RUNS_HEAD, *rows, "", FAMILIES_HEAD, *families])


def _run_row(proposer: str, result: dict) -> str:
    families, spent = result["families"], result["usage"]
    answers = Counter(family["answer"] for family in families)
    codes = Counter(code for one in result["proposals"] for code in _codes(one))
    rejected = str(answers["rejected"])
    if codes:
        rejected += ": " + ", ".join(f"{code} {count}" for code, count in sorted(codes.items()))
    tokens = spent["prompt_tokens"] + spent["completion_tokens"]
    unsettled = answers["failed"] + answers["unasked"]
    cells = (
        *(proposer, len(families), len(families) - unsettled, answers["admitted"], rejected),
        *(answers["abstained"], unsettled, spent["calls"], f"{tokens:,}"),
        f"{tokens // max(1, len(families)):,}",
    )
    return _row(cells)


def _family_rows(offline: dict, model: dict) -> Iterator[str]:
    alone = {tuple(family["names"]): family for family in offline["families"]}
    for family in model["families"]:
        other = alone[tuple(family["names"])]
        tokens = family["tokens"]["prompt"] + family["tokens"]["completion"]
        yield _row(
            (
                f"`{family['family'][:60]}`",
                f"{100 * family['share']:.2f} %",
                _came_to(other, offline),
                _came_to(family, model),
                family["turns"],
                f"{tokens:,}",
            )
        )


def _came_to(family: dict, result: dict) -> str:
    proposed = {one["id"]: one for one in result["proposals"]}
    one = proposed.get(family["proposal"])
    if one is None:
        return str(family["answer"])
    codes = ", ".join(_codes(one))
    return f"{family['answer']}: {one['rule']['category']}{f', {codes}' if codes else ''}"


def _codes(proposal: dict) -> list[str]:
    errors = (one for one in proposal["findings"] if one["severity"] == "error")
    return list(dict.fromkeys(one["code"] for one in errors))


# What `propose` recovers of a category whose rules are gone.


@dataclass
class Recovered:
    """Kernel time by what became of it, in ns; for the list of names, names."""

    total: int = 0
    right: int = 0
    wrong: int = 0
    other: int = 0

    def add(self, more: Recovered) -> None:
        self.total += more.total
        self.right += more.right
        self.wrong += more.wrong
        self.other += more.other

    def cells(self) -> tuple[str, ...]:
        left = self.total - self.right - self.wrong - self.other
        return tuple(
            _percent(part, self.total) for part in (self.right, self.wrong, self.other, left)
        )


@dataclass
class Ablation:
    """One category, or all of them, taken out of the rules."""

    title: str
    rules: str
    categories: frozenset[str]
    traces: Recovered = field(default_factory=Recovered)
    names: Recovered = field(default_factory=Recovered)


def _ablation(traces: Sequence[str], repos: Sequence[str]) -> str:
    whole = load_builtin()
    ablations = list(_ablations(whole))
    with tempfile.TemporaryDirectory() as made:
        names = Path(made) / "names.csv"
        _write_names(names, whole)
        for path in (*traces, str(names)):
            trace = read_trace([path])
            for one in ablations:
                found = _recovered(one, path, trace, whole, repos)
                (one.names if path == str(names) else one.traces).add(found)
            print(f"done: {Path(path).name}", file=sys.stderr)
    return "\n".join([ABLATION_HEAD, *map(_ablation_row, ablations)])


def _ablations(whole: RuleSet) -> Iterator[Ablation]:
    text = (bundled_folder("rules") / "builtin.toml").read_text(encoding="utf-8")
    head, *blocks = text.split("[[rule]]")
    rules = tomllib.loads(text)["rule"]
    proven = sorted({str(rule.category) for rule in whole.rules if rule.evidence})
    for category in proven:
        kept = (
            f"[[rule]]{block}"
            for block, rule in zip(blocks, rules, strict=True)
            if rule["category"] != category
        )
        yield Ablation(category, head + "".join(kept), frozenset({category}))
    yield Ablation("every rule", head, frozenset(proven))


def _write_names(path: Path, whole: RuleSet) -> None:
    """Write the examples of the rules as a statistics file of rocprof, a call each."""
    names = sorted({name for rule in whole.rules if rule.evidence for name in rule.examples})
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL)
        out.writerow(
            (
                "Name",
                "Calls",
                "TotalDurationNs",
                "AverageNs",
                "Percentage",
                "MinNs",
                "MaxNs",
                "StdDev",
            )
        )
        out.writerows((name, 1, 1, 1, 0, 1, 1, 0) for name in names)


def _recovered(
    one: Ablation, path: str, trace: Trace, whole: RuleSet, repos: Sequence[str]
) -> Recovered:
    truth = label_trace(trace, whole)
    gone = {
        signature
        for signature in truth.stats
        if truth.labels[signature].category in one.categories
        and truth.labels[signature].grade == "validated"
    }
    if not gone:
        return Recovered()
    before, after = _proposed(one, path, repos)
    old, new = label_trace(trace, before), label_trace(trace, after)
    found = Recovered(sum(truth.stats[signature].time_ns for signature in gone))
    for signature, stats in truth.stats.items():
        label, right = new.labels[signature], truth.labels[signature].category
        if label.rule_id and label.rule_id not in before.by_id:
            if label.category != right and right != UNLABELLED:
                found.wrong += stats.time_ns
                print(f"wrong: {label.category} is {right}: {signature.name}", file=sys.stderr)
            elif signature in gone:
                found.right += stats.time_ns
        elif signature in gone and old.labels[signature].category != UNLABELLED:
            found.other += stats.time_ns
    return found


def _proposed(one: Ablation, path: str, repos: Sequence[str]) -> tuple[RuleSet, RuleSet]:
    """Run `propose` under the rules that are left; give the rules before and after."""
    with tempfile.TemporaryDirectory() as folder:
        rules = runs.rules_repository(Path(folder) / "rules", one.rules)
        before = load_rules(rules)
        arguments = [
            *("propose", str(Path(path).resolve()), "--model", "offline", "--accept", "validated"),
            *("--min-share", "0", "--max-families", "1000", "--json"),
            *(part for repo in repos for part in ("--repo", repo)),
        ]
        with contextlib.chdir(rules.parent), _quiet() as err:
            code = label_agent(arguments)
        if code == 2:
            raise RuntimeError(err.getvalue())
        return before, load_rules(rules)


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        yield err


def _ablation_row(one: Ablation) -> str:
    time = f"{one.traces.total / 1e6:,.1f} ms"
    return _row((one.title, time, *one.traces.cells(), one.names.total, *one.names.cells()))


def _percent(part: int, total: int) -> str:
    return f"{100 * part / total:.1f} %" if total else ""


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
