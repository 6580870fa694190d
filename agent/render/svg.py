"""The waterfall of a comparison as SVG.

    waterfall_svg(diff, *, width=960) -> str      a file of its own, with its colours
    waterfall_figure(diff, *, width) -> str       the same drawing for a page that has the colours

Costs go right, savings go left, from the base's total at 0; sums stand below what they add up.
Colours follow the reader's light or dark setting. Nothing is fetched and nothing runs.
"""

from __future__ import annotations

from html import escape

from agent.compare.contract import ruleset_phrase
from agent.compare.table import TraceDiff
from agent.core.text import shown
from agent.render.columns import cut_middle
from agent.render.phrases import headline, ledger_title
from agent.render.units import Millis, millis_of
from agent.render.waterfall import Bar, diff_bars

ROW = 26
BAR = 16
HEAD = 8
NARROW = 560
DIGIT = 9

STYLE = """
.waterfall text { font: 13px system-ui, sans-serif; fill: #1c2128; }
.waterfall .sum { font-weight: 600; }
.waterfall .amount { font-variant-numeric: tabular-nums; text-anchor: end; }
.waterfall .axis { stroke: #8b949e; stroke-width: 1; }
.waterfall .link { stroke: #8b949e; stroke-width: 1; stroke-dasharray: 2 3; }
.waterfall .introduced { fill: #c2410c; }
.waterfall .cost { fill: #e08a3c; }
.waterfall .saving { fill: #2f8f5b; }
.waterfall .unclaimed { fill: #8b949e; }
.waterfall .total { fill: #57606a; }
@media (prefers-color-scheme: dark) {
.waterfall text { fill: #e6edf3; }
.waterfall .introduced { fill: #f0703a; }
.waterfall .cost { fill: #d99a5b; }
.waterfall .saving { fill: #4cb782; }
.waterfall .total { fill: #9aa4af; }
}
"""


def waterfall_svg(diff: TraceDiff, *, width: int = 960) -> str:
    """Draw the waterfall as a file of its own."""
    style = f"<style>{STYLE}.ground {{ fill: #fff; }}\n{_DARK_GROUND}</style>"
    ground = '<rect class="ground" width="100%" height="100%"/>'
    return f"{_svg(diff, width, style + ground)}\n"


def waterfall_figure(diff: TraceDiff, *, width: int) -> str:
    """Draw the waterfall for a page whose style sheet holds `STYLE`."""
    return _svg(diff, width, "")


_DARK_GROUND = "@media (prefers-color-scheme: dark) { .ground { fill: #0d1117; } }"


def _svg(diff: TraceDiff, width: int, inner: str) -> str:
    bars = diff_bars(diff) if diff.ledger.entries else ()
    height = ROW * max(len(bars), 1) + 2 * HEAD
    millis = millis_of(diff)
    unit = "ms at equal work" if diff.ledger_per_pass else "ms"
    title = f"{ledger_title(diff)}, {unit}: {headline(diff, millis)}"
    drawn = _draw(bars, width, millis) if bars else _nothing()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="waterfall" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img"><title>{_text(title)}</title>'
        f"<desc>{_text(ruleset_phrase(diff.ruleset))}</desc>"
        f"{inner}{drawn}</svg>"
    )


def _draw(bars: tuple[Bar, ...], width: int, millis: Millis) -> str:
    narrow = width < NARROW
    left = 134 if narrow else 200
    right = 16 + DIGIT * max(len(millis(bar.delta_ns, signed=True)) for bar in bars)
    low = min(min(bar.start_ns, bar.end_ns) for bar in bars)
    high = max(max(bar.start_ns, bar.end_ns) for bar in bars)
    room = width - left - right

    def at(ns: int) -> str:
        return f"{left + (ns - low) * room / ((high - low) or 1):.1f}"

    zero = at(0)
    bottom = ROW * len(bars) + HEAD
    parts = [f'<line class="axis" x1="{zero}" x2="{zero}" y1="{HEAD}" y2="{bottom}"/>']
    for row, bar in enumerate(bars):
        top = HEAD + row * ROW
        kind = "total" if bar.sum else bar.kind
        begin, end = sorted((bar.start_ns, bar.end_ns))
        length = max(float(at(end)) - float(at(begin)), 1.0)
        weight = ' class="sum"' if bar.sum else ""
        label = cut_middle(bar.text.strip(), 16 if narrow else 26)
        middle = top + ROW / 2 + 5
        if row and not bar.sum:
            parts.append(_link(at(bar.start_ns), top))
        parts.append(
            f'<text{weight} x="4" y="{middle:.0f}">{_text(label)}</text>'
            f'<rect class="{kind}" x="{at(begin)}" y="{top + (ROW - BAR) // 2}"'
            f' width="{length:.1f}" height="{BAR}" rx="2"><title>{_text(_tip(bar, millis))}</title>'
            f'</rect><text class="amount{" sum" if bar.sum else ""}" x="{width - 4}"'
            f' y="{middle:.0f}">{_text(millis(bar.delta_ns, signed=True))}</text>'
        )
    return "".join(parts)


def _link(x: str, top: int) -> str:
    above = top - (ROW - BAR) // 2
    return f'<line class="link" x1="{x}" x2="{x}" y1="{above}" y2="{top + (ROW - BAR) // 2}"/>'


def _tip(bar: Bar, millis: Millis) -> str:
    members = f": {', '.join(bar.members)}" if bar.members and not bar.sum else ""
    return f"{bar.text.strip()} {millis(bar.delta_ns, signed=True)} ms{members}"


def _nothing() -> str:
    return f'<text x="4" y="{HEAD + ROW // 2 + 5}">nothing changed</text>'


def _text(text: str) -> str:
    return escape(shown(text), quote=True)
