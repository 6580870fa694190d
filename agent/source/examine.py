"""What a proposal's evidence proves together, by the origin of the kernel.

The minimum for each origin is VALIDATION's table. Nothing here knows a pattern, a rule or a trace:
what only a trace can show is listed in `Examination.needs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import re2

from agent.core.names import canonical_name
from agent.core.proposals import EndState, Evidence, Finding, RunContext
from agent.core.source import (
    CallSite,
    Definition,
    EnclosingFunction,
    Examination,
    KernelOrigin,
)
from agent.source.castchecks import cast_findings
from agent.source.contradictions import Contradictions, run_backend
from agent.source.definitions import Definitions
from agent.source.guardcheck import guard_finding
from agent.source.inductor import inductor_findings
from agent.source.items import Item, read_item
from agent.source.linking import Links
from agent.source.manifests import BuildManifests
from agent.source.names import kernel_ref, origin_of
from agent.source.parse import first_line
from agent.source.paths import is_python
from agent.source.pins import pinned
from agent.source.reach import Link, Reach
from agent.source.reachable import is_used
from agent.source.sites import Site
from agent.source.tables import table_arch

_MINIMUM: Mapping[str, tuple[frozenset[str], ...]] = {
    "triton": (frozenset({"DEF", "EMIT"}),),
    "gluon": (frozenset({"DEF", "EMIT"}),),
    "triton-repr": (frozenset({"DEF", "EMIT"}), frozenset({"SKEL", "EMIT"})),
    "flydsl": (frozenset({"DEF", "EMIT"}), frozenset({"SKEL", "EMIT"})),
    "hip-global": (frozenset({"DEF", "EMIT", "BUILD"}),),
    "aiter-asm": (frozenset({"TAB", "BIN", "EMIT"}),),
    "ck": (frozenset({"INST", "EMIT", "BUILD"}),),
    "aten-cast": (frozenset({"EMIT", "GUARD"}),),
    "aten": (frozenset({"EMIT"}),),
    "inductor": (frozenset({"EMIT"}),),
}
_WORDS = {
    "DEF": "a definition", "EMIT": "an emission", "BUILD": "a build manifest that has the file",
    "TAB": "a table row", "BIN": "the row's code object with the symbol", "SKEL": "a name template",
    "INST": "an instantiation", "GUARD": "the guard under which the cast runs",
}  # fmt: skip
CASTS = frozenset({"CastFromFP8", "CastToFP8"})


@dataclass(frozen=True)
class Workbench:
    """What an examination works with: bundles at the pinned commits, and caches over calls."""

    bundle: Callable[[str, str], Definitions | Finding]
    default: Callable[[], tuple[Definitions, ...]]
    manifests: Callable[[Definitions], BuildManifests]
    reaches: dict[tuple[object, ...], Reach]


@dataclass(frozen=True, slots=True)
class Question:
    """One proposal as an examination sees it; see `SourceIndex.examine`."""

    evidence: tuple[Evidence, ...]
    names: tuple[str, ...]
    category: str
    context: RunContext
    pattern: str = ""
    listed: tuple[str, ...] = ()


@dataclass
class _Case:
    """One examination in progress."""

    work: Workbench
    question: Question
    family: tuple[str, ...]
    items: list[Item]
    bundles: tuple[Definitions, ...]
    links: Links
    contradictions: Contradictions
    origin: KernelOrigin = "unknown"
    proven: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    lookalikes: tuple[CallSite, ...] = ()
    end_state: EndState = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Give the kernels the proposal is for, declared or of the trace."""
        return self.question.names

    @property
    def category(self) -> str:
        """Give the proposed category."""
        return self.question.category

    @property
    def context(self) -> RunContext:
        """Give what is known of the run."""
        return self.question.context

    def defining(self) -> list[Item]:
        """Give the items that define or list the kernel."""
        return [item for item in self.items if item.definition is not None or item.instantiated]

    def emitting(self) -> list[Item]:
        """Give the items whose lines hold a call or launch."""
        return [
            item
            for item in self.items
            if item.native_sites or (item.region is not None and item.region.sites)
        ]


def examine(work: Workbench, question: Question) -> Examination:
    """Check a proposal's evidence together."""
    case = _open(work, question)
    case.origin = _origin(case)
    for item in case.items:
        _check_place(case, item)
    if case.origin == "external":
        _check_external(case)
    else:
        _check_definitions(case)
        _check_emissions(case)
        if case.origin in ("aten-cast", "aten"):
            cast_findings(case)
        if case.origin == "inductor":
            case.end_state = "GENERATED"
            case.findings.extend(inductor_findings(case.items, case.family))
    return _close(case)


