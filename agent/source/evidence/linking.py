"""Does an emission lead to the kernel the other evidence defines?

Direct launches are resolved through the imports and aliases of their file; anything further goes
by names, see `agent.source.reach`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent.source.definitions import Definitions
from agent.source.evidence.items import Item
from agent.source.evidence.overriding import is_overridden
from agent.source.evidence.reachable import is_offered, is_used
from agent.source.native.calls import pasted
from agent.source.native.sites import NativeSite, launches_of
from agent.source.native.structure import native_file
from agent.source.paths import is_python
from agent.source.python.aliases import assigned_names, held_by
from agent.source.python.meaning import Meanings
from agent.source.python.sites import Region, Site, binds_locally, sites_named
from agent.source.python.text import py_text
from agent.source.reach import Link, Reach, Seed, native_callers
from agent.source.snapshot import SourceFile, whole_word

_MAX_REACHES = 256
Called = tuple[str | None, str]
"""(what stands before the dot, the name): "" for a bare name, None for an expression's."""


class Links:
    """Connects emissions to one definition item over all checkouts at their pinned commits."""

    def __init__(
        self,
        bundles: Sequence[Definitions],
        reaches: dict[tuple[object, ...], Reach],
        meanings: Meanings | None = None,
    ) -> None:
        self._bundles = tuple(bundles)
        self._reaches = reaches
        self._meanings = meanings or Meanings([bundle.snapshot for bundle in bundles])

    def launched(self, item: Item) -> bool:
        """Tell whether runtime code launches what a definition item defines."""
        return next(self.launch_files(item), None) is not None

    def launch_files(self, item: Item) -> Iterator[SourceFile]:
        """Yield the runtime files that launch what a definition item defines."""
        if item.kernel is not None and item.file is not None:
            for bundle in self._bundles:
                for file in bundle.snapshot.holding(item.kernel.function.name.encode(), "python"):
                    if is_python(file.path) and self._launches(file, item):
                        yield file
        elif item.head is not None and item.file is not None:
            for bundle in self._bundles:
                if bundle.snapshot.repo != item.file.repo:
                    continue
                for file in bundle.snapshot.holding(item.head.name.encode(), "native", "python"):
                    if _mentions_launch(file, item.head.name):
                        yield file

    def direct(self, site: Site, file: SourceFile, item: Item) -> bool:
        """Tell whether a site is itself the launch of what an item defines."""
        if item.kernel is None or item.file is None:
            return False
        name = item.kernel.function.name
        if site.kind != "launch" and item.kernel.origin != "flydsl":
            return False
        if "." in item.kernel.function.qualname and file != item.file:
            return False
        return any(
            self._resolves(file, receiver, word, item)
            for receiver, word in self._called(file, site)
            if name in self._given_as(file, receiver, word)
        )

    def reached(self, site: Site, file: SourceFile, item: Item) -> tuple[str, ...]:
        """Give the chain of names from a site to what an item defines; empty when there is none."""
        if site.kind == "assignment":
            return ()
        reach = self._reach(item)
        own = item.kernel.function.name if item.kernel is not None else ""
        for receiver, word in self._called(file, site):
            once = word == site.symbol and not site.callee.endswith(")")
            for name in self._given_as(file, receiver, word):
                if name != own and reach.reaches(file, receiver, word, name, once=once):
                    return reach.chain(name)
        return ()

    def native_reached(self, file: SourceFile, sites: Sequence[NativeSite], item: Item) -> bool:
        """Tell whether native launches of a file lead to what an item defines."""
        functions = [site.function for site in sites]
        if item.head is not None:
            spelled = {item.head.name, *pasted(native_file(file.text), item.head.name)}
            return any(not spelled.isdisjoint(site.symbols) for site in sites)
        if item.row is not None:
            reach = self._reach(item)
            return any(reach.leads(name) for name in functions)
        return item.instantiated and bool(functions)

    def used(self, file: SourceFile, region: Region) -> bool:
        """Tell whether code that runs in a server uses the function around a region."""
        modules = self._meanings.modules
        if is_overridden(self._bundles, region.qualname):
            return False
        return is_used(self._bundles, file, region.qualname) or is_offered(modules, region, file)

    def wholly(self, item: Item) -> dict[str, list[Link]]:
        """Give every name that may lead to what an item defines, with where it was seen."""
        return self._reach(item).all()

    def walk(self, item: Item) -> Iterator[str]:
        """Give the names that may lead to what an item defines, nearest first, one by one."""
        return self._reach(item).walk()

    def _reach(self, item: Item) -> Reach:
        seeds = tuple(_seeds(item))
        key = (seeds, tuple(bundle.snapshot.info for bundle in self._bundles))
        if key not in self._reaches:
            if len(self._reaches) >= _MAX_REACHES:
                self._reaches.clear()
            self._reaches[key] = Reach(self._meanings, seeds)
        return self._reaches[key]

    def _launches(self, file: SourceFile, item: Item) -> bool:
        """Tell by the text of a file whether it launches an item's function."""
        if item.kernel is None or item.file is None:
            return False
        name = item.kernel.function.name
        same = file.path == item.file.path and file.repo == item.file.repo
        parsed = py_text(file.text)
        mentions = [one for one in parsed.mentions(whole_word(name)) if one.how != "prose"]
        if (
            not same
            and not any(one.how == "import" for one in mentions)
            and (_stem(item.file.path) not in file.text)
        ):
            return False
        for one in mentions:
            if one.how == "launch" and _launch_follows(file.text, one.offset + len(name)):
                return True
            if one.how == "call" and item.kernel.origin == "flydsl":
                return True
            if one.how == "reference" and (
                _is_launched_as(file.text, one.alias or held_by(file.text, one.offset))
                or _in_table(file.text, one.offset)
            ):
                return True
        return item.kernel.origin == "flydsl"

    def _called(self, file: SourceFile, site: Site) -> list[Called]:
        """Give what a site calls and, for a variable, what that may stand for."""
        spelled = re.sub(r"\[.*?\]", "", site.callee)
        before = spelled[: spelled.rfind(site.symbol)] if site.symbol in spelled else ""
        pure = re.fullmatch(r"(?:[A-Za-z_]\w*\.)*", before)
        receiver = before.rstrip(".") if pure else None
        variable = site.callee.rpartition(".")[2] or site.callee
        aliases = assigned_names(file.text, variable)
        if receiver == "" and binds_locally(site):
            return list(aliases)
        return [(receiver, site.symbol), *aliases]

    def _given_as(self, file: SourceFile, receiver: str | None, name: str) -> tuple[str, ...]:
        """Give what a name may be called where it is defined: what an import renamed has a name."""
        bound = py_text(file.text).imports.names.get(name, ()) if receiver == "" else ()
        return tuple(dict.fromkeys(original or name for _, original in bound)) or (name,)

    def _resolves(self, file: SourceFile, receiver: str | None, name: str, item: Item) -> bool:
        """Tell whether a name in a file can mean an item's function: defined there or imported."""
        target = item.file
        if target is None:
            return False
        meaning = self._meanings.of(file, receiver, name)
        if meaning.how == "known":
            return (target.repo, target.path) in meaning.homes
        same = (file.repo, file.path) == (target.repo, target.path)
        return same or meaning.how in ("ours", "method")

    def imports_from(self, file: SourceFile, name: str) -> str:
        """Give the top package a name of a file is imported from; "" when it is not imported."""
        for module, original in py_text(file.text).imports.names.get(name, ()):
            for repo, path in self._meanings.modules.given(
                module, original or name, (file.repo, file.path)
            ).homes:
                return self._meanings.modules.package_of((repo, path))
            return "" if module.startswith(".") else module.partition(".")[0]
        return ""

    def _bundle(self, repo: str) -> Definitions | None:
        return next((one for one in self._bundles if one.snapshot.repo == repo), None)


