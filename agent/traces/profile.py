"""The signature table of a run as a file: `label -o run.profile`, `diff a.profile b.profile`.

A profile holds everything a `Trace` holds except single events, so it can be labelled and compared
without the trace, and a folder of profiles is a run like a folder of traces. It is JSON with a
schema number and a digest of its own content: the same bytes for the same trace.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from agent.core.kernels import (
    ClippedTotal,
    GpuWork,
    GraphReplays,
    KernelName,
    LaunchContext,
    RankTrace,
    Signature,
    SignatureStats,
    Step,
    Trace,
    TraceInfo,
)
from agent.core.proposals import Finding
from agent.errors import CorruptTrace
from agent.traces import run
from agent.traces.inflate import read_whole

SCHEMA: Final = 1
_KEY: Final = "label_agent_profile"

_Key = tuple[int, int, tuple[int, ...], bool, GpuWork]
"""A signature: name, op and dtypes as positions in the table of texts, replayed, work."""


class _Rank(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every field of `RankTrace` but its events and what is summed up of them by step."""

    label: str
    info: TraceInfo
    stats: tuple[tuple[_Key, tuple[int, int, int, int]], ...]
    rank: int | None
    stage: str
    busy_ns: int | None
    span_ns: int | None
    origin_ns: int
    launches: int
    linked_ns: int
    replays: GraphReplays
    clipped: ClippedTotal
    steps: tuple[Step, ...]
    context: tuple[tuple[_Key, LaunchContext], ...]
    fingerprint: tuple[tuple[str, int, str], ...]
    findings: tuple[Finding, ...]


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every field of `Trace`, and the texts that signatures refer to."""

    name: str
    lost: tuple[str, ...]
    findings: tuple[Finding, ...]
    texts: tuple[str, ...]
    ranks: tuple[_Rank, ...]


def write_profile(trace: Trace) -> bytes:
    """Give the profile of a run: one line of ASCII JSON, the same for the same trace."""
    run_json = _canonical(msgspec.to_builtins(profile_of(trace)))
    digest = hashlib.sha256(run_json.encode()).hexdigest()
    return f'{{"{_KEY}":{SCHEMA},"digest":"{digest}","run":{run_json}}}\n'.encode()


def read_profile(text: bytes, source: str) -> Trace:
    """Give the run that `write_profile` was given, without its events.

    Raises:
        CorruptTrace: no profile, of another schema, or changed since it was written.
    """
    try:
        content = json.loads(text)
        parts = (content[_KEY], content["digest"], content["run"])
    except (ValueError, KeyError, TypeError, RecursionError) as err:
        raise _corrupt(source, f"damaged profile: {err}") from err
    schema, digest, run_content = parts
    if schema != SCHEMA:
        message = f"a profile of schema {str(schema)[:20]!r}; this version reads {SCHEMA}"
        raise _corrupt(source, message, "use the version of label-agent that wrote it")
    if digest != hashlib.sha256(_canonical(run_content).encode()).hexdigest():
        raise _corrupt(source, "damaged profile: its content does not have its digest")
    try:
        return trace_of(msgspec.convert(run_content, Profile))
    except (msgspec.ValidationError, IndexError, ValueError) as err:
        raise _corrupt(source, f"damaged profile: {err}") from err


def read_profile_file(path: Path, source: str, *, salvage: bool = False) -> tuple[RankTrace, ...]:
    """Read one profile into its ranks, ready to be put together with others.

    What was found about the run as a whole, and cannot be seen in its ranks, stays with the first.

    Raises:
        CorruptTrace: see `read_profile`; salvage does not apply.
    """
    del salvage
    trace = read_profile(read_whole(path, source), source)
    if not trace.ranks:
        raise _corrupt(source, "a profile without ranks")
    ranks = [replace(rank, label=_unstaged(rank)) for rank in trace.ranks]
    found_again = run.assemble(trace.name, ranks).findings
    lost = tuple(finding for finding in trace.findings if finding not in found_again)
    first = ranks[0]
    info = replace(first.info, complete=first.info.complete and not trace.lost)
    ranks[0] = replace(first, info=info, findings=(*lost, *first.findings))
    return tuple(ranks)


def _unstaged(rank: RankTrace) -> str:
    """Take off the stage that putting a run together adds to a label."""
    return rank.label.removesuffix(f" {rank.stage}") if rank.stage else rank.label


def _corrupt(source: str, message: str, hint: str = "") -> CorruptTrace:
    hint = hint or "write it again: label-agent label TRACE -o run.profile"
    return CorruptTrace("TR066", message, location=source, hint=hint)


def _canonical(content: object) -> str:
    return json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def profile_of(trace: Trace) -> Profile:
    """Give what a profile holds of a run."""
    texts = sorted({text for rank in trace.ranks for text in _texts(rank)})
    position = {text: at for at, text in enumerate(texts)}

    def key(signature: Signature) -> _Key:
        return (
            position[signature.name],
            position[signature.op],
            tuple(position[dtype] for dtype in signature.input_dtypes),
            signature.replayed,
            signature.work,
        )

    return Profile(
        name=trace.name,
        lost=trace.lost,
        findings=trace.findings,
        texts=tuple(texts),
        ranks=tuple(
            _Rank(
                stats=tuple(
                    (key(signature), (stats.count, stats.time_ns, stats.min_ns, stats.max_ns))
                    for signature, stats in rank.stats.items()
                ),
                context=tuple((key(signature), seen) for signature, seen in rank.context.items()),
                fingerprint=tuple(sorted(rank.fingerprint)),
                **{name: getattr(rank, name) for name in _AS_THEY_ARE},
            )
            for rank in trace.ranks
        ),
    )


def _texts(rank: RankTrace) -> Iterable[str]:
    for signature in (*rank.stats, *rank.context):
        yield from (signature.name, signature.op, *signature.input_dtypes)


def trace_of(content: Profile) -> Trace:
    """Give the run that `profile_of` was given, without its events.

    Raises:
        ValueError, IndexError: no run has such a profile.
    """
    texts = content.texts

    def signature(key: _Key) -> Signature:
        name, op, dtypes, replayed, work = key
        if min(name, op, *dtypes) < 0:
            message = "a text has a negative position"
            raise ValueError(message)
        types = tuple(texts[dtype] for dtype in dtypes)
        return Signature(KernelName(texts[name]), texts[op], types, replayed, work)

    ranks = tuple(
        RankTrace(
            stats={signature(key): _stats(sums) for key, sums in rank.stats},
            context={signature(key): seen for key, seen in rank.context},
            fingerprint=frozenset(rank.fingerprint),
            **{name: getattr(rank, name) for name in _AS_THEY_ARE},
        )
        for rank in content.ranks
    )
    return Trace(content.name, ranks, content.findings, content.lost)


def _stats(sums: Sequence[int]) -> SignatureStats:
    count, time_ns, min_ns, max_ns = sums
    if count < 1 or not 0 <= min_ns * count <= time_ns <= max_ns * count:
        message = f"sums that cannot be: {count} events, {time_ns} ns"
        raise ValueError(message)
    return SignatureStats(count, time_ns, min_ns, max_ns)


_AS_THEY_ARE: Final[Sequence[Any]] = tuple(
    name for name in _Rank.__struct_fields__ if name not in {"stats", "context", "fingerprint"}
)
