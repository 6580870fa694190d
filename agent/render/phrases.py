"""Sentences that several kinds of report share."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from agent.compare.figures import decimal, percent
from agent.compare.impact import Impact
from agent.compare.noise import OUTSIDE
from agent.compare.parts import unlike
from agent.compare.rows import CategoryRow, KernelRow, Side
from agent.compare.sides import RankTotal, SideSummary
from agent.compare.table import TraceDiff
from agent.compare.targets import KernelTarget, Target, TargetRule
from agent.core.rules import UNLABELLED, CategoryId, Rule
from agent.core.text import counted, shown
from agent.render.units import Millis, effect, share, small

RELATIVE = "source lines of a relative, another kernel of the rule"
SHOWN_UNLIKE = 6
OFF_WORK = "\N{DAGGER}"
IMPACT_WORDS = (
    "per call x share is the effect of shorter or longer calls, calls that of fewer or more of them"
    " at the new duration; both add up to the difference at equal work, of the base's total"
)


def totals_phrase(side: SideSummary, millis: Millis) -> str:
    """Give the three figures of a run, each named for what it is and what it is taken over."""
    parts = [f"{summed('sum', side)} {millis(side.kernel_ns)} ms"]
    if side.busy_ns is not None:
        parts.append(f"{summed('busy', side)}{_devices(side)} {millis(side.busy_ns)} ms")
    if side.span_ns is not None:
        parts.append(f"{longest('span', side)} {millis(side.span_ns)} ms")
    if side.copies.count:
        copies = "1 copy" if side.copies.count == 1 else f"{side.copies.count:,} copies"
        parts.append(f"besides {copies}, {millis(side.copies.time_ns)} ms")
    return f"{counted(side.kernels, 'kernel')} · {' · '.join(parts)}"


def summed(figure: str, side: SideSummary) -> str:
    """Name a figure that is added up over the ranks of a run."""
    return figure if len(side.ranks) == 1 else f"{figure} over {parts_phrase(side)}"


def longest(figure: str, side: SideSummary) -> str:
    """Name a figure that is the longest rank's alone."""
    part = "rank" if len(side.ranks) == side.n_ranks else "part"
    return figure if len(side.ranks) == 1 else f"{figure} of the longest {part}"


def parts_phrase(side: SideSummary) -> str:
    """Say how many ranks a run has, and how many parts where they are cut into stages."""
    ranks = "1 rank" if side.n_ranks == 1 else f"{side.n_ranks} ranks"
    return ranks if len(side.ranks) == side.n_ranks else f"{len(side.ranks)} parts of {ranks}"


def figures_phrase(side: SideSummary) -> str:
    """Say what the figures of a run are; "" where there is only the sum."""
    if side.busy_ns is None:
        return ""
    busy = f"busy{_devices(side)} is the union of all kernels, without copies"
    if len(side.ranks) == 1:
        return f"the table adds up to the sum; {busy}"
    return (
        f"the table adds up to the sum; {busy}, for each rank, added up; span is one rank's and not"
        " to be set against either"
    )


def _devices(side: SideSummary) -> str:
    """Say that one rank's busy time is of several devices: it is where it exceeds its span."""
    if len(side.ranks) > 1 or side.busy_ns is None or side.span_ns is None:
        return ""
    return " over all devices" if side.busy_ns > side.span_ns else ""


def replay_phrase(side: SideSummary) -> str:
    """Say how much time came from graph replays and how much has no op; "" if all has one."""
    parts = []
    if side.capture.launches:
        parts.append(
            f"graph replay: {_count(side.capture.launches, 'launch')},"
            f" {share(side.replayed.time_ns, side.kernel_ns)} of the time"
        )
    if side.opless_ns:
        parts.append(
            f"{share(side.opless_ns, side.kernel_ns)} of the time has no launching op and is"
            " labelled by name alone"
        )
    return "; ".join(parts)


def ranks_phrase(side: SideSummary, millis: Millis) -> str:
    """Say how many ranks a run has and how far apart they are; "" for one."""
    slowest, fastest = side.slowest, side.fastest
    if slowest is None or fastest is None:
        return ""
    gap = slowest.kernel_ns - fastest.kernel_ns
    return (
        f"{parts_phrase(side)}, {millis(fastest.kernel_ns)} ms ({_rank(fastest)}) to"
        f" {millis(slowest.kernel_ns)} ms ({_rank(slowest)}), {share(gap, slowest.kernel_ns)} apart"
    )


def _rank(rank: RankTotal) -> str:
    return f"rank {rank.label}" if rank.label.isdigit() else rank.label


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}es"


