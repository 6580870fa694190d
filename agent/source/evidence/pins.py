"""Take the pin of an item: everything `verify` needs to find and compare the place again."""

from __future__ import annotations

import hashlib
import re
import textwrap
from dataclasses import replace

from agent.core.proposals import Evidence, ParseQuality, Pin
from agent.source.checkout import TreeEntry
from agent.source.evidence.items import Item
from agent.source.evidence.snippets import snippet_digest
from agent.source.parse import Grammar, grammar_version
from agent.source.paths import is_python

_MAX_QUOTED = 2_000
_PLAIN = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffd]*")


def pinned(item: Item) -> Evidence:
    """Give the evidence with its pin; as it was when nothing was found at its place."""
    bundle = item.definitions
    if bundle is None or not item.located:
        return replace(item.evidence, pin=None)
    entry = bundle.snapshot.entry(item.evidence.path)
    if not isinstance(entry, TreeEntry):
        return replace(item.evidence, pin=None)
    node, qualname, guards, parse = _place(item)
    return replace(
        item.evidence,
        snippet=item.evidence.snippet or _quoted(item),
        pin=Pin(
            bundle.snapshot.info.commit,
            entry.mode,
            entry.sha,
            node,
            qualname,
            guards,
            _digest(item),
            _grammar(item),
            parse,
        ),
    )


def _place(item: Item) -> tuple[str, str, tuple[str, ...], ParseQuality]:  # noqa: PLR0911 - one per kind
    if item.region is not None and item.region.sites:
        site = item.region.sites[0]
        return site.node_type, site.qualname, site.guards, "clean"
    if item.native_sites:
        native = item.native_sites[0]
        return native.node, native.function, (), "lexical"
    if item.head is not None and item.definition is not None:
        return "function_definition", item.head.qualified, (), item.definition.parse
    if item.kernel is not None:
        return "function_definition", item.kernel.function.qualname, (), "clean"
    if item.row is not None:
        return "row", item.row.symbol, (), "lexical"
    if item.binary_symbol:
        return "symbol", item.binary_symbol, (), "lexical"
    return "instantiation", "", (), "lexical"


def _quoted(item: Item) -> str:
    """Quote the cited lines, so that a reader of the rule sees them without a checkout."""
    if item.file is None:
        return ""
    text = textwrap.dedent("\n".join(item.file.lines(*item.evidence.lines))).strip("\n")
    return text if len(text) <= _MAX_QUOTED and _PLAIN.fullmatch(text) else ""


def _digest(item: Item) -> str:
    if item.file is None:
        return hashlib.sha256(item.binary_symbol.encode()).hexdigest()
    text = "\n".join(item.file.lines(*item.evidence.lines))
    return snippet_digest(text, python=is_python(item.file.path))


def _grammar(item: Item) -> str:
    if item.file is None:
        return "elf"
    if item.row is not None:
        return "csv"
    grammar: Grammar = "python" if is_python(item.file.path) else "cuda"
    return grammar_version(grammar)
