"""Kernels that a Python file defines, and the names a profiler would print for them.

Knows Triton and Gluon (plain, `repr=`, wrappers around the JIT) and FlyDSL (`@flyc.kernel`, names
assigned through `__name__`). A name rule accepts a whole canonical name, never a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from agent.core.source import KernelOrigin
from agent.source.parse import captures, first_line, last_line, parse, text_of
from agent.source.python.naming import NameRule, rule_of_value
from agent.source.python.tree import FunctionDef, function_at, functions, imports

_ASSIGNMENTS = "(assignment left: (_) @left right: (_) @right) @assignment"
_AUGMENTED = "(augmented_assignment left: (_) @left right: (_) @right) @augmented"
_JIT = re.compile(r"^(?P<head>[\w.]*?)(?P<last>\w+)(?P<call>\(.*\))?$", re.DOTALL)
_FLYDSL = frozenset({"flyc", "flir", "flydsl", "fly"})
_NOT_TRITON = frozenset(
    {"torch", "numba", "cute", "cutlass", "jax", "tilelang", "flyc", "flir", "nb"}
)


@dataclass(frozen=True, slots=True)
class PyKernel:
    """One kernel definition of a Python file.

    `line` is what a reader is shown: the `def`, or where a computed name is built. `built` are the
    lines where `repr=` was made, (0, 0) where it was not.
    """

    function: FunctionDef
    origin: KernelOrigin
    rules: tuple[NameRule, ...]
    line: int
    last: int
    built: tuple[int, int] = (0, 0)

    def accepts(self, name: str) -> bool:
        """Tell whether a canonical kernel name is one this definition makes."""
        return any(rule.accepts(name) for rule in self.rules)

    @property
    def shown(self) -> str:
        """Give the name to show: the base the profiler would print, without suffixes."""
        return self.rules[0].base if self.rules else self.function.name


Wrappers = Callable[[str], bool]
"""Tells whether a decorator name, not known to be a JIT, wraps one."""


def kernels_in(root: Node, wraps_jit: Wrappers | None = None) -> tuple[PyKernel, ...]:
    """List the kernel definitions of a file, in source order."""
    found = functions(root)
    values = _Values(root)
    known = imports(root)
    kernels = []
    for function in found:
        origin = _origin(function, known, wraps_jit)
        if origin == "flydsl":
            kernels.append(_flydsl(function, values))
        elif origin is not None:
            kernels.append(_triton(function, origin, values))
    kernels.extend(_renamed(found, values))
    return tuple(kernels)


class _Values:
    """Assignments of a file by the text of their left side, each with its line range."""

    def __init__(self, root: Node) -> None:
        self.by_name: dict[str, list[tuple[Node, Node]]] = {}
        self.added: dict[str, list[Node]] = {}
        for node in captures("python", _ASSIGNMENTS, root).get("assignment", []):
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is not None and right is not None:
                self.by_name.setdefault(text_of(left), []).append((node, right))
        for node in captures("python", _AUGMENTED, root).get("augmented", []):
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is not None and right is not None:
                self.added.setdefault(text_of(left), []).append(right)

    def rule(self, name: str, before: int) -> tuple[NameRule, Node] | None:
        """Give the name rule of the last assignment of `name` that starts before an offset."""
        for node, right in reversed(self.by_name.get(name, [])):
            if node.start_byte < before:
                extra = [one for one in self.added.get(name, []) if node.end_byte < one.start_byte]
                rule = rule_of_value(right, extra)
                return (rule, node) if rule is not None else None
        return None


def _origin(
    function: FunctionDef, known: dict[str, tuple[str, str]], wraps_jit: Wrappers | None
) -> KernelOrigin | None:
    for decorator in function.decorators:
        match = _JIT.match("".join(decorator.split()))
        if match is None:
            continue
        dotted = _resolved(match["head"] + match["last"], known)
        first, last = dotted.partition(".")[0], dotted.rpartition(".")[2]
        if last == "kernel" and _FLYDSL & set(dotted.split(".")):
            return "flydsl"
        if first in _NOT_TRITON or _NOT_TRITON & set(match["head"].split(".")):
            continue
        if last == "jit":
            plain: KernelOrigin = "triton-repr" if "repr=" in decorator else "triton"
            return "gluon" if "gluon" in dotted else plain
        if wraps_jit is not None and "jit" in last.lower() and wraps_jit(last):
            return "triton"
    return None


def _resolved(dotted: str, known: dict[str, tuple[str, str]]) -> str:
    """Write a decorator's name with the module its head was imported from."""
    head, dot, rest = dotted.partition(".")
    module, original = known.get(head, ("", ""))
    if not module:
        return dotted
    return f"{module}.{original}{dot}{rest}" if original else f"{module}{dot}{rest}"


