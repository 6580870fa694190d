"""Whether two runs can be compared at all, said before any figure.

Each reason is a finding; a report with one of them draws no conclusion from the totals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.compare.figures import Millis, fraction_of, percent, ratio_text
from agent.compare.phases import stage_of
from agent.compare.work import Work, count_ranks
from agent.core.kernels import RankTrace, Signature, Trace
from agent.core.proposals import Finding
from agent.core.rules import LabelledTrace
from agent.core.text import shown

NAMES_SHOWN = 4


def comparability_findings(
    base: LabelledTrace, new: LabelledTrace, work: Work | None
) -> tuple[Finding, ...]:
    """List every reason why the two sides cannot be compared; `work` is None where untold."""
    reasons = [*_devices(base.trace, new.trace), *_ranks(base.trace, new.trace)]
    reasons += _stages(base.trace, new.trace)
    reasons += _shapes(base, new)
    if work is not None and work.ratio is None:
        reasons.append(_no_common_ratio(work))
    return tuple(reasons)


def _reason(code: str, message: str, hint: str = "") -> Finding:
    return Finding(code, f"not comparable: {message}", severity="warning", hint=hint)


def _devices(base: Trace, new: Trace) -> Iterator[Finding]:
    before, after = _vendors(base), _vendors(new)
    if before and after and before != after:
        yield _reason("DF101", f"GPUs of different vendors, {_list(before)} against {_list(after)}")
        return
    before, after = _device_names(base), _device_names(new)
    if before and after and before != after:
        yield _reason("DF101", f"different devices, {_list(before)} against {_list(after)}")


def _ranks(base: Trace, new: Trace) -> Iterator[Finding]:
    before, after = _rank_keys(base.ranks), _rank_keys(new.ranks)
    n_base, n_new = count_ranks(base), count_ranks(new)
    if n_base != n_new:
        yield _reason(
            "DF102",
            f"{n_base} {'rank' if n_base == 1 else 'ranks'} against {n_new}",
            "give the same ranks on both sides, or compare rank by rank with --by rank",
        )
    elif before and after and before != after:
        yield _reason(
            "DF102",
            f"different ranks, {_list(before)} against {_list(after)}",
            "give the same ranks on both sides",
        )


def _stages(base: Trace, new: Trace) -> Iterator[Finding]:
    before, after = ({rank.stage for rank in one.ranks if rank.stage} for one in (base, new))
    differ = before != after
    if not (before or after):
        before, after = _annotated_stages(base), _annotated_stages(new)
        differ = before.isdisjoint(after)
    if before and after and differ:
        yield _reason(
            "DF103",
            f"different stages, {_list(before)} against {_list(after)}",
            "compare stage by stage with --by stage",
        )


def _annotated_stages(trace: Trace) -> set[str]:
    """Give the stages the profiler's steps speak of: a whole window may hold several."""
    return {stage_of(step) for rank in trace.ranks for step in rank.steps} - {""}


def _shapes(base: LabelledTrace, new: LabelledTrace) -> Iterator[Finding]:
    has_base, has_new = _has_shapes(base.trace), _has_shapes(new.trace)
    if has_base == has_new:
        return
    shaped, bare, name = (base, new, "new") if has_base else (new, base, "base")
    if not _linked(bare.trace) and not _unresolved_ns(bare, _decided_by_dtypes(shaped)):
        return
    decided = _decided_by_dtypes(shaped)
    by_dtype = sum(stats.time_ns for one, stats in shaped.stats.items() if one in decided)
    share = percent(fraction_of(by_dtype, shaped.trace.kernel_ns), signed=False)
    yield _reason(
        "DF104",
        f"side {name} was recorded without shapes, so rules on dtypes cannot apply there;"
        f" they decide {share} of the other side's time",
        "record both sides with record_shapes=True",
    )


def unresolved_findings(base: LabelledTrace, new: LabelledTrace) -> tuple[Finding, ...]:
    """Say where a kernel that dtypes decide elsewhere ran without a known op.

    Under graph replay, or without shapes, the direction of such a copy is unresolved.
    """
    decided = _decided_by_dtypes(base) | _decided_by_dtypes(new)
    found = []
    for role, side in (("base", base), ("new", new)):
        hidden = _unresolved_ns(side, decided)
        if hidden:
            millis = Millis.fitting(side.trace.kernel_ns)
            found.append(
                Finding(
                    "DF132",
                    f"{millis(hidden)} ms of side {role} is in kernels that rules on dtypes decide"
                    " elsewhere but that have no known op here: what they convert is unresolved",
                    severity="warning",
                    hint="capture once with graphs off and record_shapes=True",
                )
            )
    return tuple(found)


def _decided_by_dtypes(labelled: LabelledTrace) -> set[Signature]:
    rules = labelled.ruleset.by_id
    decided = set()
    for signature in labelled.stats:
        rule_id = labelled.labels[signature].rule_id
        if rule_id is not None and rules[rule_id].input_dtypes:
            decided.add(signature)
    return decided


def _unresolved_ns(labelled: LabelledTrace, decided: set[Signature]) -> int:
    names = {signature.name for signature in decided}
    return sum(
        stats.time_ns
        for signature, stats in labelled.stats.items()
        if signature.name in names and not signature.input_dtypes
    )


def _no_common_ratio(work: Work) -> Finding:
    consensus = work.consensus
    if consensus is None:
        return _reason("DF105", "the sides share no category")
    return _reason(
        "DF105",
        "no common ratio of calls: at most"
        f" {len(consensus.agreeing)} of {consensus.shared} shared {work.basis}"
        f" ({percent(consensus.share, 0, signed=False)} of their time) agree on one,"
        f" {ratio_text(consensus.ratio)}; the sides ran different work",
        "capture both sides with the same requests and the same number of passes",
    )


def _vendors(trace: Trace) -> set[str]:
    return {rank.info.vendor for rank in trace.ranks if rank.info.vendor != "unknown"}


def _device_names(trace: Trace) -> set[str]:
    """Give the named devices; ROCm's generic name says nothing."""
    names = {name for rank in trace.ranks for name in rank.info.device_names}
    return names - {"", "AMD Radeon Graphics"}


def _rank_keys(ranks: Iterable[RankTrace]) -> set[str]:
    return {str(rank.rank) for rank in ranks if rank.rank is not None}


def _has_shapes(trace: Trace) -> bool:
    return any(rank.info.has_shapes for rank in trace.ranks)


def _linked(trace: Trace) -> bool:
    """Tell whether any kernel has its op; a window without one misses no dtypes."""
    return any(rank.linked_ns for rank in trace.ranks)


def _list(names: Iterable[str]) -> str:
    ordered = sorted(names)
    listed = ", ".join(shown(name, limit=60) for name in ordered[:NAMES_SHOWN])
    return f"{listed}, ..." if len(ordered) > NAMES_SHOWN else listed
