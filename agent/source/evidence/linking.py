"""Does an emission lead to the kernel the other evidence defines?

Direct launches are resolved through the imports and aliases of their file; anything further goes
by names, see `agent.source.reach`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent.source.definitions import Definitions
from agent.source.evidence.items import Item
from agent.source.native.sites import launches_of
from agent.source.native.structure import native_file
from agent.source.paths import is_python
from agent.source.python.sites import Site, sites_named
from agent.source.python.text import py_text
from agent.source.python.tree import imports
from agent.source.reach import Link, Reach, Seed
from agent.source.snapshot import SourceFile, whole_word

_MAX_REEXPORTS = 4


class Links:
    """Connects emissions to one definition item over all checkouts at their pinned commits."""

    def __init__(
        self, bundles: Sequence[Definitions], reaches: dict[tuple[object, ...], Reach]
    ) -> None:
        self._bundles = tuple(bundles)
        self._reaches = reaches

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
        if site.symbol != name and name not in self._aliases(file, site):
            return False
        return self._resolves(file, site.symbol if site.symbol == name else name, item)

    def reached(self, site: Site, file: SourceFile, item: Item) -> tuple[str, ...]:
        """Give the chain of names from a site to what an item defines; empty when there is none."""
        if site.kind == "assignment":
            return ()
        reach = self._reach(item)
        symbol = self._imported_as(file, site.symbol)
        own = item.kernel.function.name if item.kernel is not None else ""
        for name in dict.fromkeys((*self._aliases(file, site), symbol, site.symbol)):
            if (
                name not in ("", own)
                and reach.reaches(name)
                and self._package_fits(file, site, reach, name)
            ):
                return reach.chain(name)
        return ()

    def native_reached(self, symbols: Sequence[str], functions: Sequence[str], item: Item) -> bool:
        """Tell whether native launches lead to what an item defines."""
        if item.head is not None:
            return item.head.name in symbols
        if item.row is not None:
            reach = self._reach(item)
            return any(reach.reaches(name) for name in functions)
        return item.instantiated and bool(functions)

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
            self._reaches[key] = Reach([bundle.snapshot for bundle in self._bundles], seeds)
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
                (one.alias and re.search(rf"\b{re.escape(one.alias)}\s*\[".encode(), file.text))
                or _in_table(file.text, one.offset)
            ):
                return True
        return item.kernel.origin == "flydsl"

    def _aliases(self, file: SourceFile, site: Site) -> tuple[str, ...]:
        """Give what the variable a site calls may stand for: `k = a if c else b; k[grid](...)`."""
        found: list[str] = []
        head = site.callee.rpartition(".")[2] or site.callee
        pattern = re.compile(
            rb"(?m)^[ \t]*(?:self\.)?"
            + re.escape(head.encode())
            + rb"[ \t]*(?::[^=\n]+)?=[ \t]*([^=\n][^\n]*(?:\n[^\n]*){0,3})"
        )
        for match in pattern.finditer(file.text):
            value = match.group(1)
            if b"(" in value.split(b"\n")[0] and not re.search(
                rb"partial|jit|autotune|\bif\b|^\($", value.split(b"\n")[0]
            ):
                continue
            found += [word.decode() for word in re.findall(rb"[A-Za-z_]\w{3,}", value)]
        return tuple(dict.fromkeys(found))[:24]

    def _resolves(self, file: SourceFile, name: str, item: Item) -> bool:
        """Tell whether a name in a file can mean an item's function: defined there or imported."""
        target = item.file
        if target is None or item.kernel is None:
            return False
        if file.path == target.path and file.repo == target.repo:
            return True
        bundle = self._bundle(file.repo)
        if bundle is not None and any(one.function.name == name for one in bundle.kernels(file)):
            return False
        module = self._module_of(file, name)
        if module is None:
            return True
        return self._module_fits(module, target, name)

    def _module_fits(self, module: str, target: SourceFile, name: str) -> bool:
        parts = [part for part in module.split(".") if part]
        if not parts:
            return True
        stem = target.path.rpartition(".")[0]
        if f"/{stem}".endswith("/" + "/".join(parts)):
            return True
        named = self._module_file(module)
        if named is None:
            return parts[0] in target.path.split("/") or module.startswith(".")
        bundle = self._bundle(named.repo)
        if bundle is None:
            return True
        return not any(one.function.name == name for one in bundle.kernels(named))

    def _module_file(self, module: str) -> SourceFile | None:
        ending = "/" + module.lstrip(".").replace(".", "/") + ".py"
        for bundle in self._bundles:
            for path in bundle.snapshot.tree:
                if f"/{path}".endswith(ending):
                    return bundle.snapshot.source(path)
        return None

    def _module_of(self, file: SourceFile, name: str) -> str | None:
        return next(
            (module for module, original in self._imports(file).values() if original == name), None
        )

    def _imported_as(self, file: SourceFile, name: str) -> str:
        return self._imports(file).get(name, ("", name))[1] or name

    def _imports(self, file: SourceFile) -> dict[str, tuple[str, str]]:
        bundle = self._bundle(file.repo)
        found = bundle.trees.remembered(file, "imports", imports) if bundle is not None else None
        return found or {}

    def _package_fits(self, file: SourceFile, site: Site, reach: Reach, name: str) -> bool:
        """Refuse a callee imported from a package that does not lie on the way to the kernel."""
        head = site.callee.partition(".")[0]
        module, _ = self._imports(file).get(head, ("", ""))
        top = self._origin_package(module, head)
        if not top or top in ("torch", "functools"):
            return True
        links = reach.links.get(name, [])
        return any(
            top in (link.repo, *link.path.split("/")) or not link.path for link in links
        ) or any(top in path.split("/") for path in _definers(self._bundles, name))

    def _origin_package(self, module: str, name: str) -> str:
        """Follow re-exports of a name and give the top package it comes from; "" when unknown."""
        for _ in range(_MAX_REEXPORTS):
            if not module or module.startswith("."):
                return ""
            file = self._module_file(module)
            onward = self._imports(file).get(name) if file is not None else None
            if onward is None or not onward[0]:
                break
            module = onward[0]
        return module.partition(".")[0]

    def imports_from(self, file: SourceFile, name: str) -> str:
        """Give the top package a name of a file is imported from; "" when it is not imported."""
        module, _ = self._imports(file).get(name, ("", ""))
        return self._origin_package(module, name)

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


