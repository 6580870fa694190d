"""Every golden folder of tests/golden/formats is read as its `expected.json` says."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent.core.kernels import RankTrace
from agent.traces.reader import read_trace
from tests.unit.traces.inputs import CASES, GOLDEN, put_input


def summary(rank: RankTrace, wanted: Any) -> dict[str, Any]:
    """Say of a rank what the expectation speaks of, in its words."""
    signatures = {}
    for signature, stats in rank.stats.items():
        mark = " (replayed)" if signature.replayed else ""
        figures = [stats.count, stats.time_ns, stats.min_ns, stats.max_ns]
        signatures[f"{signature.work}: {signature.name}{mark}"] = figures
    found: dict[str, Any] = {
        "label": rank.label,
        "kernels": rank.count,
        "kernel_ns": rank.kernel_ns,
        "busy_ns": rank.busy_ns,
        "span_ns": rank.span_ns,
        "signatures": signatures,
        "launches": rank.launches,
        "graph_launches": list(rank.replays.kernels_per_launch),
        "graph_events": rank.replays.kernels,
        "graph_ns": rank.replays.time_ns,
        "device_names": list(rank.info.device_names),
        "steps": [[step.name, step.start_ns, step.end_ns] for step in rank.steps],
        "findings": [finding.code for finding in rank.findings],
    }
    if rank.kernels:
        found["devices"] = sorted(set(rank.kernels.device))
        found["streams"] = sorted(set(rank.kernels.stream))
    return {key: value for key, value in found.items() if key in {"findings", *wanted}}


@pytest.mark.parametrize("folder", CASES, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_golden_input_gives_what_its_expectation_says(folder: Path, tmp_path: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["ranks"]
    path = put_input(folder, tmp_path)
    trace = read_trace(path)
    assert [summary(rank, wanted) for rank, wanted in zip(trace.ranks, expected, strict=True)] == [
        {"findings": [], **wanted} for wanted in expected
    ]
    assert {rank.info.format for rank in trace.ranks} == {folder.parent.name}


def test_there_are_golden_folders_for_every_format_but_our_own() -> None:
    assert {case.parent.name for case in CASES} == {
        "rocprofv3-csv",
        "rocprofv3-stats",
        "rocprofv3-json",
        "rocpd",
        "rpd",
        "nsys-sqlite",
    }


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_formats", GOLDEN / "make.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_golden_files_are_what_their_generator_writes() -> None:
    written = dict(load_generator().golden_files())
    assert {path: path.read_bytes().decode() for path in written} == written
    on_disk = {path for path in GOLDEN.glob("*/*/*") if path.is_file()}
    assert on_disk == set(written)
