"""Is a function used at all by code that runs in a server?

By name, generously: any mention outside its own definition counts, and so does being exported
whole (`from module import *`), being entered in a table by its decorator (`@register_...`), a
dunder name, and being public in a package that another checkout imports: a library is there to be
called, also by what is in no checkout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.source.definitions import Definitions
from agent.source.parse import text_of
from agent.source.python.modules import Modules
from agent.source.python.sites import Region
from agent.source.python.text import py_text
from agent.source.snapshot import SourceFile, whole_word

_REGISTERS = re.compile(r"^@\s*(?:\w+\.)*register_(?!custom_op|op\b|fake)\w+\(")


def is_used(bundles: Sequence[Definitions], file: SourceFile, qualname: str) -> bool:
    """Tell whether any runtime code mentions the function, or its outermost named owner."""
    parts = [part for part in qualname.split(".") if part]
    if not parts:
        return True
    name = parts[-1]
    if name.startswith("__") and len(parts) > 1:
        name = parts[-2]
    if len(parts) > 1 and not name.startswith("_") and name[:1].islower():
        return _mentioned(bundles, parts[0], file) or _mentioned(bundles, name, file)
    return _mentioned(bundles, name, file) or _exported(bundles, file)


def is_offered(modules: Modules, region: Region, file: SourceFile) -> bool:
    """Tell whether a function is there to be called: registered, or public in a library."""
    return _registered(region) or _public(modules, file, region.qualname)


def _registered(region: Region) -> bool:
    decorated = (node for node in region.sites[0].chain if node.type == "decorated_definition")
    return any(
        _REGISTERS.match(text_of(one))
        for node in decorated
        for one in node.children
        if one.type == "decorator"
    )


def _public(modules: Modules, file: SourceFile, qualname: str) -> bool:
    """Tell whether a function is public in a package that another checkout imports."""
    parts = qualname.split(".")
    if any(part.startswith("_") for part in parts):
        return False
    package = modules.package_of((file.repo, file.path))
    return bool(package) and _imported(modules, file.repo, package)


def _imported(modules: Modules, repo: str, package: str) -> bool:
    statement = re.compile(
        rb"^[ \t]*(?:from|import)[ \t]+" + package.encode() + rb"\b", re.MULTILINE
    )
    return any(
        statement.search(file.text)
        for snapshot in modules.snapshots
        if snapshot.repo != repo
        for file in snapshot.holding(package.encode(), "python")
    )


def _mentioned(bundles: Sequence[Definitions], name: str, own: SourceFile) -> bool:
    for bundle in bundles:
        for file in bundle.snapshot.holding(name.encode(), "python"):
            for one in py_text(file.text).mentions(whole_word(name)):
                inside = file.path == own.path and name in one.functions
                if one.how not in ("definition", "prose") and not inside:
                    return True
    return False


def _exported(bundles: Sequence[Definitions], file: SourceFile) -> bool:
    """Tell whether the file's names are exported whole: `from .module import *`."""
    stem = file.path.rpartition("/")[2].removesuffix(".py")
    star = re.compile(rb"from\s+[\w.]*\b" + re.escape(stem.encode()) + rb"\s+import\s+\*")
    for bundle in bundles:
        if bundle.snapshot.repo == file.repo:
            for other in bundle.snapshot.holding(b"import *", "python"):
                if star.search(other.text):
                    return True
    return False