def _open(work: Workbench, question: Question) -> _Case:
    known = question.names or question.listed
    family = known or ((plain(question.pattern),) if question.pattern else ())
    items: list[Item] = []
    bundles = {one.snapshot.repo: one for one in work.default()}
    for entry in question.evidence:
        bundle = work.bundle(entry.repo, entry.commit)
        if isinstance(bundle, Finding):
            items.append(Item(entry, findings=[bundle]))
            continue
        bundles[entry.repo] = bundle
        items.append(read_item(entry, bundle, known))
    chosen = tuple(bundles[repo] for repo in sorted(bundles))
    links = Links(chosen, work.reaches)
    checks = Contradictions(chosen[0].trees, question.context)
    return _Case(work, question, family, items, chosen, links, checks)


def plain(pattern: str) -> str:
    """Write a pattern as the name it is about: escapes dropped, so that its family can be told."""
    out, index = [], 0
    while index < len(pattern):
        if pattern[index] == "\\" and index + 1 < len(pattern):
            index += 1
        elif pattern[index] in "^$":
            index += 1
            continue
        out.append(pattern[index])
        index += 1
    return "".join(out)


def _origin(case: _Case) -> KernelOrigin:
    stated = {origin_of(name) for name in case.family}
    for family in ("external", "inductor", "aten-cast", "aten", "ck"):
        if family in stated:
            if family == "aten-cast" and case.category not in CASTS:
                return "aten"
            return family
    for item in case.defining():
        if item.definition is not None:
            return item.definition.origin
        return "ck"
    if any(item.evidence.kind in ("table", "binary") for item in case.items):
        return "aiter-asm"
    return "hip-global" if "hip-global" in stated else "triton"


def _check_place(case: _Case, item: Item) -> None:
    """Refuse places that another vendor, backend or architecture owns."""
    if item.evidence.kind in ("table", "binary"):
        arch = table_arch(item.evidence.path)
        backend, _ = run_backend(case.context)
        if arch and backend == "cuda":
            item.refuse("E_BACKEND_MISMATCH", f"the table is for {arch}; the run is on {backend}")
        elif arch and case.context.arch and arch != case.context.arch:
            item.refuse(
                "E_ARCH_MISMATCH", f"the table is for {arch}; the run is on {case.context.arch}"
            )
        return
    evidence = item.evidence
    wrong = case.contradictions.of_path(evidence.path, evidence.repo) if item.file else None
    if wrong is not None:
        item.findings.append(wrong)


def _check_definitions(case: _Case) -> None:
    for item in case.defining():
        if item.row is not None:
            _check_row(case, item)
        elif item.instantiated:
            case.proven.add("INST")
            _check_built(case, item)
        elif item.definition is not None:
            _check_definition(case, item, item.definition)
    for item in case.items:
        if item.evidence.kind == "binary" and item.binary_symbol:
            case.proven.add("BIN")
    if case.proven & {"DEF", "SKEL", "TAB"}:
        case.findings.extend(_unproven(case))


def _unproven(case: _Case) -> Iterator[Finding]:
    """Say which kernels the proposal is for none of its definitions makes."""
    defining = [item for item in case.defining() if item.definition is not None]
    left = [name for name in case.names if not any(_accepts(item, name) for item in defining)]
    if left:
        listed = ", ".join(repr(kernel_ref(name).qualified[:80]) for name in left[:3])
        message = f"{len(left)} of the kernels it is for are not defined by its evidence: {listed}"
        yield Finding("E_UNPROVEN_KERNEL", message)


def _check_row(case: _Case, item: Item) -> None:
    case.proven.add("TAB")
    if item.binary_symbol:
        case.proven.add("BIN")
    _check_named(case, item)


def _check_definition(case: _Case, item: Item, definition: Definition) -> None:
    if not _check_named(case, item):
        return
    if not case.links.launched(item):
        what = "a helper that other kernels inline" if item.kernel else "never launched here"
        item.refuse("E_NOT_LAUNCHED", f"{definition.name} is {what}: no runtime code launches it")
        return
    case.proven.add("SKEL" if item.evidence.kind == "template" else "DEF")
    if item.head is not None:
        _check_built(case, item)
    _check_unique(case, item, definition)


def _check_named(case: _Case, item: Item) -> bool:
    """Say when what is defined is not the kernel the proposal is for."""
    definition = item.definition
    if definition is None:
        return False
    wanted = case.names or case.question.listed
    if any(_accepts(item, name) for name in wanted):
        return True
    if not case.names and _pattern_takes(case.question.pattern, definition.name):
        return True
    known = ", ".join(sorted({kernel_ref(name).qualified for name in wanted})[:3])
    known = known or f"what {case.question.pattern[:60]!r} matches"
    item.refuse("E_NAME_MISMATCH", f"{definition.name} is defined here, not {known}")
    return False


