"""Ranks -> one run: order, labels, and which are doubled, missing or unreadable; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from agent.core.kernels import RankTrace, Trace
from agent.core.proposals import Finding
from agent.errors import TraceError, UnknownTraceFormat, UsageError
from agent.traces.ranks import (
    merged_profile,
    missing_numbers,
    numbers_by_axis,
    parse_file_name,
    unique_labels,
)
from agent.traces.views import drop_other_views

_MOST_NAMED = 32
_BESIDE_TRACES = ("server_args.json",)
"""What profilers write beside the traces: that of SGLang its server's options."""
_PADDED = re.compile(r"^(?P<axis>[A-Z]+)(?P<number>\d+)$")


class RunFile(Protocol):
    """A file of a run."""

    @property
    def source(self) -> str:
        """How results name it."""

    @property
    def shown(self) -> str:
        """How the user named it."""

    @property
    def found(self) -> bool:
        """Whether it was found in a folder, so that it need not be a trace."""


_File = TypeVar("_File", bound=RunFile)


def read_together(
    name: str,
    files: Sequence[_File],
    read: Callable[[_File], tuple[RankTrace, ...]],
    findings: Sequence[Finding] = (),
) -> Trace:
    """Read the files of a run one after the other and put together what they hold.

    A file that is no trace is passed over where a folder held it, with a note unless a profiler
    put it there; a damaged one is left out and named, unless it is the only one. Findings name
    files by `source`, errors as the user did.

    Raises:
        TraceError, UsageError: see `assemble`; also when no file is a trace.
    """
    ranks: list[RankTrace] = []
    unreadable: list[TraceError] = []
    passed_over: list[TraceError] = []
    try:
        for file in files:
            try:
                ranks += read(file)
            except TraceError as err:
                if len(files) == 1:
                    raise
                if not isinstance(err, UnknownTraceFormat):
                    unreadable.append(err)
                elif file.found:
                    passed_over.append(err)
                else:
                    raise
        if not ranks and not unreadable:
            raise _no_traces(passed_over)
        strangers = [err for err in passed_over if not err.location.endswith(_BESIDE_TRACES)]
        return assemble(name, ranks, unreadable, [*findings, *map(_not_read, strangers)])
    except (TraceError, UsageError) as err:
        err.location = _as_typed(err.location, files)
        raise


def _as_typed(location: str, files: Sequence[RunFile]) -> str:
    """Give a location (`SOURCE` or `SOURCE:LINE`) with the file as the user named it."""
    for file in files:
        if location == file.source or location.startswith(f"{file.source}:"):
            return file.shown + location[len(file.source) :]
    return location


def _no_traces(passed_over: Sequence[TraceError]) -> TraceError:
    first = passed_over[0]
    message = f"no trace among {len(passed_over)} files; the first: {first}"
    return UnknownTraceFormat("TR014", message, hint=first.hint)


def _not_read(err: TraceError) -> Finding:
    message = f"no trace, passed over: {err.message}"
    return Finding("TR044", message, severity="note", location=err.location)


def assemble(
    name: str,
    ranks: Sequence[RankTrace],
    unreadable: Sequence[TraceError] = (),
    findings: Sequence[Finding] = (),
) -> Trace:
    """Make a run of the ranks that were read.

    Raises:
        TraceError: no rank could be read.
        UsageError: a merged file stands beside its parts, so that ranks would count twice.
    """
    _refuse_merged_with_parts(ranks, unreadable)
    if not ranks:
        raise _nothing_read(unreadable)
    once, other_views = drop_other_views(_in_order(_numbered(ranks)))
    kept, found = _drop_copies(once)
    kept = _with_labels(kept)
    found = [
        *findings,
        *other_views,
        *found,
        *(_unreadable(err) for err in unreadable),
        *_doubled(kept),
        *_missing(kept),
        *_stages(kept),
    ]
    return Trace(name, tuple(kept), tuple(found), tuple(_lost(err) for err in unreadable))


def _numbered(ranks: Sequence[RankTrace]) -> list[RankTrace]:
    """Number the ranks that only their file's name places (`TP-2-DP-0`), beside their fellows."""
    places = {
        rank.info.source: parse_file_name(rank.info.source).coordinates
        for rank in ranks
        if parse_file_name(rank.info.source).coordinates
    }
    numbers = numbers_by_axis(places)
    return [
        replace(rank, rank=numbers[rank.info.source], label=str(numbers[rank.info.source]))
        if rank.rank is None and rank.info.source in numbers
        else rank
        for rank in ranks
    ]


def _nothing_read(unreadable: Sequence[TraceError]) -> TraceError:
    first = unreadable[0]
    if len(unreadable) == 1:
        return first
    others = ", ".join(_lost(err) for err in unreadable[1:])
    message = f"{first.message} (and {len(unreadable) - 1} more unreadable: {others})"
    return type(first)(first.code, message, location=first.location, hint=first.hint)


def _lost(err: TraceError) -> str:
    return re.sub(r":\d+$", "", err.location)


def _in_order(ranks: Sequence[RankTrace]) -> list[RankTrace]:
    return sorted(
        ranks,
        key=lambda rank: (
            rank.rank is None,
            rank.rank or 0,
            rank.label,
            rank.stage,
            rank.info.source,
        ),
    )


