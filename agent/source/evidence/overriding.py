"""Is a method replaced in every class that is ever made of its own?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent.source.definitions import Definitions
from agent.source.python.text import py_text
from agent.source.snapshot import SourceFile, whole_word

_HEAD = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*\([^()]*$", re.MULTILINE)


def is_overridden(bundles: Sequence[Definitions], qualname: str) -> bool:
    """Tell whether nothing runs a method: its class is only a base, and all that derive replace it.

    Any other mention of the class, and a call of `super()` in what replaces it, counts as use.
    """
    *owners, method = qualname.split(".")
    if len(owners) != 1 or not owners[0][:1].isupper():
        return False
    derived = False
    for file, head in _derived(bundles, owners[0]):
        if head is None or not _replaces(file, head, method):
            return False
        derived = True
    return derived


def _derived(
    bundles: Sequence[Definitions], base: str
) -> Iterator[tuple[SourceFile, tuple[int, int] | None]]:
    """Yield the classes that derive from a class, as spans; None for any other use of it."""
    for bundle in bundles:
        for file in bundle.snapshot.holding(base.encode(), "python"):
            parsed = py_text(file.text)
            for one in parsed.mentions(whole_word(base)):
                if one.how in ("definition", "import", "prose"):
                    continue
                line = file.text.rfind(b"\n", 0, one.offset) + 1
                found = _HEAD.match(file.text[line : one.offset])
                name = found.group(1).decode() if found is not None else ""
                spans = ((each.start, each.end) for each in parsed.definitions if each.name == name)
                yield file, next((span for span in spans if span[0] <= one.offset < span[1]), None)


def _replaces(file: SourceFile, span: tuple[int, int], method: str) -> bool:
    body = file.text[slice(*span)]
    head = rb"^[ \t]+(?:async[ \t]+)?def[ \t]+" + re.escape(method.encode()) + rb"\b"
    return re.search(head, body, re.MULTILINE) is not None and b"super()" not in body
