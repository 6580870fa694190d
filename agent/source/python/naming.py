"""How a Python expression builds a kernel name: a literal, an f-string, a `repr` factory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from agent.source.parse import text_of

MIN_LITERAL = 8
"""Literal characters a name template must have, or it matches too much to prove anything."""
_STRINGS = frozenset({"string", "concatenated_string"})
_HOLE = r"[A-Za-z0-9_.+-]*?"
_VALUE = r"[A-Za-z0-9.]+(?:_[A-Za-z0-9.]+)*?"


@dataclass(frozen=True)
class NameRule:
    """Which canonical names one definition can print.

    Attributes:
        base: the plain name, or the readable form of the template.
        keys: `repr=` suffix keys: the name is `base_KEY_value_KEY_value...`, keys in order. Reports
            cut the tail, so all but the first may be absent.
        name_key: the launch argument that may replace `base` at run time.
        chunks: literal chunks of an f-string, in order; empty for a plain name.
        tails: what may follow the chunks (added conditionally).
        numbered: FlyDSL appends `_<n>`.
    """

    base: str
    keys: tuple[str, ...] = ()
    name_key: str = ""
    chunks: tuple[str, ...] = ()
    tails: tuple[str, ...] = ()
    numbered: bool = False

    def accepts(self, name: str) -> bool:
        """Tell whether the whole name fits."""
        return self._pattern.fullmatch(name) is not None

    @property
    def literal_length(self) -> int:
        """Count the literal characters that a name must hold."""
        return sum(map(len, self.chunks)) if self.chunks else len(self.base)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        if self.chunks:
            if self.literal_length < MIN_LITERAL:
                return re.compile(r"(?!)")
            tails = "".join(f"(?:{tail})?" for tail in self.tails)
            return re.compile(_HOLE.join(map(re.escape, self.chunks)) + tails + r"(?:_\d+)?")
        suffix = ""
        if self.keys:
            first, *rest = (f"_{re.escape(key)}_{_VALUE}" for key in self.keys)
            suffix = first + "".join(f"(?:{one})?" for one in rest)
        return re.compile(re.escape(self.base) + suffix + (r"(?:_\d+)?" if self.numbered else ""))


def rule_of_value(value: Node, added: Sequence[Node]) -> NameRule | None:
    """Read a value that becomes a kernel name; None when nothing literal is in it.

    `added` are the right sides of later `NAME += ...`.
    """
    if value.type == "call":
        return _factory(value)
    if value.type == "parenthesized_expression" and value.named_child_count == 1:
        inner = value.named_child(0)
        return rule_of_value(inner, added) if inner is not None else None
    if value.type == "lambda":
        body = value.child_by_field_name("body")
        return rule_of_value(body, added) if body is not None else None
    if value.type not in _STRINGS:
        return None
    chunks = _chunks(value)
    tails = tuple(_tail(node) for node in added)
    if len(chunks) == 1 and not tails:
        return NameRule(chunks[0], numbered=True) if chunks[0] else None
    return NameRule("{}".join(chunks), chunks=tuple(chunks), tails=tails)


def _factory(call: Node) -> NameRule | None:
    """Read `make_kernel_repr("base", ["KEY", ...], name_key="K")`, and `"...".replace(a, b)`."""
    function, arguments = (
        call.child_by_field_name("function"),
        call.child_by_field_name("arguments"),
    )
    if function is None or arguments is None:
        return None
    if function.type == "attribute":
        target = function.child_by_field_name("object")
        if target is not None and target.type in (*_STRINGS, "parenthesized_expression"):
            return rule_of_value(target, [])
    base, name_key = "", ""
    keys: tuple[str, ...] = ()
    for argument in arguments.named_children:
        value = argument
        keyword = (
            argument.child_by_field_name("name") if argument.type == "keyword_argument" else None
        )
        if keyword is not None:
            value = argument.child_by_field_name("value") or argument
        named = text_of(keyword) if keyword is not None else ""
        if value.type in _STRINGS:
            if named == "name_key":
                name_key = _literal(value)
            elif not base:
                base = _literal(value)
        elif value.type in ("list", "tuple") and not keys:
            keys = tuple(_literal(one) for one in value.named_children if one.type in _STRINGS)
    return NameRule(base, keys=keys, name_key=name_key) if base else None


def _literal(node: Node) -> str:
    return "".join(_chunks(node))


def _chunks(node: Node) -> list[str]:
    """Give the literal pieces of a string, f-string or implicit concatenation, holes between."""
    pieces = [""]
    parts = node.named_children if node.type == "concatenated_string" else [node]
    for part in parts:
        for child in part.named_children:
            if child.type == "interpolation":
                pieces.append("")
            elif child.type in ("string_content", "escape_sequence", "escape_interpolation"):
                pieces[-1] += text_of(child)
    return pieces


def _tail(node: Node) -> str:
    """Give a pattern for what `+=` may add."""
    if node.type in _STRINGS:
        return _HOLE.join(map(re.escape, _chunks(node)))
    if node.type == "parenthesized_expression" and node.named_child_count:
        inner = node.named_child(0)
        return _tail(inner) if inner is not None else _HOLE
    if node.type == "conditional_expression" and node.named_child_count == 3:
        return "|".join(_tail(node.named_children[index]) for index in (0, 2))
    return _HOLE