def headline(diff: TraceDiff, millis: Millis) -> str:
    """Give the result in one sentence, as far as one can be drawn."""
    raw = f"{millis(diff.delta_ns, signed=True)} ms{_of_base(diff)}"
    if diff.corrupt:
        return f"unreliable, durations are corrupt: kernel time {raw} as recorded"
    per_pass = diff.work.total.per_pass
    if not diff.comparable:
        return f"no conclusion: the two sides cannot be compared (raw sums differ by {raw})"
    if not diff.conclusive:
        return f"no conclusion: the capture is incomplete (raw sums differ by {raw})"
    if diff.empty:
        return "no difference"
    if diff.work.equal or per_pass is None:
        return f"kernel time {raw}"
    return f"kernel time per pass {percent(per_pass)} (raw sums {raw})"


def _of_base(diff: TraceDiff) -> str:
    return f", {percent(diff.work.total.raw)}" if diff.base.kernel_ns else " on a base without time"


def parts_rows(diff: TraceDiff) -> tuple[list[str], list[list[str]]]:
    """Set the parts of a comparison below each other: titles, and a row for each."""
    parts = [part for _, part in diff.parts]
    millis = Millis.fitting(max(max(part.base.kernel_ns, part.new.kernel_ns) for part in parts))
    change = "diff %" if all(part.work.equal for part in parts) else "per pass"
    rows = [
        [
            name,
            millis(part.base.kernel_ns),
            millis(part.new.kernel_ns),
            millis(part.delta_ns, signed=True),
            part_phrase(part),
        ]
        for name, part in diff.parts
    ]
    return ["part", "base ms", "new ms", "diff ms", change], rows


def part_phrase(part: TraceDiff) -> str:
    """Give the change of one part in a word: its percentage, or why there is none."""
    if part.corrupt:
        return "corrupt"
    if not part.conclusive:
        return "incomplete" if part.comparable else "not comparable"
    per_pass = part.work.total.per_pass
    return percent(part.work.total.raw if per_pass is None else per_pass)


def unlike_phrase(part: TraceDiff, whole: TraceDiff) -> str:
    """Say which categories have another effect in a part than over all."""
    apart = unlike(part, whole)
    if not apart:
        alike = part.conclusive and whole.conclusive
        return "effects on the total are those of the whole, within 0.1 %" if alike else ""
    named = [f"{one.category} {effect(one.here)} ({effect(one.over_all)})" for one in apart]
    more = [f"{len(named) - SHOWN_UNLIKE} more"] if len(named) > SHOWN_UNLIKE else []
    return (
        "effects on the total that differ from those of the whole (in brackets):"
        f" {', '.join([*named[:SHOWN_UNLIKE], *more])}"
    )


def off_work(diff: TraceDiff) -> dict[CategoryId, Impact]:
    """Give the categories whose calls do not follow an unequal work: per pass says little of them.

    There are none where both sides did equal work, or nobody knows how much.
    """
    if diff.work.equal or diff.work.ratio is None:
        return {}
    return {impact.category: impact for impact in diff.impacts if impact.calls_changed}


def named_row(row: CategoryRow, off: Mapping[CategoryId, Impact]) -> str:
    """Name a row of the category table, with the mark that `off_work_phrase` explains."""
    return f"{row.category} {OFF_WORK}" if row.category in off else str(row.category)


def off_work_phrase(off: Mapping[CategoryId, Impact]) -> str:
    """Explain the mark, and give what to read instead; "" where no row has it."""
    if not off:
        return ""
    named = [f"{category} {_per_call(impact)}" for category, impact in off.items()]
    more = [f"{len(named) - SHOWN_UNLIKE} more"] if len(named) > SHOWN_UNLIKE else []
    return (
        f"{OFF_WORK} calls do not follow the work ratio; read per call:"
        f" {', '.join([*named[:SHOWN_UNLIKE], *more])}"
    )


def _per_call(impact: Impact) -> str:
    return "-" if impact.per_call is None else percent(impact.per_call)


def ledger_title(diff: TraceDiff) -> str:
    """Head the ledger; where nothing may be claimed it is no ledger of costs and savings."""
    return "ledger" if diff.conclusive else "differences, not claimed"


def impact_title(diff: TraceDiff) -> str:
    """Head the impacts the same way."""
    return "impact" if diff.conclusive else "impact, not claimed"


def per_pass_phrase(diff: TraceDiff, millis: Millis) -> str:
    """Say what the ledger at equal work is, and give the sums of the raw one."""
    scale, raw = diff.work.scale, diff.ledger
    return (
        f"equal work: ms at the base's amount of work, new times divided by"
        f" {scale.numerator}/{scale.denominator}; in raw sums introduced"
        f" {millis(raw.introduced_ns, signed=True)}, existing"
        f" {millis(raw.existing_ns, signed=True)}, net {millis(raw.net_ns, signed=True)}"
    )