def _triton(function: FunctionDef, origin: KernelOrigin, values: _Values) -> PyKernel:
    rules: tuple[NameRule, ...] = (NameRule(function.name),)
    stated = next((_repr_argument(one) for one in function.decorators if "repr" in one), "")
    if not stated:
        return PyKernel(function, origin, rules, function.line, function.line)
    rule, built = _repr_rule(stated, values, function)
    origin = "triton-repr" if origin == "triton" else origin
    return PyKernel(function, origin, (rule,), function.line, function.line, built)


def _repr_rule(
    stated: str, values: _Values, function: FunctionDef
) -> tuple[NameRule, tuple[int, int]]:
    """Read what `repr=` says, and where; what cannot be understood fits only the plain name."""
    known = values.rule(stated, function.start_byte)
    if known is not None:
        return known[0], (first_line(known[1]), last_line(known[1]))
    return _inline_rule(stated) or NameRule(function.name), (0, 0)


def _inline_rule(stated: str) -> NameRule | None:
    tree = parse(stated.encode("utf-8", "replace"), "python")
    if tree is None:
        return None
    expression = tree.root_node.named_child(0)
    value = expression.named_child(0) if expression is not None else None
    return rule_of_value(value, []) if value is not None else None


def _repr_argument(decorator: str) -> str:
    match = re.search(r"\brepr\s*=\s*(.+)\)\s*$", decorator, re.DOTALL)
    if match is None:
        return ""
    text = match.group(1).strip()
    name = re.match(r"^([A-Za-z_][\w.]*)\s*(?:,|$)", text)
    return name.group(1) if name else text


def _flydsl(function: FunctionDef, values: _Values) -> PyKernel:
    rules = [NameRule(function.name, numbered=True)]
    line, last = function.line, function.line
    for decorator in function.decorators:
        match = re.search(
            r"\bname\s*=\s*([A-Za-z_]\w*|[frbu]*[\"'].*?[\"'])\s*[,)]", decorator, re.DOTALL
        )
        if match is None:
            continue
        stated = match.group(1)
        known = values.rule(stated, function.start_byte)
        if known is not None:
            rules, line, last = [known[0]], first_line(known[1]), last_line(known[1])
        elif '"' in stated or "'" in stated:
            inline = _inline_rule(stated)
            rules = [inline] if inline is not None else rules
        else:
            rules = []
    return PyKernel(function, "flydsl", tuple(rules), line, last)


def _renamed(found: tuple[FunctionDef, ...], values: _Values) -> Iterator[PyKernel]:
    """Yield kernels whose name is assigned: `kernel._func.__name__ = NAME`."""
    for target, assigned in values.by_name.items():
        if not target.endswith(".__name__"):
            continue
        kernel = target.split(".", 1)[0]
        for node, right in assigned:
            rule, where = rule_of_value(right, []), node
            known = values.rule(text_of(right), node.start_byte)
            if known is not None:
                rule, where = known
            function = next((one for one in reversed(found) if one.name == kernel), None)
            owner = function_at(found, node.start_byte, node.end_byte)
            if rule is not None and (function or owner) and kernel != "_stub":
                made = function or owner
                assert made is not None  # noqa: S101 - one of the two is set
                yield PyKernel(made, "flydsl", (rule,), first_line(where), last_line(where))
