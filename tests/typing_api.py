"""How a user's own program calls the public surface; mypy checks it, nothing runs it."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import agent


def explain(base: Path, new: Path, rules: Path) -> agent.TraceDiff:
    """Compare two runs."""
    ruleset = assert_type(agent.load_rules(rules), agent.RuleSet)
    before = agent.label_trace(agent.read_trace(base), ruleset)
    after = agent.label_trace(agent.read_trace([new, "more/*.json.gz"], salvage=True), ruleset)
    assert_type(before, agent.LabelledTrace)
    return assert_type(
        agent.compare_traces(before, after, by="rank", allow_incomplete=True), agent.TraceDiff
    )


def judge(proposal: agent.Proposal, checkout: Path) -> tuple[agent.Finding, ...]:
    """Put a proposal through the gate."""
    verdict = agent.judge_proposal(
        proposal,
        ruleset=agent.load_rules(),
        names={"kernel_name": "Misc"},
        source=agent.open_sources([("sglang", checkout)]),
        context=agent.RunContext(backend="rocm", arch="gfx942"),
    )
    assert_type(verdict, agent.Verdict)
    return verdict.findings


def messages(ruleset: agent.RuleSet) -> list[str]:
    """Say all that is wrong with a rule set."""
    try:
        return [finding.message for finding in agent.lint_rules(ruleset)]
    except agent.LabelAgentError as err:
        return [err.code]