def noise_phrase(diff: TraceDiff) -> str:
    """Say what the spread was taken over and whether it can tell anything."""
    noise = diff.noise
    if noise.unit == "none":
        return (
            "one rank and one run a side, and no steps: there is no spread to hold the differences"
            " against"
        )
    how = "rank by rank" if noise.paired else f"{noise.n_base} against {noise.n_new}"
    over = f"{noise.n_base} {noise.unit}, {how}" if noise.paired else f"{noise.unit}, {how}"
    if not noise.can_tell:
        return f"spread over {over}: too few for any difference to stand outside it (5 %)"
    outside = sum(bool(spread.outside) for spread in noise.spreads)
    expected = decimal(len(noise.spreads) * OUTSIDE, 1)
    return (
        f"spread over {over}: {outside} of {len(noise.spreads)} differences stand outside it"
        f" (5 % each; {expected} would by chance)"
    )


def moved(impact: Impact) -> bool:
    """Tell whether an impact has anything to show, be it two effects that cancel out."""
    return bool(impact.per_call_effect or impact.calls_effect)


def impact_figures(impact: Impact) -> tuple[str, str, str, str, str]:
    """Give share, change per call, its effect, that of the calls, and the effect on the total."""
    whole = impact.status != "both"
    per_call = "" if impact.per_call is None else percent(impact.per_call)
    return (
        small(impact.share),
        impact.status if whole else per_call,
        "" if whole else effect(impact.per_call_effect),
        effect(impact.calls_effect),
        effect(impact.effect),
    )


def calls_phrase(diff: TraceDiff) -> str:
    """Name the categories whose calls do not follow the work; "" if all do."""
    changed = [
        f"{impact.category} {impact.base.count:,} -> {impact.new.count:,}"
        f" ({decimal(Fraction(impact.new.count, impact.base.count), 2)}x)"
        for impact in diff.impacts
        if impact.calls_changed
    ]
    if not changed:
        return ""
    beyond = "" if diff.work.equal or diff.work.ratio is None else " beyond the work ratio"
    return f"calls changed{beyond}: {', '.join(changed)}"


def unpinned_phrase(target: Target | KernelTarget) -> str:
    """Say why a target has no source lines."""
    if isinstance(target, KernelTarget):
        return "no source lines: its rule cites none" if target.rules else "no rule names it yet"
    if target.category == UNLABELLED:
        return "no rule names these kernels yet: label-agent propose"
    return "no source lines: no rule of this category cites any"


def pinned_phrase(diff: TraceDiff) -> str:
    """Say once what source lines are worth: as pinned, not as run; "" where none are cited."""
    cited = [rule for target in diff.targets for rule in target.rules]
    cited += [rule for target in diff.kernel_targets for rule in target.rules]
    pins = sorted({f"{one.repo}@{one.commit[:12]}" for rule in cited for one in rule.evidence})
    if not pins:
        return ""
    return (
        f"source lines are as pinned in the rules: {', '.join(pins)}; not checked against what"
        " these runs executed"
    )


def kernel_target_phrase(target: KernelTarget, diff: TraceDiff, millis: Millis) -> str:
    """Say what a kernel costs more and how."""
    row = target.row
    bound = f"{millis(target.bound_ns)} ms ({share(target.bound_ns, diff.new.kernel_ns)})"
    calls, per_call = counted(row.new.count, "call"), f"per call {micros(row.new)}"
    if target.kind == "grown":
        calls = f"{row.base.count:,} -> {calls}"
        per_call = f"per call {micros(row.base)} -> {micros(row.new)}"
    return f"{row.category}: at most {bound}, {target.kind} kernel, {calls}, {per_call}"


def more_targets_phrase(diff: TraceDiff, millis: Millis, top: int) -> str:
    """Say how many kernels that cost more are not among the first `top`; "" if none or top is 0."""
    left = diff.kernel_targets[top:] if top else ()
    if not left:
        return ""
    kernels = "1 more kernel costs" if len(left) == 1 else f"{len(left):,} more kernels cost"
    added = millis(sum(target.cost_ns for target in left), signed=True)
    return f"{kernels} {added} ms (--top {len(diff.kernel_targets)} shows every one)"


def place_taken_phrase(target: KernelTarget, millis: Millis) -> str:
    """Say whose place an introduced kernel may have taken; ends where that one's name follows."""
    cost = millis(target.cost_ns, signed=True)
    return f"{cost} ms over the kernel whose place it may have taken (suggestion)"


def micros(side: Side) -> str:
    """Give the mean duration of a call."""
    per_call = side.per_call_ns
    return "-" if per_call is None else f"{decimal(per_call / 1_000, 2)} us"


def rules_phrase(kernel: KernelRow) -> str:
    """Name the rules that label a kernel."""
    if not kernel.rules:
        return "no rule"
    return f"rule {shown(', '.join(kernel.rules), limit=120)}"


def rule_phrase(rule: Rule | TargetRule, *, relative: bool = False) -> str:
    """Name a rule, its grade and where it stands; `relative` where it cites another kernel."""
    rule_id = rule.id if isinstance(rule, Rule) else rule.rule_id
    where = f", {rule.source}:{rule.line}" if rule.source else ""
    return f"rule {rule_id} ({rule.grade}{where}){f'; {RELATIVE}' if relative else ''}"