def calls_leading_to(
    links: Links, bundles: Sequence[Definitions], item: Item
) -> Iterator[tuple[SourceFile, Site]]:
    """Yield Python sites that lead to an item, nearest first."""
    for name in links.walk(item):
        for bundle in bundles:
            for file in bundle.snapshot.holding(name.encode("utf-8", "replace"), "python"):
                if is_python(file.path):
                    for site in sites_named(file, bundle.trees, name):
                        yield file, site


def _seeds(item: Item) -> Iterator[Seed]:
    repo, path = item.evidence.repo, item.evidence.path
    if item.kernel is not None:
        names = item.kernel.function.qualname.split(".")
        yield Seed(item.kernel.function.name, native=False, repo=repo, path=path)
        for name in names[:-1]:
            yield Seed(name, native=False, repo=repo, path=path)
    elif item.head is not None:
        yield Seed(item.head.name, native=True, repo=repo, path=path)
    elif item.row is not None:
        stem = path.rpartition("/")[2].rpartition(".")[0]
        yield Seed(f"cfg_{stem}", native=True, repo=repo)
        yield Seed(item.row.symbol, native=True, repo=repo)
    elif item.instantiated and item.file is not None:
        for name in instantiation_owners(item):
            yield Seed(name, native=True, repo=repo, path=path)


def instantiation_owners(item: Item) -> tuple[str, ...]:
    """Name the functions that hold an instantiation."""
    if item.file is None:
        return ()
    parsed = native_file(item.file.text)
    offset, _ = item.file.span(*item.evidence.lines)
    visible = item.file.text[offset:]
    function, classes = parsed.enclosing(offset + len(visible) - len(visible.lstrip()))
    return tuple(name for name in (function, *classes) if name)


def _mentions_launch(file: SourceFile, name: str) -> bool:
    if not is_python(file.path):
        used = next(native_callers(file, name), None) is not None
        return used or bool(launches_of(file, name))
    return any(one.how == "string" for one in py_text(file.text).mentions(whole_word(name)))


def _launch_follows(text: bytes, end: int) -> bool:
    """Tell whether `[...]` and then `(` follow a name."""
    depth = 0
    for index in range(end, min(end + 600, len(text))):
        char = text[index]
        if char in b"([{":
            depth += 1
        elif char in b")]}":
            depth -= 1
            if not depth:
                return text[index + 1 : index + 60].lstrip(b" \t\r\n\\")[:1] == b"("
    return False


def _is_launched_as(text: bytes, variable: str) -> bool:
    return bool(variable) and re.search(rf"\b{re.escape(variable)}\s*\[".encode(), text) is not None


def _in_table(text: bytes, offset: int) -> bool:
    """Tell whether a reference is a dictionary value, a list entry or `partial`'s argument."""
    before = text[max(offset - 80, 0) : offset].rstrip()
    return before.endswith((b":", b"[", b"partial(", b"return")) or bool(
        re.search(rb"[\[,]\s*$", before) and b"(" not in before[-40:]
    )


def _stem(path: str) -> bytes:
    return path.rpartition("/")[2].rpartition(".")[0].encode("utf-8", "surrogateescape")
