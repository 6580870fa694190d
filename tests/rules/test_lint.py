"""The built-in file passes its own lint, also against the real traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.ruleset.codec import load_builtin
from agent.ruleset.lint import lint_rules
from agent.traces.reader import read_trace

RULESET = load_builtin()


def test_nothing_is_wrong_or_unsorted() -> None:
    assert lint_rules(RULESET) == ()


@pytest.mark.parametrize(
    "name",
    [
        "flux_aiter_sage_mi300.json.gz",
        "mixtral_mi300_rank0.rpd",
        "rocprofv3_kernel_stats_decode_mi350.csv",
        "sglang_dense_decode_b300.json.gz",
        "sglang_dsv3_decode_h200",
    ],
)
def test_every_overlap_on_a_real_trace_is_declared(shared: Path, name: str) -> None:
    trace = read_trace([shared / "traces" / name])
    findings = lint_rules(RULESET, trace=trace)
    assert [finding for finding in findings if finding.severity != "note"] == []