def _definers(bundles: Sequence[Definitions], name: str) -> Iterator[str]:
    for bundle in bundles:
        for file in bundle.snapshot.holding(f"def {name}(".encode(), "python"):
            yield file.path


def _seeds(item: Item) -> Iterator[Seed]:
    repo = item.evidence.repo
    if item.kernel is not None:
        names = item.kernel.function.qualname.split(".")
        yield Seed(item.kernel.function.name, native=False, repo=repo)
        for name in names[:-1]:
            yield Seed(name, native=False, repo=repo)
    elif item.head is not None:
        yield Seed(item.head.name, native=True, repo=repo)
    elif item.row is not None:
        stem = item.evidence.path.rpartition("/")[2].rpartition(".")[0]
        yield Seed(f"cfg_{stem}", native=True, repo=repo)
        yield Seed(item.row.symbol, native=True, repo=repo)
    elif item.instantiated and item.file is not None:
        for name in instantiation_owners(item):
            yield Seed(name, native=True, repo=repo)


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
        if launches_of(file, name):
            return True
        parsed = native_file(file.text)
        heads = {head.offset for head in parsed.heads}
        return any(
            match.start() not in heads and parsed.enclosing(match.start())[0] not in ("", name)
            for match in whole_word(name).finditer(parsed.code)
        )
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


def _in_table(text: bytes, offset: int) -> bool:
    """Tell whether a reference is a dictionary value, a list entry or `partial`'s argument."""
    before = text[max(offset - 80, 0) : offset].rstrip()
    return before.endswith((b":", b"[", b"partial(", b"return")) or bool(
        re.search(rb"[\[,]\s*$", before) and b"(" not in before[-40:]
    )


def _stem(path: str) -> bytes:
    return path.rpartition("/")[2].rpartition(".")[0].encode("utf-8", "surrogateescape")
