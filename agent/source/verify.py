"""Find pinned evidence again at another commit: where it is now, or that it is gone.

The blob is compared first, then the token digest of the cited lines inside the pinned function with
the pinned guards; never a line number alone. What can only be judged by a person says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent.core.proposals import Evidence, Finding, Pin
from agent.source.definitions import Definitions
from agent.source.evidence.items import Item, read_item
from agent.source.evidence.pins import pinned
from agent.source.evidence.snippets import digest_of, line_tokens, tokens
from agent.source.layout import is_unpackaged, placed
from agent.source.native.elf import elf_symbols
from agent.source.native.structure import native_file
from agent.source.native.tables import table_arch, table_rows
from agent.source.paths import is_python, is_runtime
from agent.source.python.sites import sites_named
from agent.source.snapshot import SourceFile

Status = Literal[
    "SAME", "MOVED", "MOVED_GUARDS_CHANGED", "CHANGED", "RELOCATED", "AMBIGUOUS", "STALE",
    "UNPINNED", "NOT_CHECKED",
]  # fmt: skip
NEEDS_A_PERSON: frozenset[Status] = frozenset(
    {"MOVED_GUARDS_CHANGED", "CHANGED", "RELOCATED", "AMBIGUOUS", "STALE", "UNPINNED"}
)
_MAX_WINDOW = 40
_MAX_FILES = 60
_MIN_WORD = 6


@dataclass(frozen=True, slots=True)
class EvidenceStatus:
    """What became of one piece of evidence; `found` is it at its new place, pinned again.

    `message` says in words what a person should look at; `places` lists several candidates.
    """

    status: Status
    evidence: Evidence
    found: Evidence | None = None
    message: str = ""
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """One place where the cited tokens stand."""

    path: str
    lines: tuple[int, int]
    evidence: Evidence
    pin: Pin


def verify_evidence(evidence: Evidence, bundle: Definitions) -> EvidenceStatus:
    """Find one piece of evidence again in a snapshot."""
    pin = evidence.pin
    if pin is None:
        message = "it was never pinned: judge the rule again to take its pin"
        return EvidenceStatus("UNPINNED", evidence, message=message)
    tree = bundle.snapshot.tree
    here = replace(evidence, path=placed(tree, evidence.path))
    found = _verified(here, pin, bundle)
    if found.status == "STALE" and is_unpackaged(tree, evidence.path):
        part = evidence.path.partition("/")[0]
        message = f"this is an installed package, which does not hold {part}/ of the repository"
        return EvidenceStatus("NOT_CHECKED", evidence, message=message)
    if here.path != evidence.path and not found.message:
        found = replace(found, message=f"it lies at {here.path} in this layout")
    return replace(found, evidence=evidence)


def _verified(evidence: Evidence, pin: Pin, bundle: Definitions) -> EvidenceStatus:
    entry = bundle.snapshot.tree.get(evidence.path)
    if entry is not None and entry.sha == pin.blob:
        commit = bundle.snapshot.info.commit
        found = replace(evidence, commit=commit, pin=replace(pin, commit=commit, trace_match=""))
        return EvidenceStatus("SAME", evidence, found)
    if evidence.kind == "binary":
        return _binary(evidence, pin, bundle)
    if evidence.kind == "table":
        return _table(evidence, pin, bundle)
    return _text(evidence, pin, bundle)


def _text(evidence: Evidence, pin: Pin, bundle: Definitions) -> EvidenceStatus:
    file = bundle.snapshot.source(evidence.path)
    here = list(_places(evidence, pin, file, bundle)) if file is not None else []
    inside = [one for one in here if one.pin.qualname == pin.qualname]
    if inside:
        return _moved(evidence, pin, inside)
    changed = _changed(evidence, pin, file, bundle) if file is not None else None
    if changed is not None:
        return changed
    elsewhere = [*here, *_elsewhere(evidence, pin, bundle)]
    named = [one for one in elsewhere if _last(one.pin.qualname) == _last(pin.qualname)]
    if len(named) == 1:
        place = named[0]
        message = f"it stands in {place.path} now: look whether it does the same there"
        return EvidenceStatus("RELOCATED", evidence, place.evidence, message)
    if named:
        return _ambiguous(evidence, named)
    what = (
        f"{evidence.path} is gone"
        if file is None
        else f"{pin.qualname or 'the place'} no longer holds it"
    )
    message = f"{what}: the rule holds for traces of older commits only"
    return EvidenceStatus("STALE", evidence, message=message)


def _moved(evidence: Evidence, pin: Pin, inside: Sequence[_Place]) -> EvidenceStatus:
    same = [one for one in inside if one.pin.guards == pin.guards]
    if len(same) > 1 or (not same and len(inside) > 1):
        return _ambiguous(evidence, same or inside)
    if not same:
        place = inside[0]
        message = f"its guards changed: {_guard_changes(pin.guards, place.pin.guards)}"
        return EvidenceStatus("MOVED_GUARDS_CHANGED", evidence, place.evidence, message)
    status: Status = "SAME" if same[0].lines == evidence.lines else "MOVED"
    return EvidenceStatus(status, evidence, same[0].evidence)


def _guard_changes(before: Sequence[str], after: Sequence[str]) -> str:
    gone = [f"without {guard}" for guard in before if guard not in after]
    new = [f"with {guard}" for guard in after if guard not in before]
    return "; ".join([*gone, *new][:6]) or "their order"


def _ambiguous(evidence: Evidence, places: Sequence[_Place]) -> EvidenceStatus:
    listed = tuple(f"{one.path}:{one.lines[0]}" for one in places)
    message = f"it stands at {', '.join(listed[:6])}: say which is meant"
    return EvidenceStatus("AMBIGUOUS", evidence, message=message, places=listed)


def _places(
    evidence: Evidence, pin: Pin, file: SourceFile, bundle: Definitions
) -> Iterator[_Place]:
    """Yield the places of a file whose tokens are the pinned ones and which still are evidence."""
    for lines in _windows(file, pin, evidence):
        moved = replace(
            evidence, commit=bundle.snapshot.info.commit, path=file.path, lines=lines, pin=None,
            guard="", symbol="" if evidence.kind == "emission" else evidence.symbol,
        )  # fmt: skip
        item = read_item(moved, bundle, ())
        if not item.located or item.findings:
            continue
        taken = pinned(item)
        if taken.pin is not None:
            kept = replace(taken, guard=evidence.guard, symbol=evidence.symbol)
            yield _Place(file.path, lines, kept, taken.pin)


def _windows(file: SourceFile, pin: Pin, evidence: Evidence) -> Iterator[tuple[int, int]]:
    """Yield the runs of lines whose tokens, comments dropped, have the pinned digest."""
    python = is_python(file.path)
    visible = [
        (number, found)
        for number, text in enumerate(file.lines(1, file.line_count()), 1)
        if (found := line_tokens(text, python=python))
    ]
    span = min(evidence.lines[1] - evidence.lines[0] + 1, _MAX_WINDOW)
    opening = tokens(evidence.snippet, python=python, comments=False)[:1]
    for start, (number, found) in enumerate(visible):
        if opening and found[:1] != opening:
            continue
        held: list[str] = []
        for end, more in visible[start : start + span]:
            held.extend(more)
            if digest_of(held) == pin.snippet_sha256:
                yield number, end
                break


def _changed(
    evidence: Evidence, pin: Pin, file: SourceFile, bundle: Definitions
) -> EvidenceStatus | None:
    """Say when the function still holds something of the same name, but written otherwise."""
    if evidence.kind in ("definition", "template"):
        line = _defined_line(pin, file, bundle)
        message = "it is still defined here, but its head is written otherwise"
    else:
        line = _similar_line(evidence, pin, file, bundle)
        message = "the function holds a similar call, written otherwise"
    if not line:
        return None
    found = replace(
        evidence, commit=bundle.snapshot.info.commit, lines=(line, line), pin=None, snippet=""
    )
    return EvidenceStatus("CHANGED", evidence, found, message)


def _defined_line(pin: Pin, file: SourceFile, bundle: Definitions) -> int:
    if is_python(file.path):
        for kernel in bundle.kernels(file):
            if kernel.function.qualname == pin.qualname:
                return kernel.line
        return 0
    for head in native_file(file.text).heads:
        if head.qualified == pin.qualname and head.body:
            return head.line
    return 0


def _similar_line(evidence: Evidence, pin: Pin, file: SourceFile, bundle: Definitions) -> int:
    """Give the line of a call in the pinned function with the same callee and the same subject."""
    if not is_python(file.path) or not evidence.snippet:
        return 0
    wanted = _calls(evidence.snippet)
    for symbol, callee in wanted:
        for site in sites_named(file, bundle.trees, symbol):
            if site.qualname == pin.qualname and site.callee == callee:
                return site.line
    return 0


def _calls(snippet: str) -> tuple[tuple[str, str], ...]:
    """Give (name, dotted callee) of the calls in a quoted text."""
    found = re.findall(r"([A-Za-z_][\w.]*)\s*(?:\[[^\]]*\])?\s*\(", snippet)
    return tuple((callee.rpartition(".")[2], callee) for callee in found)


def _elsewhere(evidence: Evidence, pin: Pin, bundle: Definitions) -> Iterator[_Place]:
    """Yield the places of other runtime files that hold the pinned tokens."""
    word = _telling_word(evidence)
    if not word:
        return
    count = 0
    for file in bundle.snapshot.holding(word.encode("utf-8", "replace"), "python", "native"):
        if file.path == evidence.path or is_python(file.path) != is_python(evidence.path):
            continue
        name = _last(pin.qualname)
        if not is_runtime(file.path) or (name and name.encode() not in file.text):
            continue
        count += 1
        if count > _MAX_FILES:
            return
        yield from _places(evidence, pin, file, bundle)


def _telling_word(evidence: Evidence) -> str:
    python = is_python(evidence.path)
    words = [
        one
        for one in tokens(evidence.snippet, python=python, comments=False)
        if one.replace("_", "").isalnum() and len(one) >= _MIN_WORD
    ]
    name = _last(evidence.pin.qualname) if evidence.pin is not None else ""
    return max([*words, name], key=len, default="")


def _last(qualname: str) -> str:
    return qualname.rpartition("::")[2].rpartition(".")[2]


def _table(evidence: Evidence, pin: Pin, bundle: Definitions) -> EvidenceStatus:
    found = list(_rows(evidence, pin, bundle))
    here = [one for one in found if one.path == evidence.path]
    if here:
        taken = next((one for one in here if _same_text(one, pin)), here[0])
        if not _same_text(taken, pin):
            return EvidenceStatus("CHANGED", evidence, taken, "the row of the symbol changed")
        status: Status = "SAME" if taken.lines == evidence.lines else "MOVED"
        return EvidenceStatus(status, evidence, taken)
    arch = table_arch(evidence.path)
    other = [one for one in found if table_arch(one.path) == arch]
    if len(other) == 1:
        message = f"its row is in {other[0].path} now"
        return EvidenceStatus("RELOCATED", evidence, other[0], message)
    if other:
        listed = tuple(f"{one.path}:{one.lines[0]}" for one in other)
        message = "several tables name it"
        return EvidenceStatus("AMBIGUOUS", evidence, message=message, places=listed)
    return EvidenceStatus("STALE", evidence, message="no table names the symbol any more")


def _rows(evidence: Evidence, pin: Pin, bundle: Definitions) -> Iterator[Evidence]:
    """Yield the rows of the pinned symbol in any table, pinned at their new place."""
    symbol = pin.qualname.encode("utf-8", "replace")
    for path, file in bundle.tables().items():
        table = table_rows(file.text) if symbol in file.text else None
        for row in table.rows if table is not None else ():
            if row.symbol == pin.qualname:
                moved = replace(
                    evidence, commit=bundle.snapshot.info.commit, path=path,
                    lines=(row.line, row.line), pin=None, snippet="",
                )  # fmt: skip
                yield pinned(read_item(moved, bundle, ()))


def _same_text(taken: Evidence, pin: Pin) -> bool:
    return taken.pin is not None and taken.pin.snippet_sha256 == pin.snippet_sha256


def _binary(evidence: Evidence, pin: Pin, bundle: Definitions) -> EvidenceStatus:
    content = bundle.snapshot.binary(evidence.path)
    if isinstance(content, Finding):
        return EvidenceStatus("STALE", evidence, message=content.message)
    if pin.qualname not in (elf_symbols(content) or ()):
        return EvidenceStatus("STALE", evidence, message="the symbol is no longer in the file")
    item = Item(
        replace(evidence, commit=bundle.snapshot.info.commit), bundle, binary_symbol=pin.qualname
    )
    return EvidenceStatus("CHANGED", evidence, pinned(item), "the code object was built again")
