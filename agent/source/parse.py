"""Parse source text with tree-sitter, once per blob; bounded in size, depth and time.

A file that cannot be parsed within the limits gives None, never a crash. Walks are iterative.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from itertools import accumulate
from typing import Literal, TypeVar, cast

from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from agent.source.snapshot import SourceFile

Grammar = Literal["python", "cuda"]
Kept = TypeVar("Kept")
_MAX_KEPT = 4_096
MAX_DEPTH = 400
"""Deeper nesting is hostile: hand-written code stays under 60."""
_MAX_TREES = 192
_MAX_TREE_BYTES = 3 << 20
"""Source bytes behind kept trees; a tree takes about twenty times its source."""
_TIMEOUT_CALLS = 20_000
"""Progress calls before a parse is given up; 0.5 MB of CUDA takes a few hundred."""
_CHUNK = 1 << 14
_LARGE = 300_000
_SMALL = 20_000
_MAX_RATIO = 80
_MAX_LINE = 100_000
_MAX_OPEN = 1_000
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"([{)]}")))
_STEPS = bytes.maketrans(b"([{)]}", b"\x02\x02\x02\x00\x00\x00")


class TreeCache:
    """Trees by (grammar, blob sha), least recently used first out."""

    def __init__(self) -> None:
        self._trees: OrderedDict[tuple[Grammar, str], tuple[Tree | None, int]] = OrderedDict()
        self._bytes = 0
        self._kept: dict[tuple[str, str], object] = {}

    def __len__(self) -> int:
        """Count the files whose trees are kept."""
        return len(self._trees)

    def tree(self, file: SourceFile, grammar: Grammar) -> Tree | None:
        """Parse a file, or give the tree kept for its blob; None when it is past the limits."""
        key = (grammar, file.sha)
        kept = self._trees.get(key)
        if kept is not None:
            self._trees.move_to_end(key)
            return kept[0]
        tree = parse(file.text, grammar) if is_plausible(file.text) else None
        self._trees[key] = (tree, len(file.text))
        self._bytes += len(file.text)
        while len(self._trees) > _MAX_TREES or (
            self._bytes > _MAX_TREE_BYTES and len(self._trees) > 1
        ):
            _, (_, size) = self._trees.popitem(last=False)
            self._bytes -= size
        return tree

    def remembered(self, file: SourceFile, what: str, make: Callable[[Node], Kept]) -> Kept | None:
        """Give something read from a file's Python tree, kept by blob; None without a tree."""
        key = (what, file.sha)
        if key not in self._kept:
            tree = self.tree(file, "python")
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[key] = make(tree.root_node) if tree is not None else None
        return cast("Kept | None", self._kept[key])


def is_plausible(text: bytes) -> bool:
    """Tell whether a text can be hand-written: no endless line, nesting or repetition.

    Parsers and tree queries are quadratic in time or memory in such places, so they never see
    them. Hand-written code compresses to a tenth, never to a hundredth.
    """
    if len(text) > _SMALL and len(zlib.compress(text, 1)) * _MAX_RATIO < len(text):
        return False
    if max(map(len, text.split(b"\n")), default=0) > _MAX_LINE:
        return False
    steps = text.translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(step - 1 for step in steps), default=0) <= _MAX_OPEN


def parse(text: bytes, grammar: Grammar) -> Tree | None:
    """Parse text; None when it takes too long.

    A large text is parsed once under a limit first: only the reading form can be interrupted, and
    only the other form keeps the text at hand for the nodes.
    """
    if len(text) > _LARGE and not _ends_in_time(text, grammar):
        return None
    try:
        return _parser(grammar).parse(text)
    except ValueError:
        return None


def _ends_in_time(text: bytes, grammar: Grammar) -> bool:
    calls = 0

    def enough(_offset: int, _has_error: bool) -> bool:  # noqa: FBT001 - tree-sitter's signature
        nonlocal calls
        calls += 1
        return calls > _TIMEOUT_CALLS

    def chunk(offset: int, _point: object) -> bytes:
        return text[offset : offset + _CHUNK]

    try:
        parsed: Tree | None = _parser(grammar).parse(chunk, progress_callback=enough)
    except ValueError:
        return False
    return parsed is not None


def grammar_version(grammar: Grammar) -> str:
    """Name a grammar and the version of its wheel, for a pin."""
    return f"{grammar} {_wheel_version(grammar)}"


def captures(grammar: Grammar, query: str, node: Node) -> dict[str, list[Node]]:
    """Run a compiled query under a node; nodes per capture name, in source order."""
    cursor = QueryCursor(_query(grammar, query))
    cursor.set_max_start_depth(MAX_DEPTH)
    found = cursor.captures(node)
    return {
        name: sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte))
        for name, nodes in found.items()
    }


def ancestors(root: Node, start: int, end: int) -> list[Node]:
    """Give the chain of nodes around a byte range, the root first, the smallest last."""
    chain = [root]
    target = root.descendant_for_byte_range(start, end)
    node: Node | None = root
    while node is not None and target is not None and node != target and len(chain) < MAX_DEPTH:
        node = node.child_with_descendant(target)
        if node is not None:
            chain.append(node)
    return chain


def text_of(node: Node) -> str:
    """Give a node's text."""
    return (node.text or b"").decode("utf-8", "replace")


def first_line(node: Node) -> int:
    """Give the 1-based line a node begins on."""
    return int(node.start_point.row) + 1


def last_line(node: Node) -> int:
    """Give the 1-based line a node ends on."""
    return int(node.end_point.row) + 1


@cache
def _wheel_version(grammar: Grammar) -> str:
    return version(f"tree-sitter-{grammar}")


@cache
def _language(grammar: Grammar) -> Language:
    if grammar == "python":
        import tree_sitter_python

        return Language(tree_sitter_python.language())
    import tree_sitter_cuda

    return Language(tree_sitter_cuda.language())


@cache
def _parser(grammar: Grammar) -> Parser:
    return Parser(_language(grammar))


@cache
def _query(grammar: Grammar, query: str) -> Query:
    return Query(_language(grammar), query)
