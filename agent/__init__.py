"""label-agent: explains what a change in an LLM serving stack costs, from two GPU traces.

The public surface; everything else may move between versions.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.compare.table import TraceDiff, compare_traces
    from agent.core.kernels import KernelTable, RankTrace, Signature, SignatureStats, Trace
    from agent.core.proposals import Decision, Evidence, Finding, Proposal, RunContext, Verdict
    from agent.core.rules import Category, Label, LabelledTrace, Rule, RuleSet
    from agent.core.source import SourceIndex
    from agent.errors import (
        JournalError,
        LabelAgentError,
        ModelError,
        ReviewError,
        RuleFileError,
        SourceError,
        TraceError,
        UsageError,
    )
    from agent.review.gate import judge_proposal
    from agent.ruleset.codec import load_rules
    from agent.ruleset.lint import lint_rules
    from agent.ruleset.match import label_trace
    from agent.source.index import open_sources
    from agent.traces.reader import read_trace

__version__ = "0.1.0"

_HOME = {
    "read_trace": "agent.traces.reader",
    "load_rules": "agent.ruleset.codec",
    "label_trace": "agent.ruleset.match",
    "lint_rules": "agent.ruleset.lint",
    "judge_proposal": "agent.review.gate",
    "compare_traces": "agent.compare.table",
    "open_sources": "agent.source.index",
    "TraceDiff": "agent.compare.table",
    "KernelTable": "agent.core.kernels",
    "RankTrace": "agent.core.kernels",
    "Signature": "agent.core.kernels",
    "SignatureStats": "agent.core.kernels",
    "Trace": "agent.core.kernels",
    "Decision": "agent.core.proposals",
    "Evidence": "agent.core.proposals",
    "Finding": "agent.core.proposals",
    "Proposal": "agent.core.proposals",
    "RunContext": "agent.core.proposals",
    "Verdict": "agent.core.proposals",
    "Category": "agent.core.rules",
    "Label": "agent.core.rules",
    "LabelledTrace": "agent.core.rules",
    "Rule": "agent.core.rules",
    "RuleSet": "agent.core.rules",
    "SourceIndex": "agent.core.source",
    "JournalError": "agent.errors",
    "LabelAgentError": "agent.errors",
    "ModelError": "agent.errors",
    "ReviewError": "agent.errors",
    "RuleFileError": "agent.errors",
    "SourceError": "agent.errors",
    "TraceError": "agent.errors",
    "UsageError": "agent.errors",
}

__all__ = [
    "Category",
    "Decision",
    "Evidence",
    "Finding",
    "JournalError",
    "KernelTable",
    "Label",
    "LabelAgentError",
    "LabelledTrace",
    "ModelError",
    "Proposal",
    "RankTrace",
    "ReviewError",
    "Rule",
    "RuleFileError",
    "RuleSet",
    "RunContext",
    "Signature",
    "SignatureStats",
    "SourceError",
    "SourceIndex",
    "Trace",
    "TraceDiff",
    "TraceError",
    "UsageError",
    "Verdict",
    "__version__",
    "compare_traces",
    "judge_proposal",
    "label_trace",
    "lint_rules",
    "load_rules",
    "open_sources",
    "read_trace",
]


def __getattr__(name: str) -> object:
    """Import a public name where it is first used: `diff` never loads a parser or an SDK."""
    if name not in _HOME:
        message = f"module 'agent' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
