"""Values with valid defaults for tests; override what matters."""

from __future__ import annotations

from collections.abc import Mapping

from agent.core.kernels import KernelName, RankTrace, Signature, SignatureStats, Trace, TraceInfo
from agent.core.proposals import Evidence, Proposal
from agent.core.rules import Category, CategoryId, Rule, RuleId, RuleSet
from agent.core.vocabulary import VOCABULARY


def signature(name: str = "moe_gemm1_0", **fields: object) -> Signature:
    return Signature(KernelName(name), **fields)  # type: ignore[arg-type]


def stats(count: int = 1, time_ns: int = 1_000) -> SignatureStats:
    return SignatureStats(count, time_ns, time_ns // count, -(-time_ns // count))


def rank_trace(table: Mapping[Signature, SignatureStats], **fields: object) -> RankTrace:
    fields.setdefault("label", "0")
    fields.setdefault("info", TraceInfo(source="trace.json", format="kineto"))
    return RankTrace(stats=dict(sorted(table.items())), **fields)  # type: ignore[arg-type]


def trace(*tables: Mapping[Signature, SignatureStats], name: str = "trace") -> Trace:
    ranks = [rank_trace(table, label=str(index), rank=index) for index, table in enumerate(tables)]
    return Trace(name, tuple(ranks))


def rule(
    id: str = "gemm.moe", category: str = "MoEGEMM", kernel: str = "moe_gemm[12]_", **fields: object
) -> Rule:
    fields.setdefault("grade", "vendor")
    return Rule(RuleId(id), CategoryId(category), kernel, **fields)  # type: ignore[arg-type]


def ruleset(*rules: Rule, **fields: object) -> RuleSet:
    categories = tuple(Category(CategoryId(i), title, rollup) for i, title, rollup in VOCABULARY)
    values: dict[str, object] = {
        "name": "test",
        "version": 1,
        "digest": "0" * 64,
        "categories": categories,
    }
    return RuleSet(rules=rules, **{**values, **fields})  # type: ignore[arg-type]


def evidence(**fields: object) -> Evidence:
    values: dict[str, object] = {
        "kind": "definition",
        "repo": "sglang",
        "commit": "0" * 40,
        "path": "python/kernels.py",
        "lines": (1, 1),
    }
    return Evidence(**{**values, **fields})  # type: ignore[arg-type]


def proposal(**fields: object) -> Proposal:
    values: dict[str, object] = {
        "id": "0" * 16,
        "category": "Attention",
        "kernel": "^_fwd_kernel_stage2$",
        "evidence": (evidence(),),
        "kernels": ("_fwd_kernel_stage2",),
    }
    return Proposal(**{**values, **fields})  # type: ignore[arg-type]
