"""Is a launch behind a switch that is off and that nothing sets?

A switch is a module-level name whose only assignment is a constant; a mention of it as an
attribute that is assigned, or a `global` statement, counts as setting it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agent.source.definitions import Definitions
from agent.source.python.guards import all_guards
from agent.source.python.sites import Site
from agent.source.snapshot import SourceFile

_SWITCH = re.compile(r"([+-])([A-Za-z_]\w*)")


def never_set(bundles: Sequence[Definitions], file: SourceFile, site: Site) -> str:
    """Name the switch that keeps a site from running for ever; "" when there is none."""
    for guard in all_guards(site.chain):
        found = _SWITCH.fullmatch(guard)
        if found is None:
            continue
        value = _constant(file.text, found.group(2))
        off = value is not None and value != (found.group(1) == "+")
        if off and not _set_elsewhere(bundles, found.group(2)):
            return found.group(2)
    return ""


@lru_cache(maxsize=4_096)
def _constant(text: bytes, name: str) -> bool | None:
    """Give the truth of a module's constant; None for what is assigned twice or computed."""
    word = re.escape(name.encode("utf-8", "replace"))
    bound = rb"(?<![\w.])" + word + rb"(?:[ \t]*(?::[^=\n(]+)?=(?!=)|[ \t]*:=|[ \t]*,[^=\n]*=(?!=))"
    given = rb"|\bas[ \t]+" + word + rb"\b|\bimport\b[^\n]*\b" + word + rb"\b|\bglobal\b[^\n]*\b"
    given += word + rb"\b|^[ \t]*" + word + rb",[ \t]*$"
    found = re.findall(bound + given, text, re.MULTILINE)
    plain = re.search(
        rb"^" + word + rb"[ \t]*(?::[^=\n]+)?=[ \t]*(True|False|None|0|1)[ \t]*(?:#[^\n]*)?\r?$",
        text, re.MULTILINE,
    )  # fmt: skip
    if plain is None or len(found) != 1:
        return None
    return plain.group(1) in (b"True", b"1")


def _set_elsewhere(bundles: Sequence[Definitions], name: str) -> bool:
    assigned = re.compile(
        rb"\." + re.escape(name.encode()) + rb"[ \t]*=(?!=)|[\"']" + name.encode() + rb"[\"']"
    )
    return any(
        assigned.search(other.text)
        for bundle in bundles
        for other in bundle.snapshot.holding(name.encode(), "python")
    )