def _pattern_takes(pattern: str, name: str) -> bool:
    try:
        return re2.compile(pattern).search(name) is not None
    except re2.error:
        return False


def _accepts(item: Item, name: str) -> bool:
    if item.kernel is not None:
        bundle, file = item.definitions, item.file
        if item.kernel.accepts(canonical_name(name)):
            return True
        if bundle is None or file is None:
            return False
        return any(
            one.path == file.path and one.lines[0] == item.kernel.line for one in bundle.find(name)
        )
    if item.head is not None:
        ref = kernel_ref(name)
        spaces = tuple(space for space in item.head.spaces if space)
        named = tuple(space for space in ref.spaces if space)
        return ref.base == item.head.name and (not ref.spaces or named == spaces)
    return item.row is not None and kernel_ref(name).base == kernel_ref(item.row.symbol).base


def _check_built(case: _Case, item: Item) -> None:
    if item.file is None or item.definitions is None or is_python(item.file.path):
        return
    backend, _ = run_backend(case.context)
    built = case.work.manifests(item.definitions).backends(item.file.path)
    if backend and backend not in built:
        item.refuse("E_NOT_BUILT", f"{item.file.path} is in no build manifest for {backend}")
    elif not built:
        item.refuse("E_NOT_BUILT", f"{item.file.path} is in no build manifest")
    else:
        case.proven.add("BUILD")


def _check_unique(case: _Case, item: Item, definition: Definition) -> None:
    rivals = [one for name in case.names for one in _rivals(case, item, definition, name)]
    if not rivals:
        return
    listed = ", ".join(dict.fromkeys(f"{one.repo}:{one.path}:{one.lines[0]}" for one in rivals))
    case.end_state = "AMBIGUOUS"
    case.findings.append(
        Finding(
            "E_AMBIGUOUS",
            f"{definition.name} is also defined at {listed}",
            location=f"{definition.path}:{definition.lines[0]}",
            hint="name the architecture or backend of the run, or a stack of the trace",
        )
    )


def _rivals(case: _Case, item: Item, definition: Definition, name: str) -> Iterator[Definition]:
    backend, _ = run_backend(case.context)
    for bundle in case.bundles:
        for one in bundle.find(name):
            same = (one.repo, one.path) == (definition.repo, definition.path)
            if (same and one.qualname == definition.qualname) or not one.runtime:
                continue
            if one.origin == "ck" or (one.origin == "aiter-asm") != (item.row is not None):
                continue
            arch = table_arch(one.path)
            if arch and case.context.arch and not case.context.arch.startswith(arch):
                continue
            if one.origin == "hip-global":
                built = case.work.manifests(bundle).backends(one.path)
                if not built or (backend and backend not in built):
                    continue
                if _less_named(name, one, definition):
                    continue
            elif not _reached_elsewhere(case, item, bundle, one):
                continue
            yield one


def _less_named(name: str, rival: Definition, definition: Definition) -> bool:
    """Tell whether a name without namespaces fits the global definition better than a rival."""
    return not kernel_ref(name).spaces and "::" not in definition.name and "::" in rival.name


def _reached_elsewhere(case: _Case, item: Item, bundle: Definitions, rival: Definition) -> bool:
    """Tell whether a rival Python definition competes: launched, and used by the serving code.

    A rival in another checkout competes only when a checkout besides its own calls what launches
    it, because a kernel library ships many kernels that a server never runs.
    """
    file = bundle.snapshot.source(rival.path)
    if file is None:
        return False
    kernel = next(
        (one for one in bundle.kernels(file) if one.function.qualname == rival.qualname), None
    )
    if kernel is None:
        return True
    other = Item(
        replace(item.evidence, repo=rival.repo, path=rival.path, lines=rival.lines),
        bundle, file, definition=rival, kernel=kernel,
    )  # fmt: skip
    if not case.links.launched(other):
        return False
    if rival.repo == item.evidence.repo:
        return True
    return any(
        _imported_elsewhere(case, rival, link)
        for links in case.links.wholly(other).values()
        for link in links
        if link.repo not in (rival.repo, "") and link.via
    )


def _imported_elsewhere(case: _Case, rival: Definition, link: Link) -> bool:
    """Tell whether another checkout's file takes a name from the rival's own package."""
    bundle = next((one for one in case.bundles if one.snapshot.repo == link.repo), None)
    file = bundle.snapshot.source(link.path) if bundle is not None else None
    if file is None:
        return False
    package = case.links.imports_from(file, link.via)
    return bool(package) and package in rival.path.split("/")


def _check_emissions(case: _Case) -> None:
    for item in case.emitting():
        _check_emission(case, item)


