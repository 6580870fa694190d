"""The comparison for other programs: CSV rows and annotations of GitHub's workflow log.

diff_csv(diff, *, kernels=False) -> str
diff_github(diff, gates=(), *, top=5) -> str
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.compare.contract import coverage_phrase, ruleset_cell, ruleset_phrase
from agent.compare.gates import GateResult
from agent.compare.ledger import nets_at_equal_work
from agent.compare.rows import CategoryRow, KernelRow
from agent.compare.table import TraceDiff
from agent.compare.targets import TargetRule
from agent.core.text import shown
from agent.render.delimited import csv_text
from agent.render.phrases import RELATIVE, headline, kernel_target_phrase, more_targets_phrase
from agent.render.units import millis_of

ANNOTATED = 5
"""Kernels that cost more: GitHub shows ten warnings of a step."""

HEAD = (
    "part",
    "category",
    "kernel",
    "status",
    "base_count",
    "base_time_ns",
    "new_count",
    "new_time_ns",
    "delta_ns",
    "per_pass_delta_ns",
    "rules",
)


def diff_csv(diff: TraceDiff, *, kernels: bool = False) -> str:
    """Write one line per category, or per kernel, in nanoseconds.

    `per_pass_delta_ns` is of the whole window at the base's amount of work, not of one pass; it is
    empty where no work ratio is known.
    """
    parts = [("", diff), *diff.parts]
    return csv_text(
        HEAD, [row for name, part in parts for row in _rows(name, part, kernels=kernels)]
    )


def diff_github(diff: TraceDiff, gates: Sequence[GateResult] = (), *, top: int = ANNOTATED) -> str:
    """Write `::error` for failed gates, `::warning` for findings, `::notice` for the result.

    `top` bounds the kernels that cost more.
    """
    millis = millis_of(diff)
    lines = [_annotation("warning", finding.code, finding.message) for finding in diff.findings]
    lines.append(_annotation("notice", "label-agent", headline(diff, millis)))
    lines.append(_annotation("notice", "labels", _labels(diff)))
    lines += [
        _annotation("error", f"--fail-on {gate.expression}", gate.message)
        for gate in gates
        if gate.failed
    ]
    for target in diff.targets:
        text = f"{target.category} is new, at most {millis(target.bound_ns)} ms"
        lines.append(_annotation("warning", "introduced cost", _placed(text, target.rules)))
    for kernel in diff.kernel_targets[:top]:
        text = f"{kernel_target_phrase(kernel, diff, millis)}: {kernel.row.name}"
        lines.append(_annotation("warning", f"{kernel.kind} kernel", _placed(text, kernel.rules)))
    if more := more_targets_phrase(diff, millis, top):
        lines.append(_annotation("notice", "more kernels", more))
    return "\n".join(lines) + "\n"


def _labels(diff: TraceDiff) -> str:
    sides = (("base", diff.base), ("new", diff.new))
    covered = [f"{role}: {coverage_phrase(side.coverage)}" for role, side in sides]
    return "; ".join((ruleset_phrase(diff.ruleset), *covered))


def _placed(text: str, rules: Iterable[TargetRule]) -> str:
    for rule in rules:
        if places := "; ".join(evidence.place for evidence in rule.evidence):
            text += f"; as pinned in the rule{f', {RELATIVE}' if rule.relative else ''}: {places}"
    return text


def _rows(part: str, diff: TraceDiff, *, kernels: bool) -> Iterable[tuple[str | int, ...]]:
    ratio = diff.work.ratio
    nets = nets_at_equal_work(diff.categories, diff.work.scale)
    for row, net_ns in zip(diff.categories, nets, strict=True):
        if not kernels:
            yield _row(part, "", row, diff, "" if ratio is None else net_ns)
            continue
        for kernel in row.kernels:
            one = "" if ratio is None else round(kernel.new.time_ns / ratio - kernel.base.time_ns)
            yield _row(part, kernel.name, kernel, diff, one)


def _row(
    part: str, kernel: str, row: CategoryRow | KernelRow, diff: TraceDiff, per_pass: int | str
) -> tuple[str | int, ...]:
    return (
        part,
        str(row.category),
        kernel,
        row.status,
        row.base.count,
        row.base.time_ns,
        row.new.count,
        row.new.time_ns,
        row.delta_ns,
        per_pass,
        ruleset_cell(diff.ruleset),
    )


def _annotation(level: str, title: str, message: str) -> str:
    escaped = _escaped(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={escaped}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return shown(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
