"""Results as JSON: `label_document`, `diff_document` and `to_json`; docs/json.md describes them.

Times are integer nanoseconds, shares are fractions of 1 and `_pct` fields are per cent, rounded to
six decimals. Strings are verbatim; `to_json` writes them in ASCII with escapes and sorts all keys.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

from agent.compare.aliases import Alias
from agent.compare.gates import GateResult
from agent.compare.impact import Against, Impact
from agent.compare.ledger import Ledger, LedgerEntry
from agent.compare.noise import Noise, Range, Spread
from agent.compare.replaced import Replacement
from agent.compare.rows import CategoryRow, KernelRow, Side
from agent.compare.sides import RankTotal, SideSummary, summarise
from agent.compare.table import TraceDiff
from agent.compare.targets import KernelTarget, Target, TargetRule
from agent.compare.work import Delta, Work
from agent.core.proposals import Evidence, Finding
from agent.core.rules import Coverage, LabelledTrace, RuleSet
from agent.render.selection import (
    LabelledKernel,
    label_categories,
    label_findings,
    label_kernels,
    top_unlabelled,
)

SCHEMA = 1

Json = dict[str, object]


def to_json(document: Json) -> str:
    """Write a document with sorted keys and a line end."""
    return json.dumps(document, indent=2, sort_keys=True, allow_nan=False) + "\n"


def label_document(
    labelled: LabelledTrace, *, top: int = 10, rollup: bool = False, kernels: int = 0
) -> Json:
    """Give one labelled run as a document.

    `top` bounds the unlabelled kernels, `kernels` those of a category, where 0 gives all.
    """
    side = summarise(labelled)
    named = label_kernels(labelled, rollup=rollup)
    return {
        "schema": SCHEMA,
        "command": "label",
        **_side(side),
        "categories": [
            {
                "id": row.category,
                "count": row.count,
                "time_ns": row.time_ns,
                "kernels": list(map(_labelled, named[row.category][: kernels or None])),
            }
            for row in label_categories(labelled, rollup=rollup)
        ],
        "unlabelled": [_unlabelled(row, side.kernel_ns) for row in top_unlabelled(labelled, top)],
        "warnings": list(map(finding_document, label_findings(labelled, side))),
        "ruleset": ruleset_document(labelled.ruleset),
    }


def diff_document(diff: TraceDiff, *, top: int = 0, gates: Sequence[GateResult] = ()) -> Json:
    """Give a comparison as a document; `top` bounds the kernels of a category, 0 gives all."""
    impact_of = {impact.category: impact for impact in diff.impacts}
    document = {
        "schema": SCHEMA,
        "command": "diff",
        "base": _side(diff.base),
        "new": _side(diff.new),
        "delta_ns": diff.delta_ns,
        "residual_ns": diff.residual_ns,
        "comparable": diff.comparable,
        "conclusive": diff.conclusive,
        "categories": [
            _category(row, impact_of[row.category], diff.work, top) for row in diff.categories
        ],
        "ledger": _ledger(diff.ledger),
        "ledger_per_pass": _ledger(diff.ledger_per_pass) if diff.ledger_per_pass else None,
        "work": _work(diff.work, diff.ledger_per_pass or diff.ledger),
        "impact": {
            "categories": list(map(_impact, diff.impacts)),
            "kernels": list(map(_impact, diff.kernel_impacts[: top or None])),
        },
        "targets": list(map(_target, diff.targets)),
        "kernel_targets": list(map(_kernel_target, diff.kernel_targets)),
        "replacements": [_replacement(pair, diff.against) for pair in diff.replacements],
        "aliases": list(map(_alias, diff.aliases)),
        "noise": _noise(diff.noise),
        "warnings": list(map(finding_document, diff.findings)),
        "ruleset": ruleset_document(diff.ruleset),
        "rollup": diff.rollup,
        "gates": [
            {"expression": gate.expression, "failed": gate.failed, "message": gate.message}
            for gate in gates
        ],
    }
    if diff.parts:
        document["parts"] = [
            {"part": name, "diff": diff_document(part, top=top)} for name, part in diff.parts
        ]
    return document


def ruleset_document(ruleset: RuleSet) -> Json:
    """Give the identity of a rule set."""
    return {"name": ruleset.name, "version": ruleset.version, "digest": ruleset.digest}


def coverage_shares(coverage: Coverage) -> Json:
    """Give the coverage contract as shares of kernel time."""
    return {
        grade: _share(getattr(coverage, grade), coverage.total)
        for grade in ("validated", "vendor", "inferred", "unlabelled")
    }


def _side(side: SideSummary) -> Json:
    capture = side.capture
    return {
        "name": side.name,
        "totals": {
            "kernel_ns": side.kernel_ns,
            "busy_ns": side.busy_ns,
            "span_ns": side.span_ns,
            "kernels": side.kernels,
            "clipped_ns": capture.clipped_ns,
            "copies": {"count": side.copies.count, "time_ns": side.copies.time_ns},
            "without_op_ns": side.opless_ns,
        },
        "coverage": coverage_shares(side.coverage),
        "ranks": list(map(_rank, side.ranks)),
        "devices": list(side.devices),
        "formats": list(side.formats),
        "graphs": {
            "launches": capture.launches,
            "kernels": side.replayed.count,
            "time_ns": side.replayed.time_ns,
            "share": _share(side.replayed.time_ns, side.kernel_ns),
            "empty_launches": capture.empty,
            "uneven_ranks": list(capture.uneven_ranks),
        },
        "complete": not capture.gaps,
    }


def _rank(rank: RankTotal) -> Json:
    return {
        "label": rank.label,
        "kernels": rank.kernels,
        "kernel_ns": rank.kernel_ns,
        "busy_ns": rank.busy_ns,
        "span_ns": rank.span_ns,
    }


def _category(row: CategoryRow, impact: Impact, work: Work, top: int) -> Json:
    told = row.status == "both" and work.ratio is not None
    return {
        "id": row.category,
        **_both_sides(row.base, row.new),
        "delta_ns": row.delta_ns,
        "status": row.status,
        "follows_work": not impact.calls_changed if told else None,
        "kernels": [_kernel(kernel) for kernel in row.kernels[: top or None]],
    }


def _kernel(row: KernelRow) -> Json:
    return {
        "name": row.name,
        "base_names": list(row.base_names),
        "new_names": list(row.new_names),
        **_both_sides(row.base, row.new),
        "delta_ns": row.delta_ns,
        "status": row.status,
        "rules": list(row.rules),
        "ops": list(row.ops),
    }


def _both_sides(base: Side, new: Side) -> Json:
    return {
        "base": {"count": base.count, "time_ns": base.time_ns},
        "new": {"count": new.count, "time_ns": new.time_ns},
    }


def _ledger(ledger: Ledger) -> Json:
    return {
        "introduced": list(map(_entry, ledger.introduced)),
        "costs": list(map(_entry, ledger.costs)),
        "savings": list(map(_entry, ledger.savings)),
        "unclaimed": list(map(_entry, ledger.unclaimed)),
        "introduced_ns": ledger.introduced_ns,
        "existing_ns": ledger.existing_ns,
        "net_ns": ledger.net_ns,
    }


def _entry(entry: LedgerEntry) -> Json:
    return {"id": entry.category, "delta_ns": entry.delta_ns, "status": entry.status}


def _work(work: Work, ledger: Ledger) -> Json:
    """Give the work; its rounded differences are those of the ledger."""
    consensus = work.consensus
    existing_ns = sum(entry.delta_ns for entry in ledger.entries if entry.status != "new")
    return {
        "equal": work.equal,
        "ratio": _number(work.ratio),
        "source": work.source,
        "passes": None if work.passes is None else {"base": work.passes[0], "new": work.passes[1]},
        "steps": {"base": work.steps[0], "new": work.steps[1]},
        "basis": work.basis,
        "agreeing": list(consensus.agreeing) if consensus else [],
        "shared": consensus.shared if consensus else 0,
        "agreeing_share": _number(consensus.share) if consensus else 0.0,
        **_delta(work.total, ledger.net_ns),
        "existing": _delta(work.existing, existing_ns),
    }


def _delta(delta: Delta, per_pass_ns: int) -> Json:
    return {
        "raw_delta_ns": delta.raw_ns,
        "raw_delta_pct": _pct(delta.raw),
        "per_pass_delta_ns": None if delta.equal_ns is None else per_pass_ns,
        "per_pass_delta_pct": _pct(delta.per_pass),
        "sign_flips": delta.flips,
    }


def _impact(impact: Impact) -> Json:
    return {
        "id": impact.category,
        "kernel": impact.name,
        "suggested_successor": impact.became,
        "share_pct": _pct(impact.share),
        "base_calls": impact.base.count,
        "new_calls": impact.new.count,
        "calls_changed": impact.calls_changed,
        "per_call_pct": _pct(impact.per_call),
        "per_call_effect_pct": _pct(impact.per_call_effect),
        "calls_effect_pct": _pct(impact.calls_effect),
        "effect_pct": _pct(impact.effect),
        "per_call_ns": impact.per_call_ns,
        "calls_ns": impact.calls_ns,
        "net_ns": impact.net_ns,
    }


def _target(target: Target) -> Json:
    return {
        "id": target.category,
        "bound_ns": target.bound_ns,
        "count": target.count,
        "rules": list(map(_target_rule, target.rules)),
    }


def _kernel_target(target: KernelTarget) -> Json:
    return {
        "id": target.row.category,
        "kernel": target.row.name,
        "kind": target.kind,
        "bound_ns": target.bound_ns,
        "cost_ns": target.cost_ns,
        "suggested_predecessor": target.replaces,
        **_both_sides(target.row.base, target.row.new),
        "rules": list(map(_target_rule, target.rules)),
    }


def _target_rule(rule: TargetRule) -> Json:
    return {
        "id": rule.rule_id,
        "grade": rule.grade,
        "source": rule.source,
        "line": rule.line,
        "time_ns": rule.time_ns,
        "evidence": list(map(evidence_document, rule.evidence)),
        "evidence_is_of_relative": rule.relative,
    }


def evidence_document(evidence: Evidence) -> Json:
    """Give one pinned place."""
    return {
        "kind": evidence.kind,
        "repo": evidence.repo,
        "commit": evidence.commit,
        "path": evidence.path,
        "lines": list(evidence.lines),
        "symbol": evidence.symbol,
        "guard": evidence.guard,
        "snippet": evidence.snippet,
    }


def _replacement(pair: Replacement, against: Against) -> Json:
    change = pair.impact(against)
    return {
        "per_call_pct": _pct(change.per_call),
        "effect_pct": _pct(change.effect),
        "suggestion": True,
        "id": pair.old.category,
        "base_kernel": pair.old.name,
        "new_kernel": pair.new.name,
        "ops": list(pair.old.ops),
    }


def _alias(alias: Alias) -> Json:
    return {
        "id": alias.category,
        "base_names": list(alias.base_names),
        "new_names": list(alias.new_names),
    }


def _noise(noise: Noise) -> Json:
    return {
        "unit": noise.unit,
        "paired": noise.paired,
        "base_samples": noise.n_base,
        "new_samples": noise.n_new,
        "spreads": list(map(_spread, noise.spreads)),
    }


def _spread(spread: Spread) -> Json:
    return {
        "id": spread.category,
        "base_ns": _range(spread.base),
        "new_ns": _range(spread.new),
        "delta_ns": _range(spread.delta),
        "risen": spread.risen,
        "fallen": spread.fallen,
        "chance": _number(spread.chance),
        "outside": spread.outside,
    }


def _range(values: Range) -> Json:
    return {
        "low": round(values.low),
        "median": round(values.median),
        "high": round(values.high),
    }


def finding_document(finding: Finding) -> Json:
    """Give what a finding says, without its place."""
    return {"code": finding.code, "message": finding.message, "severity": finding.severity}


def _labelled(row: LabelledKernel) -> Json:
    return {
        "name": row.name,
        "rule": row.rule,
        "count": row.count,
        "time_ns": row.time_ns,
        "ops": list(row.ops),
    }


def _unlabelled(row: LabelledKernel, total_ns: int) -> Json:
    return {
        "name": row.name,
        "count": row.count,
        "time_ns": row.time_ns,
        "share": _share(row.time_ns, total_ns),
        "ops": list(row.ops),
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(round(value, 6))


def _pct(value: Fraction | None) -> float | None:
    return None if value is None else float(round(100 * value, 6))
