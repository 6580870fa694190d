"""Every handed case that concerns reading gives what its expected.json says.

One interpreter for all of them; categories are counted with a matcher over the cases' own rules,
so that nothing here depends on the rules of the package.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from typing import Any

import pytest

from agent.core.kernels import Signature, Trace
from agent.errors import LabelAgentError
from agent.traces.reader import read_trace
from tests.conftest import SHARED

CASES = SHARED / "cases"
RULES = json.loads((CASES / "RULES.json").read_text()) if CASES.is_dir() else {"rules": []}
READ = (
    *("01-unescaped-quote-name", "03-control-char-bad-utf8", "05-truncated-json"),
    *("07-no-gpu-events", "09-absolute-ts-and-strings", "11-corrupt-durations"),
    *("13-concurrent-streams", "15-annotation-double-count", "16-nested-aten-casts"),
    *("18-graph-shared-correlation", "19-graph-kernels-dropped", "21-unequal-steps"),
    *("24-lambda-ordinals", "29-merged-ranks-one-lost", "39-rich-markup-names"),
)
NOT_READING = {"as_diff_baseline", "diff_with_it", "raw", "per_step", "count_ratio_b_over_a"}
TEXTS = {
    "line/column or byte offset of the first bad token": r":\d+: .*byte \d+ \(column \d+\)",
    "how to read it anyway": r"--salvage",
    "truncated / ends inside event 4": r"truncated.*ends inside event 4",
    "byte size read": r"\d+ bytes",
    "control character": r"control characters?",
}
"""What a case asks to be said, where it describes the text instead of giving it."""


def inputs(case: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Give (input, mode, expectation) for all that a case says about reading."""
    path = CASES / case / "expected.json"
    if not path.is_file():
        return []
    document = json.loads(path.read_text())
    expect, names = document["expect"], document["inputs"]
    if "outcome" in expect:
        return [(names[0], "default", expect)]
    found = []
    for key, value in expect.items():
        if key in names:
            found.append((key, "default", value))
        elif key in ("default", "salvage"):
            found.append((names[0], key, value))
        elif key.endswith("(a directory)"):
            found.append((key.partition("/")[0], "default", value))
    return found


TRIED = [(case, *tried) for case in READ for tried in inputs(case)]


def category(signature: Signature) -> str:
    for name, rule in RULES["rules"]:
        if isinstance(rule, str):
            if re.search(rule, signature.name):
                return name
        elif signature.op == rule["op"] and signature.input_dtypes[:2] == (
            rule["dst"],
            rule["src"],
        ):
            return name
    return "Others"


def said(trace: Trace) -> str:
    findings = [*trace.findings, *(found for rank in trace.ranks for found in rank.findings)]
    return "\n".join(f"{found.code} {found.location} {found.message}" for found in findings)


def read(case: str, name: str, *, salvage: bool) -> Trace | LabelAgentError:
    try:
        return read_trace(CASES / case / name, salvage=salvage)
    except LabelAgentError as err:
        return err


@pytest.mark.parametrize(
    ("case", "name", "mode", "expect"), TRIED, ids=lambda value: str(value)[:40]
)
def test_case(shared, case, name, mode, expect):
    outcome = read(case, name, salvage=mode == "salvage")
    must_say = expect.get("must_say", [])
    if expect.get("outcome", "ok").startswith("error"):
        assert isinstance(outcome, LabelAgentError)
        assert outcome.hint
        says(f"{outcome}\nhint: {outcome.hint}", must_say)
        if "truncated_member" in expect:
            assert expect["truncated_member"].partition("…")[0] in str(outcome)
        return
    assert isinstance(outcome, Trace), outcome
    check_figures(outcome, expect)
    says(said(outcome), must_say)


def says(text: str, wanted: list[str]) -> None:
    for words in wanted:
        assert re.search(TEXTS.get(words) or re.escape(words), text), (words, text)


def check_figures(trace: Trace, expect: dict[str, Any]) -> None:
    if "kernel" in expect:
        assert trace.count == expect["kernel"]["count"]
        assert trace.kernel_ns == expect["kernel"].get("time_ns", trace.kernel_ns)
    check_timeline(trace, expect)
    check_names(trace, expect)
    check_graphs(trace, expect)
    if "ranks" in expect:
        assert {rank.label: rank.kernel_ns for rank in trace.ranks} == expect["ranks"]
        assert {signature.op for signature in trace.stats} == {"aten::mm"}
    if "skipped_events" in expect:
        assert sum(rank.info.skipped_events for rank in trace.ranks) == expect["skipped_events"]
    if "stamp" in expect:
        assert not trace.complete
        assert "INCOMPLETE" in said(trace)


