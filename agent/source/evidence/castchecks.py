"""ATen conversions: direction, KV path, and every other place that could be taken for the same.

The name of a copy kernel tells its destination; only dtypes of the launching op, or absence from
the run before the change, tell that its source was FP8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from agent.core.proposals import Finding
from agent.core.source import CallSite
from agent.source.definitions import Definitions
from agent.source.evidence.case import Case
from agent.source.evidence.items import Item
from agent.source.paths import is_python
from agent.source.python.casts import Cast, cast_destination, never_casts, read_cast
from agent.source.python.guards import atoms
from agent.source.python.kvcache import decides
from agent.source.python.sites import Site, in_device_code, sites_named
from agent.source.snapshot import SourceFile

_DIRECTIONS = {"CastFromFP8": "from", "CastToFP8": "to"}
_WANTED = {"CastFromFP8": "wide", "CastToFP8": "fp8"}
_SUBJECT = re.compile(rb"\w[\w.\[\]]*$")
_MAX_SUBJECT = 200
_CACHE_TEXT = re.compile(rb"kv|cache|k_buf|v_buf|k_pe|latent", re.IGNORECASE)
_SERVING = re.compile(r"attention|mem_cache|kv_cache|cache|/mla|/mha", re.IGNORECASE)
_MAX_LOOKALIKES = 60


def cast_findings(case: Case) -> None:
    """Check a proposal about ATen kernels and add findings, needs and lookalikes to the case."""
    if case.origin != "aten-cast":
        if case.category != "Elementwise":
            case.needs.add("OP_OR_STK")
        return
    _check_names(case)
    for item in case.emitting():
        _check_item(case, item)
    if case.category == "CastFromFP8":
        case.needs.add("OP_OR_ABSENT")
    case.lookalikes = tuple(_lookalikes(case))


def casts_in(item: Item) -> list[tuple[Site, Cast]]:
    """Give the conversions on an item's lines."""
    if item.region is None or item.file is None:
        return []
    found = []
    for site in item.region.sites:
        cast = read_cast(site, item.file.path)
        if cast is not None and not (site.kind == "assignment" and len(item.region.sites) > 1):
            found.append((site, cast))
    return found


def cast_sites(
    file: SourceFile, bundle: Definitions, direction: str
) -> Iterator[tuple[Site, Cast]]:
    """Yield the conversions of one direction on the KV path anywhere in a file."""
    for site in sites_named(file, bundle.trees, "to"):
        cast = read_cast(site, file.path)
        if cast is None or cast.direction != direction or not cast.on_kv_path:
            continue
        if site.qualname and not in_device_code(site):
            yield site, cast


def cast_files(bundle: Definitions) -> Iterator[SourceFile]:
    """Yield the serving files whose text converts something that looks like a KV cache."""
    for file in bundle.snapshot.holding(b".to(", "python"):
        if is_python(file.path) and _SERVING.search(file.path) and _converts_cache(file.text):
            yield file


@lru_cache(maxsize=1_024)
def _converts_cache(text: bytes) -> bool:
    at = text.find(b".to(")
    while at >= 0:
        subject = _SUBJECT.search(text[max(at - _MAX_SUBJECT, 0) : at])
        if subject is not None and _CACHE_TEXT.search(subject.group()):
            return True
        at = text.find(b".to(", at + 1)
    return False


def _check_names(case: Case) -> None:
    for name in case.family:
        writes = cast_destination(name)
        if writes is not None and writes != _WANTED[case.category]:
            message = f"this kernel writes {'FP8' if writes == 'fp8' else 'a wide type'}"
            case.findings.append(Finding("E_DIRECTION", f"{message}: it is not {case.category}"))
            return
        if case.category == "CastFromFP8" and never_casts(name):
            message = "gpu_kernel_impl_nocast copies between equal types and never converts"
            case.findings.append(Finding("E_NOT_A_CAST", message))
            return


def _check_item(case: Case, item: Item) -> None:
    casts = casts_in(item)
    if not casts:
        item.refuse("E_NO_MATCHING_NODE", "nothing on these lines converts a type")
        return
    wanted = _DIRECTIONS[case.category]
    _check_guard(item, wanted)
    for _, cast in casts:
        if cast.kind in ("device", "other"):
            what = (
                "moves to another device" if cast.kind == "device" else "converts to another type"
            )
            item.refuse("E_DTYPE_MISMATCH", f".to({cast.destination}) {what}; FP8 is not involved")
        elif cast.is_weight or not cast.on_kv_path:
            message = f"{cast.subject[:60]!r} is not the KV cache: a conversion that looks alike"
            item.refuse("E_LOOKALIKE", message)
        elif cast.direction == "unknown":
            case.needs.add("OP")
        elif cast.direction != wanted:
            stands = "from FP8" if cast.direction == "from" else "to FP8"
            item.refuse("E_DIRECTION", f"this converts {stands}; {case.category} is the other way")


def _check_guard(item: Item, direction: str) -> None:
    """Refuse a stated guard that stands around the cast but does not decide it."""
    stated = item.evidence.guard
    if not stated or any(one.code == "E_GUARD_MISMATCH" for one in item.findings):
        return
    if not any(decides(atom, direction) for atom in atoms(stated)):
        message = f"the guard {stated[:80]!r} does not decide on a dtype of the KV cache"
        hint = "state the condition that asks for FP8, or for another dtype than the cache's"
        item.refuse("E_GUARD_MISMATCH", message, hint=hint)


def _lookalikes(case: Case) -> Iterator[CallSite]:
    """List every other conversion of that direction on the KV path, the cited ones left out."""
    if any(item.findings for item in case.emitting()) or case.findings:
        return
    direction = _DIRECTIONS[case.category]
    cited = {
        (item.evidence.repo, item.evidence.path, site.line)
        for item in case.emitting()
        for site, _ in casts_in(item)
    }
    count = 0
    for bundle in case.bundles:
        if bundle.snapshot.repo not in {item.evidence.repo for item in case.emitting()}:
            continue
        for file in cast_files(bundle):
            for site, _ in cast_sites(file, bundle, direction):
                if (file.repo, file.path, site.line) in cited or count >= _MAX_LOOKALIKES:
                    continue
                count += 1
                yield call_site(file, site)


def call_site(file: SourceFile, site: Site) -> CallSite:
    """Give the value form of a site."""
    text = " ".join(site.text.split())
    return CallSite(
        file.repo, file.path, (site.line, site.line), text[:200], site.qualname, site.guards,
        site.node_type,
    )  # fmt: skip
