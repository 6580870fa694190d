"""The waterfall of a ledger as bars: where each starts and ends, for text and SVG to draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from agent.compare.ledger import Ledger, LedgerEntry
from agent.compare.table import TraceDiff
from agent.core.text import shown

BarKind = Literal["introduced", "cost", "saving", "unclaimed", "sum"]
SHOWN_BARS = 12
CLAIMED = ("costs introduced", "other costs", "savings", "not claimed")
UNCLAIMED = ("only in new", "more time", "less time", "not claimed")


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, from `start_ns` to `end_ns` on an axis where the base's total is 0.

    `members` are the categories of a bar that gathers several small ones.
    """

    key: str
    text: str
    kind: BarKind
    start_ns: int
    end_ns: int
    members: tuple[str, ...] = ()

    @property
    def delta_ns(self) -> int:
        """What the bar adds."""
        return self.end_ns - self.start_ns

    @property
    def sum(self) -> bool:
        """Tell whether the bar is a sum of those above it."""
        return self.kind == "sum"


def diff_bars(diff: TraceDiff) -> tuple[Bar, ...]:
    """Lay a comparison's ledger out, per pass where the sides did unequal work.

    Where no conclusion may be drawn the groups are not called costs and savings.
    """
    titles = CLAIMED if diff.conclusive else UNCLAIMED
    return ledger_bars(diff.ledger_per_pass or diff.ledger, titles)


def ledger_bars(
    ledger: Ledger, titles: tuple[str, ...] = CLAIMED, *, shown_bars: int = SHOWN_BARS
) -> tuple[Bar, ...]:
    """Lay a ledger out: introduced costs, other costs, savings, each with its sum, then the net."""
    kinds: tuple[tuple[BarKind, tuple[LedgerEntry, ...]], ...] = (
        ("introduced", ledger.introduced),
        ("cost", ledger.costs),
        ("saving", ledger.savings),
        ("unclaimed", ledger.unclaimed),
    )
    bars: list[Bar] = []
    at = 0
    for (kind, entries), title in zip(kinds, titles, strict=True):
        if not entries:
            continue
        start = at
        for key, text, delta, members in _gathered(entries, title, shown_bars):
            bars.append(Bar(key, text, kind, at, at + delta, members))
            at += delta
        names = tuple(str(entry.category) for entry in entries)
        bars.append(Bar(f"sum of {title}", title, "sum", start, at, names))
    every = tuple(str(entry.category) for entry in ledger.entries)
    return (*bars, Bar("net", "net", "sum", 0, at, every))


def raw_amounts(diff: TraceDiff, bars: Iterable[Bar]) -> dict[str, int]:
    """Give the raw difference of each bar, whatever ledger the bars were laid out from."""
    deltas = {str(row.category): row.delta_ns for row in diff.categories}
    return {
        bar.key: sum(deltas[name] for name in bar.members)
        if bar.members
        else deltas.get(bar.key, 0)
        for bar in bars
    }


def _gathered(
    entries: Iterable[LedgerEntry], title: str, shown_bars: int
) -> list[tuple[str, str, int, tuple[str, ...]]]:
    ordered = list(entries)
    kept = ordered if len(ordered) <= shown_bars else ordered[: shown_bars - 1]
    rest = ordered[len(kept) :]
    rows: list[tuple[str, str, int, tuple[str, ...]]] = [
        (str(entry.category), f"  {shown(entry.category)}", entry.delta_ns, ()) for entry in kept
    ]
    if rest:
        delta = sum(entry.delta_ns for entry in rest)
        members = tuple(str(entry.category) for entry in rest)
        rows.append((f"rest of {title}", f"  {len(rest)} more", delta, members))
    return rows
