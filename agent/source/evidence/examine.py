"""What a proposal's evidence proves together, by the origin of the kernel.

The minimum for each origin is VALIDATION's table. Nothing here knows a pattern, a rule or a trace:
what only a trace can show is listed in `Examination.needs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agent.core.proposals import Finding
from agent.core.source import (
    EnclosingFunction,
    Examination,
    KernelOrigin,
)
from agent.source.evidence.bound import is_bound
from agent.source.evidence.case import CASTS, Case, Question, Workbench
from agent.source.evidence.castchecks import cast_findings
from agent.source.evidence.contradictions import Contradictions, run_backend
from agent.source.evidence.defining import check_built, check_definitions, check_named
from agent.source.evidence.functions import enclosing_function
from agent.source.evidence.guardcheck import guard_finding
from agent.source.evidence.items import Item, read_item
from agent.source.evidence.liveness import never_runs
from agent.source.evidence.othersites import other_sites
from agent.source.evidence.pins import pinned
from agent.source.evidence.switches import never_set
from agent.source.names import origin_of
from agent.source.native.tables import table_arch
from agent.source.python.inductor import inductor_findings

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


def examine(work: Workbench, question: Question) -> Examination:
    """Check a proposal's evidence together."""
    case = _open(work, question)
    case.origin = _origin(case)
    for item in case.items:
        _check_place(case, item)
    if case.origin == "external":
        _check_external(case)
    else:
        check_definitions(case)
        _check_emissions(case)
        if case.origin in ("aten-cast", "aten"):
            cast_findings(case)
        if case.origin == "inductor":
            case.end_state = "GENERATED"
            case.findings.extend(inductor_findings(case.items, case.family))
    return _close(case)


def _open(work: Workbench, question: Question) -> Case:
    known = question.names or question.listed
    family = known or ((plain(question.pattern),) if question.pattern else ())
    items: list[Item] = []
    commits: dict[str, str] = {}
    bundles = {one.snapshot.repo: one for one in work.default()}
    for entry in question.evidence:
        bundle = work.bundle(entry.repo, entry.commit)
        if isinstance(bundle, Finding):
            items.append(Item(entry, findings=[bundle]))
            continue
        bundles[entry.repo] = bundle
        item = read_item(entry, bundle, known)
        if commits.setdefault(entry.repo, entry.commit) != entry.commit:
            item.refuse("E_COMMIT_MIXED", f"other evidence of {entry.repo} is of another commit")
        items.append(item)
    chosen = tuple(bundles[repo] for repo in sorted(bundles))
    links = work.links(chosen)
    checks = Contradictions(work.trees, question.context)
    return Case(work, question, family, items, chosen, links, checks)


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


def _origin(case: Case) -> KernelOrigin:
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


def _check_place(case: Case, item: Item) -> None:
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


def _check_emissions(case: Case) -> None:
    for item in case.emitting():
        _check_emission(case, item)


def _check_emission(case: Case, item: Item) -> None:
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
    if why := never_runs(item.region.sites[0]):
        item.refuse("E_UNREACHABLE", f"{item.region.qualname} {why}")
    elif switch := never_set(case.bundles, item.file, item.region.sites[0]):
        item.refuse("E_UNREACHABLE", f"it is behind {switch}, which is off and which nothing sets")
    elif not case.links.used(item.file, item.region):
        hint = "where another checkout calls it, name that with --repo too"
        item.refuse("E_UNREACHABLE", f"no runtime code uses {item.region.qualname}", hint=hint)
    site = item.region.sites[0]
    item.findings.extend(case.contradictions.of_site(item.file, site))
    debugging = case.contradictions.of_debugging(item.file, site)
    case.findings.extend([debugging] if debugging is not None else [])
    case.proven.add("EMIT")


def _linked(case: Case, item: Item) -> bool:
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


def _check_native_emission(case: Case, item: Item) -> None:
    file, sites, defining = item.file, item.native_sites, case.defining()
    if (
        file is not None
        and defining
        and not any(case.links.native_reached(file, sites, one) for one in defining)
    ):
        item.refuse("E_NO_MATCHING_NODE", "the launch on these lines is of another kernel")
        return
    if item.evidence.guard:
        item.refuse("E_GUARD_MISMATCH", "guards are only read in Python source")
        return
    if file is not None and not is_bound(case.bundles, file, sites[0].offset):
        hint = "where another checkout calls it, name that with --repo too"
        message = f"nothing binds or calls {sites[0].function}"
        item.refuse("E_UNREACHABLE", message, hint=hint)
    check_built(case, item)
    case.proven.add("EMIT")


def _check_external(case: Case) -> None:
    if not (case.names or case.question.listed):
        return
    name = case.family[0]
    case.end_state = "EXTERNAL"
    message = f"{name[:80]!r} comes from a vendor library whose source is not in the checkout"
    hint = "such kernels are labelled by built-in rules only"
    case.findings.append(Finding("E_EXTERNAL", message, hint=hint))
    for item in case.defining():
        if item.definition is not None and check_named(case, item):
            item.refuse("E_NAME_MISMATCH", f"{item.definition.name} is no vendor kernel")


def _close(case: Case) -> Examination:
    failed = any(item.findings for item in case.items)
    missing = _missing(case)
    if missing and case.origin != "external":
        words = " and ".join(_WORDS.get(one, one) for one in missing)
        article = "an" if case.origin[0] in "aei" else "a"
        case.findings.append(
            Finding("E_MISSING_EVIDENCE", f"{article} {case.origin} kernel also needs {words}")
        )
    findings = [finding for item in case.items for finding in item.findings] + case.findings
    errors = any(finding.severity == "error" for finding in findings)
    complete = not failed and not missing and not errors and case.origin != "external"
    return Examination(
        case.origin,
        tuple(pinned(item) for item in case.items),
        frozenset(case.proven),
        tuple(dict.fromkeys(findings)),
        complete=complete,
        needs=frozenset(case.needs),
        defined=tuple(item.definition for item in case.items if item.definition is not None),
        functions=tuple(_functions(case)),
        lookalikes=case.lookalikes,
        other_sites=other_sites(case) if complete else (),
        end_state=case.end_state,
    )


def _missing(case: Case) -> list[str]:
    """Give what the nearest alternative of the minimum still lacks, in the table's order."""
    choices: Sequence[frozenset[str]] = _MINIMUM.get(case.origin, ())
    lacking = [choice - case.proven for choice in choices]
    fewest = min(lacking, key=len, default=frozenset())
    if any(one.code == "E_GUARD_MISMATCH" for item in case.items for one in item.findings):
        fewest = fewest - {"GUARD"}
    return [word for word in _WORDS if word in fewest]


def _functions(case: Case) -> Iterator[EnclosingFunction]:
    for item in case.emitting():
        if item.region is not None and item.file is not None and item.definitions is not None:
            info = item.definitions.snapshot.info
            yield enclosing_function(info, item.file.path, item.region.sites[0])
