"""Do the definitions, rows and templates of a proposal make its kernels, uniquely and built?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import re2

from agent.core.names import canonical_name
from agent.core.proposals import Finding
from agent.core.source import Definition
from agent.source.definitions import Definitions, spaces_agree
from agent.source.evidence.case import Case
from agent.source.evidence.contradictions import run_backend
from agent.source.evidence.items import Item
from agent.source.evidence.liveness import never_reached
from agent.source.names import kernel_ref, template_arguments
from agent.source.native.conditions import vendor_at
from agent.source.native.structure import native_file
from agent.source.native.tables import table_arch
from agent.source.native.templates import arity_agrees
from agent.source.parse import ancestors
from agent.source.paths import is_python
from agent.source.reach import Link


def check_definitions(case: Case) -> None:
    """Check every item that defines, lists or instantiates the kernel."""
    for item in case.defining():
        if item.row is not None:
            _check_row(case, item)
        elif item.instantiated:
            case.proven.add("INST")
            check_built(case, item)
        elif item.definition is not None:
            _check_definition(case, item, item.definition)
    for item in case.items:
        if item.evidence.kind == "binary" and item.binary_symbol:
            case.proven.add("BIN")
    if case.proven & {"DEF", "SKEL", "TAB"}:
        case.findings.extend(_unproven(case))
    for item in case.defining():
        _check_spelling(case, item)


def _unproven(case: Case) -> Iterator[Finding]:
    """Say which kernels the proposal is for none of its definitions makes."""
    defining = [item for item in case.defining() if item.definition is not None]
    wanted = case.names or case.question.listed
    left = [name for name in wanted if not any(_accepts(item, name) for item in defining)]
    if left:
        listed = ", ".join(repr(kernel_ref(name).qualified[:80]) for name in left[:3])
        message = f"{len(left)} of the kernels it is for are not defined by its evidence: {listed}"
        yield Finding("E_UNPROVEN_KERNEL", message)


def _check_spelling(case: Case, item: Item) -> None:
    """Warn when a demangler would spell what the definition makes otherwise than a kernel."""
    if item.head is None or item.file is None:
        return
    text = native_file(item.file.text)
    for name in sorted(filter(partial(_accepts, item), case.names)):
        shows, ref = template_arguments(name), kernel_ref(name)
        differs = ""
        if not arity_agrees(shows, text, item.head):
            differs = f"the kernel shows {shows} template arguments, its definition takes others"
        elif ref.declared and not ref.spaces and "" in item.head.spaces:
            differs = "the kernel shows no namespace, its definition is in an anonymous one"
        if differs:
            hint = "the run may be of another source: look before you accept"
            case.findings.append(Finding("E_NEAR_NAME", differs, "warning", item.place, hint))
            return


def _check_row(case: Case, item: Item) -> None:
    case.proven.add("TAB")
    if item.binary_symbol:
        case.proven.add("BIN")
    check_named(case, item)


def _check_definition(case: Case, item: Item, definition: Definition) -> None:
    if not check_named(case, item) or not _check_around(case, item):
        return
    if not case.links.launched(item):
        what = "a helper that other kernels inline" if item.kernel else "never launched here"
        item.refuse("E_NOT_LAUNCHED", f"{definition.name} is {what}: no runtime code launches it")
        return
    case.proven.add("SKEL" if item.evidence.kind == "template" else "DEF")
    if item.head is not None:
        check_built(case, item)
    _check_unique(case, item, definition)


def _check_around(case: Case, item: Item) -> bool:
    """Say when what stands around a definition in Python never lets it be, or not in this run."""
    if item.kernel is None or item.file is None:
        return True
    tree = case.work.trees.tree(item.file, "python")
    function = item.kernel.function
    if tree is None:
        return True
    chain = ancestors(tree.root_node, function.start_byte, function.end_byte)
    if why := never_reached(chain):
        item.refuse("E_UNREACHABLE", f"{function.name} {why}")
        return False
    wrong = case.contradictions.of_definition(item.file, chain, function.line)
    item.findings.extend([wrong] if wrong is not None else [])
    return wrong is None


def check_named(case: Case, item: Item) -> bool:
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
        return ref.base == item.head.name and spaces_agree(ref, item.head.spaces)
    return item.row is not None and kernel_ref(name).base == kernel_ref(item.row.symbol).base


def check_built(case: Case, item: Item) -> None:
    """Ask the build manifests for a native file, and the preprocessor for the place in it."""
    if item.file is None or item.definitions is None or is_python(item.file.path):
        return
    backend, _ = run_backend(case.context)
    offset = item.head.offset if item.head is not None else -1
    offset = item.native_sites[0].offset if item.native_sites else offset
    vendor = vendor_at(native_file(item.file.text).code, offset)
    if backend and vendor and vendor != backend:
        message = f"the preprocessor keeps this for {vendor}; the run is on {backend}"
        item.refuse("E_BACKEND_MISMATCH", message)
    built = case.work.manifests(item.definitions).backends(item.file.path)
    if backend and backend not in built:
        item.refuse("E_NOT_BUILT", f"{item.file.path} is in no build manifest for {backend}")
    elif not built:
        item.refuse("E_NOT_BUILT", f"{item.file.path} is in no build manifest")
    else:
        case.proven.add("BUILD")


def _check_unique(case: Case, item: Item, definition: Definition) -> None:
    """Say which other definitions make the same kernels; it is an error unless all are cited."""
    made = [name for name in case.names if _accepts(item, name)]
    rivals = [one for name in made for one in _rivals(case, item, definition, name)]
    if not rivals:
        return
    cited = {one.definition for one in case.defining()}
    listed = ", ".join(dict.fromkeys(f"{one.repo}:{one.path}:{one.lines[0]}" for one in rivals))
    case.end_state = "AMBIGUOUS"
    case.findings.append(
        Finding(
            "E_AMBIGUOUS",
            f"{definition.name} is also defined at {listed}",
            "note" if cited.issuperset(rivals) else "error",
            f"{definition.path}:{definition.lines[0]}",
            "cite them all, or name the architecture or backend of the run",
        )
    )


def _rivals(case: Case, item: Item, definition: Definition, name: str) -> Iterator[Definition]:
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


def _reached_elsewhere(case: Case, item: Item, bundle: Definitions, rival: Definition) -> bool:
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


def _imported_elsewhere(case: Case, rival: Definition, link: Link) -> bool:
    """Tell whether another checkout's file takes a name from the rival's own package."""
    bundle = next((one for one in case.bundles if one.snapshot.repo == link.repo), None)
    file = bundle.snapshot.source(link.path) if bundle is not None else None
    if file is None:
        return False
    package = case.links.imports_from(file, link.via)
    return bool(package) and package in rival.path.split("/")
