"""What must be said of a comparison besides its figures: unequal work, and what labels hide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from agent.compare.figures import Millis, fraction_of, percent, ratio_text
from agent.compare.rows import CategoryRow, KernelRow
from agent.compare.work import Delta, Work
from agent.core.proposals import Finding
from agent.core.rules import UNLABELLED

HIDDEN_PER_CENT = 10
SHARE_PER_CENT = 5


def work_findings(work: Work) -> tuple[Finding, ...]:
    """Say that the sides did unequal work, and what that does to the conclusion."""
    return tuple(_work_findings(work))


def hidden_findings(
    rows: Iterable[CategoryRow], totals: tuple[int, int], scale: Fraction
) -> tuple[Finding, ...]:
    """Say when unlabelled time could change the conclusion; `scale` as for the ledger."""
    return tuple(_hidden_findings(list(rows), totals, scale))


def _work_findings(work: Work) -> Iterator[Finding]:
    if work.ratio is not None and not work.equal:
        yield Finding("DF120", _unequal(work), severity="warning")
    if work.source != "steps" and all(work.steps) and work.ratio is not None:
        before, after = work.steps
        yield Finding(
            "DF121",
            f"the annotated steps ({before} against {after}) do not bear out the calls"
            f" ({ratio_text(work.ratio)}x); the calls are used",
            severity="warning",
        )


def _unequal(work: Work) -> str:
    ratio = ratio_text(work.scale)
    passes = ""
    if work.passes is not None:
        unit = "steps" if work.source == "steps" else "forward passes"
        passes = f" ({work.passes[0]} against {work.passes[1]} {unit})"
    who = f"side new did {ratio}x the work"
    if work.consensus is not None:
        agreeing, shared = len(work.consensus.agreeing), work.consensus.shared
        which = f"every shared {_one(work.basis)} has"
        if agreeing < shared:
            share = percent(work.consensus.share, 0, signed=False)
            which = f"{agreeing} of {shared} shared {work.basis} ({share} of their time) have"
        who = f"{which} {ratio}x the calls"
    parts = [f"unequal work: {who}{passes}; per pass the total is {_against(work.total)}"]
    if work.existing.base_ns and work.existing.raw_ns != work.total.raw_ns:
        parts.append(f", the existing categories {_against(work.existing)}")
    flips = [
        name
        for name, delta in (("total", work.total), ("existing categories", work.existing))
        if delta.flips
    ]
    if flips:
        verb = "has" if flips == ["total"] else "have"
        parts.append(f"; normalised, the {' and the '.join(flips)} {verb} the opposite sign")
    return "".join(parts)


def _one(basis: str) -> str:
    return "category" if basis == "categories" else "kernel"


def _against(delta: Delta) -> str:
    per_pass = delta.per_pass
    shown = "unknown" if per_pass is None else percent(per_pass)
    return f"{shown}, not {percent(delta.raw)}"


def _hidden_findings(
    rows: list[CategoryRow], totals: tuple[int, int], scale: Fraction
) -> Iterator[Finding]:
    unlabelled = next((row for row in rows if row.category == UNLABELLED), None)
    if unlabelled is None:
        return
    moved = sum(_moved(kernel, scale) for kernel in unlabelled.kernels)
    gross = moved + sum(_moved(row, scale) for row in rows if row is not unlabelled)
    share = max(
        fraction_of(unlabelled.base.time_ns, totals[0]),
        fraction_of(unlabelled.new.time_ns, totals[1]),
    )
    if moved and 100 * moved >= HIDDEN_PER_CENT * gross:
        yield Finding(
            "DF130",
            f"unlabelled kernels hold {Millis.fitting(max(totals))(moved)} ms of the"
            f" differences ({percent(fraction_of(moved, gross), 0, signed=False)} of all): naming"
            " them could change where the cost lies",
            severity="warning",
            hint="label-agent propose NEW --baseline BASE --repo DIR",
        )
    elif 100 * share > SHARE_PER_CENT:
        yield Finding(
            "DF131",
            f"{percent(share, 1, signed=False)} of the time of a side is unlabelled",
            severity="note",
            hint="label-agent propose NEW --baseline BASE --repo DIR",
        )


def _moved(row: CategoryRow | KernelRow, scale: Fraction) -> int:
    return abs(round(row.new.time_ns / scale) - row.base.time_ns)