def _refuse_merged_with_parts(ranks: Sequence[RankTrace], unreadable: Sequence[TraceError]) -> None:
    sources = sorted({rank.info.source for rank in ranks} | {_lost(err) for err in unreadable})
    for merged in sources:
        parts = [source for source in sources if source != merged]
        if not parts or not _is_merged_of(merged, parts, ranks):
            continue
        lost = "".join(f"; unreadable: {err}" for err in unreadable)
        message = f"merged file and per-rank files of the same profile id; use one{lost}"
        raise UsageError(
            "TR012",
            message,
            location=merged,
            hint=f"name {merged} alone, or the {len(parts)} per-rank files without it",
        )


def _is_merged_of(merged: str, parts: Sequence[str], ranks: Sequence[RankTrace]) -> bool:
    """Tell by the file's name, or by ranks of one file that are another file's, event for event."""
    profile = merged_profile(merged)
    if profile and any(profile in part for part in parts):
        return True
    inside = [rank for rank in ranks if rank.info.source == merged]
    if len(inside) < 2:
        return False
    figures = [_figures(rank) for rank in inside]
    return any(_figures(rank) in figures for rank in ranks if rank.info.source in parts)


def _figures(rank: RankTrace) -> tuple[object, ...]:
    return rank.origin_ns, rank.span_ns, rank.count, rank.kernel_ns, tuple(rank.stats)


def _drop_copies(ranks: Sequence[RankTrace]) -> tuple[list[RankTrace], list[Finding]]:
    """Leave out a rank that is another one's copy under a second name."""
    kept: list[RankTrace] = []
    found: list[Finding] = []
    seen: dict[tuple[object, ...], list[RankTrace]] = {}
    for rank in ranks:
        alike = seen.setdefault((*_figures(rank), rank.stage), [])
        first = next((other for other in alike if _is_copy(rank, other)), None)
        if first is None:
            alike.append(rank)
            kept.append(rank)
            continue
        message = f"the same events as {first.info.source}, counted once"
        found.append(Finding("TR041", message, severity="warning", location=rank.info.source))
    return kept, found


def _is_copy(rank: RankTrace, other: RankTrace) -> bool:
    """Tell a copy: the same events in another file, and no number says that it is another rank."""
    numbers = {rank.rank, other.rank}
    return (
        rank.kernels is not None
        and rank.info.source != other.info.source
        and (len(numbers) == 1 or None in numbers)
        and rank.kernels == other.kernels
    )


def _with_labels(ranks: Sequence[RankTrace]) -> list[RankTrace]:
    staged = len({rank.stage for rank in ranks}) > 1
    wanted = [
        f"{rank.label} {rank.stage}" if staged and rank.stage else rank.label for rank in ranks
    ]
    return [
        replace(rank, label=label) for rank, label in zip(ranks, unique_labels(wanted), strict=True)
    ]


def _unreadable(err: TraceError) -> Finding:
    return Finding(
        "TR042",
        f"unreadable, left out of all figures: {err.code} {err.message}",
        severity="error",
        location=err.location,
        hint=err.hint,
    )


def _doubled(ranks: Sequence[RankTrace]) -> list[Finding]:
    groups: dict[tuple[object, str], list[str]] = {}
    for rank in ranks:
        if rank.rank is not None:
            groups.setdefault((rank.rank, rank.stage), []).append(rank.info.source)
    return [
        Finding(
            "TR043",
            f"rank {number} is there {len(sources)} times: {', '.join(sources)}",
            severity="warning",
            hint="name the files of one capture only",
        )
        for (number, _), sources in groups.items()
        if len(sources) > 1
    ]


def _missing(ranks: Sequence[RankTrace]) -> list[Finding]:
    """Compare the ranks of each stage with the world size, or with a gap in their numbers."""
    found: list[Finding] = []
    for stage in sorted({rank.stage for rank in ranks}):
        members = [rank for rank in ranks if rank.stage == stage]
        numbers = [rank.rank for rank in members if rank.rank is not None]
        if len(numbers) < len(members):
            continue
        known = [rank.info.world_size for rank in members if rank.info.world_size]
        if len(members) == 1 and not known:
            continue
        world_size = max(known, default=max(numbers) + 1)
        missing = missing_numbers(numbers, world_size)
        if missing:
            found.append(_missing_finding(members, missing, world_size if known else None, stage))
    return found


def _missing_finding(
    members: Sequence[RankTrace], missing: Sequence[int], world_size: int | None, stage: str
) -> Finding:
    padded = _PADDED.match(members[0].label)
    names = [
        f"{padded['axis']}{number:0{len(padded['number'])}d}" if padded else str(number)
        for number in missing
    ]
    names = [
        *names[:_MOST_NAMED],
        *([f"{len(names) - _MOST_NAMED} more"] * (len(names) > _MOST_NAMED)),
    ]
    rank_s = "rank" if len(names) == 1 else "ranks"
    verb = "is" if len(names) == 1 else "are"
    world = f" of world_size {world_size}" if world_size else ""
    of_stage = f" in stage {stage}" if stage else ""
    return Finding(
        "TR040",
        f"{rank_s} {', '.join(names)}{world} {verb} absent{of_stage}",
        severity="note" if len(members) == 1 else "warning",
    )


def _stages(ranks: Sequence[RankTrace]) -> list[Finding]:
    stages = sorted({rank.stage for rank in ranks if rank.stage})
    if len(stages) < 2:
        return []
    message = f"files of stages {' and '.join(stages)} in one run; their figures add up"
    hint = "name the files of one stage to keep them apart"
    return [Finding("TR045", message, severity="warning", hint=hint)]