def _check_emission(case: _Case, item: Item) -> None:
    if item.native_sites:
        _check_native_emission(case, item)
        return
    if item.region is None or item.file is None:
        return
    named = case.origin not in ("aten", "aten-cast", "inductor")
    if named and not _linked(case, item):
        return
    stated = guard_finding(item.evidence, item.region, item.file)
    if stated is not None:
        item.findings.append(stated)
    elif item.evidence.guard:
        case.proven.add("GUARD")
    if not is_used(case.bundles, item.file, item.region.qualname):
        item.refuse("E_UNREACHABLE", f"no runtime code uses {item.region.qualname}")
    site = item.region.sites[0]
    item.findings.extend(case.contradictions.of_site(item.file, site))
    case.proven.add("EMIT")


def _linked(case: _Case, item: Item) -> bool:
    """Keep the sites of an emission that lead to what is defined; say so when none does."""
    region, file = item.region, item.file
    defining = [one for one in case.defining() if one.definition is not None or one.instantiated]
    if region is None or file is None or not defining:
        return True
    kept = tuple(
        site
        for site in region.sites
        if any(
            case.links.direct(site, file, one) or case.links.reached(site, file, one)
            for one in defining
        )
    )
    if not kept:
        called = ", ".join(sorted({site.callee or site.text[:40] for site in region.sites})[:3])
        item.refuse(
            "E_NO_MATCHING_NODE",
            f"nothing on these lines leads to the kernel: they call {called}",
        )
        return False
    item.region = replace(region, sites=kept, guards=kept[0].guards)
    return True


def _check_native_emission(case: _Case, item: Item) -> None:
    symbols = [site.symbol for site in item.native_sites]
    functions = [site.function for site in item.native_sites]
    defining = case.defining()
    if defining and not any(case.links.native_reached(symbols, functions, one) for one in defining):
        item.refuse("E_NO_MATCHING_NODE", "the launch on these lines is of another kernel")
        return
    if item.evidence.guard:
        item.refuse("E_GUARD_MISMATCH", "guards are only read in Python source")
        return
    _check_built(case, item)
    case.proven.add("EMIT")


def _check_external(case: _Case) -> None:
    name = case.family[0] if case.family else ""
    case.end_state = "EXTERNAL"
    message = f"{name[:80]!r} comes from a vendor library whose source is not in the checkout"
    hint = "such kernels are labelled by built-in rules only"
    case.findings.append(Finding("E_EXTERNAL", message, hint=hint))
    for item in case.defining():
        if item.definition is not None and _check_named(case, item):
            item.refuse("E_NAME_MISMATCH", f"{item.definition.name} is no vendor kernel")


def _close(case: _Case) -> Examination:
    failed = any(item.findings for item in case.items)
    missing = _missing(case)
    if missing and case.origin != "external":
        words = " and ".join(_WORDS.get(one, one) for one in missing)
        case.findings.append(
            Finding("E_MISSING_EVIDENCE", f"a {case.origin} kernel also needs {words}")
        )
    findings = [finding for item in case.items for finding in item.findings] + case.findings
    errors = any(finding.severity == "error" for finding in findings)
    return Examination(
        case.origin,
        tuple(pinned(item) for item in case.items),
        frozenset(case.proven),
        tuple(dict.fromkeys(findings)),
        complete=not failed and not missing and not errors and case.origin != "external",
        needs=frozenset(case.needs),
        defined=tuple(item.definition for item in case.items if item.definition is not None),
        functions=tuple(_functions(case)),
        lookalikes=case.lookalikes,
        end_state=case.end_state,
    )


def _missing(case: _Case) -> list[str]:
    """Give what the nearest alternative of the minimum still lacks, in the table's order."""
    choices: Sequence[frozenset[str]] = _MINIMUM.get(case.origin, ())
    lacking = [choice - case.proven for choice in choices]
    fewest = min(lacking, key=len, default=frozenset())
    return [word for word in _WORDS if word in fewest]


def _functions(case: _Case) -> Iterator[EnclosingFunction]:
    for item in case.emitting():
        if item.region is None or item.file is None or item.definitions is None:
            continue
        lines = _first_lines(item.region.sites[0])
        info = item.definitions.snapshot.info
        yield EnclosingFunction(
            info.name, info.commit, item.file.path, item.region.qualname, lines
        )


def _first_lines(site: Site) -> tuple[int, ...]:
    """Give the lines a profiler may call the first of the function around a site."""
    around = [node for node in site.chain[:-1] if node.type == "function_definition"]
    if not around:
        return ()
    lines = {first_line(around[-1])}
    for outer, inner in pairwise(site.chain):
        if inner == around[-1] and outer.type == "decorated_definition":
            lines.add(first_line(outer))
    return tuple(sorted(lines))
