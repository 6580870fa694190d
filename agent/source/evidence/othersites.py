"""Places that lead to a kernel, and which of them are as near as the one that is cited.

Several places may launch one kernel. The source cannot tell which of them a run went through, so
a proposal that cites one is told of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from agent.core.source import CallSite
from agent.source.definitions import Definitions
from agent.source.evidence.case import Case
from agent.source.evidence.castchecks import call_site
from agent.source.evidence.contradictions import Contradictions
from agent.source.evidence.items import Item
from agent.source.evidence.linking import Links
from agent.source.evidence.liveness import never_runs
from agent.source.native.sites import launches_of
from agent.source.paths import is_python, is_runtime
from agent.source.python.sites import Region, Site, in_device_code, launch_sites, sites_named
from agent.source.snapshot import SourceFile

_MAX_OTHERS = 200
_MAX_FILES = 60
"""Files that are read for one name; a name that more files hold is no name of an operator."""
Place = tuple[SourceFile, Site]


def launches(links: Links, bundles: Sequence[Definitions], item: Item) -> Iterator[Place]:
    """Yield the launches of a Python kernel, those through another name included."""
    if item.kernel is None:
        return
    for file in links.launch_files(item):
        for site in launch_sites(file, bundles[0].trees):
            if links.direct(site, file, item):
                yield file, site


def may_emit(links: Links, checks: Contradictions, item: Item, place: Place) -> bool:
    """Tell whether a place runs on the host, leads to an item, and contradicts nothing known."""
    file, site = place
    if not (site.qualname and is_python(file.path) and is_runtime(file.path)):
        return False
    if in_device_code(site) or _inlines(site, item):
        return False
    if checks.of_path(file.path) is not None or checks.of_site(file, site):
        return False
    return links.direct(site, file, item) or bool(links.reached(site, file, item))


def other_sites(case: Case) -> tuple[CallSite, ...]:
    """List the places that launch a kernel as directly as the cited ones, by path and line."""
    cited = {(item.evidence.repo, item.evidence.path, *_lines(item)) for item in case.emitting()}
    found = {
        (one.repo, one.path, one.lines): one
        for emitting in case.emitting()
        for defining in case.defining()
        for one in islice(_as_near(case, emitting, defining), _MAX_OTHERS)
    }
    return tuple(
        found[place]
        for place in sorted(found)
        if not any(
            place[:2] == (repo, path) and first <= place[2][0] <= last
            for repo, path, first, last in cited
        )
    )


def _lines(item: Item) -> tuple[int, int]:
    first, last = item.evidence.lines
    sites = item.region.sites if item.region is not None else ()
    return first, max((last, *(site.line for site in sites)))


def _as_near(case: Case, emitting: Item, defining: Item) -> Iterator[CallSite]:
    if emitting.native_sites:
        yield from _native(case, defining)
        return
    if emitting.region is None or emitting.file is None:
        return
    site = emitting.region.sites[0]
    direct = case.links.direct(site, emitting.file, defining)
    places = launches(case.links, case.bundles, defining) if direct else _calls(case, site.symbol)
    for place in places:
        if may_emit(case.links, case.contradictions, defining, place) and _runs(case, place):
            yield call_site(*place)


def _calls(case: Case, name: str) -> Iterator[Place]:
    for bundle in case.bundles:
        held = bundle.snapshot.holding(name.encode("utf-8", "replace"), "python")
        for file in islice(held, _MAX_FILES):
            for site in sites_named(file, bundle.trees, name):
                yield file, site


def _native(case: Case, defining: Item) -> Iterator[CallSite]:
    if defining.head is None:
        return
    for file in case.links.launch_files(defining):
        if is_python(file.path) or not is_runtime(file.path):
            continue
        for site in launches_of(file, defining.head.name):
            text = file.lines(site.line, site.line)[0].strip()[:200]
            line = (site.line, site.line)
            yield CallSite(file.repo, file.path, line, text, site.function, (), site.node)


def _runs(case: Case, place: Place) -> bool:
    file, site = place
    region = Region((site,), site.qualname, site.guards, ())
    return not never_runs(site) and case.links.used(file, region)


def _inlines(site: Site, item: Item) -> bool:
    """Tell whether a site calls the kernel's function as a device helper."""
    kernel = item.kernel
    if kernel is None or kernel.origin == "flydsl" or site.kind != "call":
        return False
    return site.symbol == kernel.function.name
