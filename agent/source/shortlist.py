"""Candidate evidence for one kernel, ready to be proposed: definition, launch, table row, cast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from agent.core.proposals import Evidence, RunContext
from agent.core.source import Candidate, Definition, RepoInfo
from agent.source.definitions import Definitions
from agent.source.evidence.case import Workbench
from agent.source.evidence.castchecks import cast_files, cast_sites
from agent.source.evidence.contradictions import Contradictions
from agent.source.evidence.functions import enclosing_function
from agent.source.evidence.items import Item, read_item
from agent.source.evidence.linking import Links, calls_leading_to
from agent.source.evidence.othersites import launches, may_emit
from agent.source.names import kernel_ref, origin_of
from agent.source.native.sites import launches_of
from agent.source.native.tables import table_arch
from agent.source.python.casts import cast_destination, never_casts
from agent.source.python.kvcache import decides
from agent.source.python.sites import Site
from agent.source.snapshot import SourceFile

_MAX_SITES = 4
_FP8 = "Float8"


def shortlist(
    work: Workbench, name: str, op: str, input_dtypes: tuple[str, ...], context: RunContext
) -> tuple[Candidate, ...]:
    """List candidate evidence for one kernel, best first; empty when nothing fits."""
    family = origin_of(name)
    if family in ("external", "inductor"):
        return ()
    if family in ("aten", "aten-cast"):
        found = list(_casts(work, name, op, input_dtypes, context)) if family == "aten-cast" else []
    else:
        found = list(_defined(work, name, context))
    return tuple(sorted(found, key=_order))


def _order(candidate: Candidate) -> tuple[object, ...]:
    places = tuple((one.repo, one.path, one.lines) for one in candidate.evidence)
    return (-candidate.score, candidate.origin, places)


def _defined(work: Workbench, name: str, context: RunContext) -> Iterator[Candidate]:
    bundles = work.default()
    links = work.links(bundles)
    checks = Contradictions(bundles[0].trees, context) if bundles else None
    for bundle in bundles:
        for definition in bundle.find(name):
            if not definition.runtime or checks is None:
                continue
            arch = table_arch(definition.path)
            if arch and context.arch and arch != context.arch:
                continue
            entry = _definition_evidence(definition, bundle)
            item = read_item(entry, bundle, (name,))
            coded = item.kernel is not None or item.head is not None
            if item.findings or (coded and not links.launched(item)):
                continue
            found = list(_emissions(links, bundles, item, checks))
            for rank, (file, site) in enumerate(found):
                pair = (entry, _emission(file, site, bundles))
                around = enclosing_function(_info(file, bundles), file.path, site)
                made = _candidate(name, definition, pair, site, rank)
                yield replace(made, functions=(around,))
            if not found:
                yield from _native_candidates(name, definition, entry, item, links)


def _emissions(
    links: Links, bundles: tuple[Definitions, ...], item: Item, checks: Contradictions
) -> Iterator[tuple[SourceFile, Site]]:
    """Yield the launches and calls that lead to an item and contradict nothing, a few."""
    count = 0
    seen: set[tuple[str, int]] = set()
    reached = calls_leading_to(links, bundles, item)
    for file, site in chain(launches(links, bundles, item), reached):
        if (file.path, site.line) in seen:
            continue
        seen.add((file.path, site.line))
        if not may_emit(links, checks, item, (file, site)):
            continue
        yield file, site
        count += 1
        if count >= _MAX_SITES:
            return


def _native_candidates(
    name: str, definition: Definition, entry: Evidence, item: Item, links: Links
) -> Iterator[Candidate]:
    """Yield launches in HIP or CUDA source, where no Python call leads to the kernel."""
    if item.head is None:
        return
    for file in links.launch_files(item):
        for site in launches_of(file, item.head.name)[:1]:
            line = (site.line, site.line)
            emission = Evidence("emission", file.repo, entry.commit, file.path, line, site.function)
            reason = f"{definition.name} is launched in {site.function} of {file.path}"
            shown = kernel_ref(name).base
            yield Candidate(definition.origin, shown, (entry, emission), 60, reason)


def _candidate(
    name: str, definition: Definition, pair: tuple[Evidence, Evidence], site: Site, rank: int
) -> Candidate:
    launched = site.kind == "launch"
    score = 100 - 5 * rank + (10 if launched else 0)
    reason = f"{definition.name} is defined at {definition.path}:{definition.lines[0]} and "
    reason += f"{'launched' if launched else 'reached'} in {site.qualname}"
    shown = kernel_ref(name).base if definition.origin != "triton-repr" else definition.name
    return Candidate(definition.origin, shown, pair, score, reason)


def _definition_evidence(definition: Definition, bundle: Definitions) -> Evidence:
    kind = {"aiter-asm": "table", "ck": "instantiation"}.get(definition.origin, "definition")
    return Evidence(
        kind,  # type: ignore[arg-type]
        definition.repo,
        bundle.snapshot.info.commit,
        definition.path,
        definition.lines,
    )


def _emission(
    file: SourceFile, site: Site, bundles: tuple[Definitions, ...], guard: str = ""
) -> Evidence:
    commit = _info(file, bundles).commit
    line = (site.line, site.line)
    return Evidence("emission", file.repo, commit, file.path, line, site.qualname, guard)


def _info(file: SourceFile, bundles: tuple[Definitions, ...]) -> RepoInfo:
    return next(one.snapshot.info for one in bundles if one.snapshot.repo == file.repo)


def _casts(
    work: Workbench, name: str, op: str, input_dtypes: tuple[str, ...], context: RunContext
) -> Iterator[Candidate]:
    direction = _direction(name, op, input_dtypes)
    if not direction:
        return
    for bundle in work.default():
        checks = Contradictions(bundle.trees, context)
        for file in cast_files(bundle):
            if checks.of_path(file.path) is not None:
                continue
            for first, last, site in _blocks(file, bundle, direction):
                if checks.of_site(file, site):
                    continue
                guard = _cast_guard(site, direction)
                one = replace(_emission(file, site, (bundle,), guard), lines=(first, last))
                reason = f"converts {direction} FP8 in {site.qualname}"
                score = _cast_score(site, file, context) + (20 if guard else 0)
                around = enclosing_function(bundle.snapshot.info, file.path, site)
                yield Candidate("aten-cast", "", (one,), score, reason, (around,))


def _direction(name: str, op: str, input_dtypes: tuple[str, ...]) -> str:
    """Tell the direction by the op's dtypes ([destination, source]), else by the name."""
    if len(input_dtypes) >= 2 and "copy_" in op:
        destination, source = input_dtypes[0], input_dtypes[1]
        if _FP8 in source and _FP8 not in destination:
            return "from"
        return "to" if _FP8 in destination and _FP8 not in source else ""
    if never_casts(name):
        return ""
    return {"fp8": "to", "wide": "from"}.get(cast_destination(name) or "", "")


def _blocks(
    file: SourceFile, bundle: Definitions, direction: str
) -> Iterator[tuple[int, int, Site]]:
    """Join conversions on neighbouring lines under one guard chain into one place."""
    block: list[Site] = []
    for site, _ in cast_sites(file, bundle, direction):
        if block and site.line - block[-1].line <= 1 and site.guards == block[0].guards:
            block.append(site)
            continue
        if block:
            yield block[0].line, block[-1].line, block[0]
        block = [site]
    if block:
        yield block[0].line, block[-1].line, block[0]


def _cast_guard(site: Site, direction: str) -> str:
    """Choose the innermost guard that decides the conversion, written as a condition."""
    for guard in reversed(site.guards):
        if decides(guard, direction):
            return guard[1:] if guard[0] == "+" else f"not ({guard[1:]})"
    return ""


def _cast_score(site: Site, file: SourceFile, context: RunContext) -> int:
    score = 50
    if context.attention and context.attention in file.path:
        score += 15
    if context.model == "MLA" and (
        "MLA" in site.qualname or any("use_mla" in one for one in site.guards)
    ):
        score += 15
    return score