def check_timeline(trace: Trace, expect: dict[str, Any]) -> None:
    (rank, *_) = trace.ranks
    if "busy_ns" in expect:
        assert rank.busy_ns == expect["busy_ns"]
    if "span_ns" in expect:
        assert rank.span_ns == expect["span_ns"]
    if "steps" in expect:
        assert len(rank.steps) == expect["steps"]
        assert trace.kernel_ns == expect["time_ns"]
    if "flags" in expect:
        flags = expect["flags"]
        overruns = flags["overruns_next_on_same_stream"]
        assert rank.clipped.events == overruns["events"]
        assert rank.clipped.excess_ns == overruns["excess_ns"]
        assert trace.kernel_ns == expect["time_ns_as_recorded_non_negative"]
        clipped_ns = trace.kernel_ns - rank.clipped.excess_ns
        assert clipped_ns == expect["time_ns_clipped_to_next_on_stream"]
        text = said(trace)
        assert "TR030 trace.json 1 GPU event" in text
        assert "TR031 trace.json 1 GPU event" in text
        assert "unreliable" in text
        assert str(trace.kernel_ns) in text
        assert str(clipped_ns) in text


def check_names(trace: Trace, expect: dict[str, Any]) -> None:
    if "distinct_kernel_names" in expect:
        assert len({signature.name for signature in trace.stats}) == expect["distinct_kernel_names"]
    if "categories" in expect:
        sums: dict[str, dict[str, int]] = {}
        for signature, stats in trace.stats.items():
            row = sums.setdefault(category(signature), {"count": 0, "time_ns": 0})
            row["count"] += stats.count
            row["time_ns"] += stats.time_ns
        assert sums == expect["categories"]


def check_graphs(trace: Trace, expect: dict[str, Any]) -> None:
    (rank, *_) = trace.ranks
    if "kernels_per_graph_launch" in expect:
        assert list(rank.replays.kernels_per_launch) == expect["kernels_per_graph_launch"]
        assert ("TR050" in said(trace)) == ("warning" in expect)
    if "graph" in expect:
        graph = expect["graph"]
        replays = rank.replays
        assert len(replays.kernels_per_launch) == graph["launches"]
        assert (replays.kernels, replays.time_ns) == (graph["kernels"], graph["time_ns"])
        without_op = sum(stats.count for signature, stats in rank.stats.items() if not signature.op)
        assert without_op == graph["kernels_without_op"]
        share = 100 * replays.time_ns / rank.kernel_ns
        assert share == graph["share_pct"]


def test_lambda_ordinals_stay_apart(shared):
    expect = json.loads((CASES / "24-lambda-ordinals" / "expected.json").read_text())["expect"]
    trace = read("24-lambda-ordinals", "a.json", salvage=False)
    assert isinstance(trace, Trace)
    assert len(trace.stats) == expect["within_a"]["distinct_raw_names"]


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_large_trace(shared, tmp_path, suffix):
    """42: counts and totals are the closed form, although four events of five are frames."""
    expect = json.loads((CASES / "42-large-trace" / "expected.json").read_text())["expect"]
    path = tmp_path / f"big{suffix}"
    script = CASES / "42-large-trace" / "make_big.py"
    subprocess.run([sys.executable, script, path, "20000"], check=True, capture_output=True)
    trace = read_trace(path)
    assert (trace.count, trace.kernel_ns) == tuple(expect["n_20000"]["kernel"].values())
    assert {
        signature.name: [stats.count, stats.time_ns] for signature, stats in trace.stats.items()
    } == (expect["n_20000"]["per_name"])


def test_parts_without_their_merged_file_name_the_lost_rank(shared, tmp_path):
    """29: the run is read, the cut-off rank is named as unreadable, and the run is not complete."""
    for part in (CASES / "29-merged-ranks-one-lost" / "run").glob("1769*"):
        (tmp_path / part.name).write_bytes(part.read_bytes())
    trace = read_trace(tmp_path)
    assert [rank.label for rank in trace.ranks] == ["0", "1", "3"]
    assert trace.kernel_ns == 330_000
    assert not trace.complete
    (lost,) = trace.lost
    assert "TP-2" in lost
    assert "rank 2 of world_size 4 is absent" in said(trace)
    salvaged = read_trace(tmp_path, salvage=True)
    assert [rank.rank for rank in salvaged.ranks] == [0, 1, 2, 3]
    assert salvaged.kernel_ns == 445_000
    assert not salvaged.complete


def test_cases_survive_recompression(shared, tmp_path):
    """A case reads the same when it is compressed, whatever its suffix says."""
    original = CASES / "16-nested-aten-casts" / "trace.json"
    packed = tmp_path / "trace.json"
    packed.write_bytes(gzip.compress(original.read_bytes()))
    assert read_trace(packed).stats == read_trace(original).stats
