"""What the commands on rule files say."""

from __future__ import annotations

import pytest

from agent.core.kernels import KernelName
from agent.core.proposals import Finding, Severity
from agent.core.rules import CategoryId
from agent.render.rules_report import lint_text, upgrade_text
from agent.ruleset.moves import Move
from tests.builders import rule, ruleset


def found(*severities: Severity) -> list[Finding]:
    return [Finding("RS020", "so", severity=severity) for severity in severities]


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        pytest.param(found(), "0 errors, 0 warnings, 0 notes", id="clean"),
        pytest.param(found("note"), "0 errors, 0 warnings, 1 note", id="a note"),
        pytest.param(
            found("warning", "error", "note", "error"), "2 errors, 1 warning, 1 note", id="each"
        ),
    ],
)
def test_lint_counts_findings_of_each_kind(findings, said):
    assert lint_text(ruleset(rule()), findings, []).splitlines()[-1] == (
        f"test version 1: 1 rule, {said}"
    )


def test_an_upgrade_that_moves_one_name_says_so():
    move = Move(KernelName("k"), "", CategoryId("GEMM"), CategoryId("RoPE"), None, None, 1, 9)
    said = upgrade_text("builtin@1", "builtin@2", [move])
    assert said.endswith("(1 kernel, 9 ns)\nbuiltin@1 -> builtin@2: 1 name of the run would move\n")
