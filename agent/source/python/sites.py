"""Emission sites of a Python file: the calls, launches and assignments on given lines.

A range is evidence only when it lies inside exactly one function and cuts no statement in two,
except that it may be the first lines of one statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

from tree_sitter import Node

from agent.core.proposals import Finding
from agent.source.parse import TreeCache, captures, first_line, last_line, text_of
from agent.source.python.guards import guard_chain
from agent.source.python.standins import is_fake
from agent.source.python.tree import (
    IMPORTS,
    callee_of,
    chain_to,
    is_launch,
    is_log_call,
    line_chain,
    nodes_within,
    qualname_of,
    statement_of,
)
from agent.source.snapshot import SourceFile, whole_word

MAX_LINES = 40
_MAX_SITES = 200
_MAX_CALLS = 500
SiteKind = Literal["call", "launch", "assignment", "compiled"]
_INTERESTING = frozenset({"call", "assignment", "augmented_assignment"})
_COMPILERS = re.compile(r"^(?:torch\.compile|torch_compile)\b|^compile\b.*\bbackend\b")
_DEVICE = re.compile(r"^@\s*(?:\w+\.)*(?:jit|prim_func|kernel)\b(?!\.)")
_COMPOUND = frozenset(
    {
        "if_statement", "for_statement", "while_statement", "try_statement", "with_statement",
        "match_statement", "function_definition", "class_definition", "decorated_definition",
    }
)  # fmt: skip
_TRANSPARENT = frozenset({"default", "apply", "delay", "__wrapped__", "out", "__call__"})


@dataclass(frozen=True, slots=True)
class Site:
    """One place that may cause a launch.

    `symbol` is the last telling component of what is called; `callee` the whole dotted text.
    """

    kind: SiteKind
    symbol: str
    callee: str
    lines: tuple[int, int]
    line: int
    text: str
    qualname: str
    guards: tuple[str, ...]
    node_type: str
    node: Node
    chain: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """What a range of lines of a Python file holds."""

    sites: tuple[Site, ...]
    qualname: str
    guards: tuple[str, ...]
    findings: tuple[Finding, ...]


def line_range_problem(file: SourceFile, lines: tuple[int, int], limit: int) -> Finding | None:
    """Say why a line range cannot be evidence; None when it can."""
    first, last = lines
    count = file.line_count()
    where = f"{file.path}:{first}"
    if first < 1 or last < first:
        return Finding(
            "E_LINE_RANGE", f"lines {first}..{last} are not a 1-based range", "error", where
        )
    if last > count:
        message = f"{file.path} has {count} lines at this commit; {first}..{last} goes past its end"
        return Finding("E_LINE_RANGE", message, "error", where)
    if last - first + 1 > limit:
        message = f"{last - first + 1} lines are too many to be one place; at most {limit}"
        return Finding("E_TOO_MANY_LINES", message, "error", where)
    return None


def region(file: SourceFile, trees: TreeCache, lines: tuple[int, int]) -> Region:
    """Read the sites on a range of lines of a Python file, or say why there are none."""
    tree = trees.tree(file, "python")
    if tree is None:
        return _nothing(_finding("E_PARSE", file, lines, "cannot be parsed within the limits"))
    root = tree.root_node
    noise = _noise(file, root, lines)
    if noise is not None:
        return _nothing(noise)
    problems = tuple(_cuts(file, root, lines))
    if problems:
        return _nothing(*problems)
    sites = tuple(islice(_sites(root, lines), _MAX_SITES))
    hosted = tuple(site for site in sites if not in_device_code(site))
    wrong = _refused(file, lines, sites, hosted)
    if wrong is not None:
        return _nothing(wrong)
    return Region(hosted, hosted[0].qualname, hosted[0].guards, ())


def _refused(
    file: SourceFile, lines: tuple[int, int], sites: Sequence[Site], hosted: Sequence[Site]
) -> Finding | None:
    """Say why the sites of a range are no emission."""
    if not sites:
        return _no_node(file, lines)
    if all(_in_fake(site) for site in sites):
        message = "is in a stand-in (shape inference, abstract or overload) that runs nothing"
        return _finding("E_IN_STUB", file, lines, message)
    if not hosted:
        message = "is inside a kernel: it runs on the device and launches nothing"
        return _finding("E_IN_KERNEL", file, lines, message)
    names = {site.qualname for site in hosted}
    if any(first_line(one) >= lines[0] for one in _owners(hosted[0])):
        message = "holds the head of its function; cite the call inside"
        return _finding("E_NOT_IN_FUNCTION", file, lines, message)
    if len(names) != 1 or not _within_function(hosted[0]):
        found = ", ".join(sorted(name or "module level" for name in names))
        message = f"is not inside exactly one function ({found})"
        return _finding("E_NOT_IN_FUNCTION", file, lines, message)
    return None


def sites_named(file: SourceFile, trees: TreeCache, name: str) -> Iterator[Site]:
    """Yield the calls and launches of `name` anywhere in a Python file."""
    if whole_word(name).search(file.text) is None:
        return
    tree = trees.tree(file, "python")
    if tree is None:
        return
    seen: set[int] = set()
    for match in islice(whole_word(name).finditer(file.text), _MAX_CALLS):
        node = tree.root_node.descendant_for_byte_range(match.start(), match.end())
        chain = chain_to(tree.root_node, node) if node is not None else []
        call = next((one for one in reversed(chain) if one.type == "call"), None)
        if call is None or call.id in seen or _symbol(callee_of(call)) != name:
            continue
        seen.add(call.id)
        yield _call_site(tree.root_node, call)


def launch_sites(file: SourceFile, trees: TreeCache) -> Iterator[Site]:
    """Yield every `kernel[grid](...)` of a Python file, whatever the kernel is called there."""
    tree = trees.tree(file, "python")
    if tree is None or b"](" not in file.text:
        return
    query = "(call function: (subscript)) @call"
    for call in captures("python", query, tree.root_node).get("call", [])[:_MAX_CALLS]:
        yield _call_site(tree.root_node, call)


def in_device_code(site: Site) -> bool:
    """Tell whether a site is inside a jit-decorated function: it runs in a kernel, not before."""
    return any(
        node.type == "decorated_definition"
        and any(_DEVICE.search(text_of(one)) for one in node.children if one.type == "decorator")
        for node in site.chain[:-1]
    )


def binds_locally(site: Site) -> bool:
    """Tell whether what a site calls is a parameter or a variable of a function around it."""
    name = site.callee.partition(".")[0]
    query = "(assignment left: (identifier) @left)"
    for function in _owners(site):
        parameters = function.child_by_field_name("parameters")
        if parameters is not None and name in _parameter_names(parameters):
            return True
        if any(text_of(one) == name for one in captures("python", query, function).get("left", [])):
            return True
    return False


def _parameter_names(parameters: Node) -> set[str]:
    names = set()
    for one in parameters.named_children:
        held = one.child_by_field_name("name") or (
            one.named_child(0) if one.named_children else one
        )
        names.add(text_of(held if held is not None else one))
    return names


def _owners(site: Site) -> list[Node]:
    """Give the functions around a site; for a compiled one only those outside it."""
    return [node for node in site.chain[:-1] if node.type == "function_definition"]


def _in_fake(site: Site) -> bool:
    for outer, inner in pairwise(site.chain):
        if inner.type == "function_definition":
            name = inner.child_by_field_name("name")
            decorators = [text_of(one) for one in outer.children if one.type == "decorator"]
            if is_fake(text_of(name) if name is not None else "", decorators):
                return True
    return False


def callee_line(call: Node) -> int:
    """Give the line of the name a call calls: the last identifier before its arguments."""
    function = call.child_by_field_name("function")
    if function is not None and function.type == "subscript":
        function = function.child_by_field_name("value")
    return last_line(function) if function is not None else first_line(call)


def _sites(root: Node, lines: tuple[int, int]) -> Iterator[Site]:
    first, last = lines
    seen: set[int] = set()
    for node in nodes_within(root, max(first - MAX_LINES, 1), last, _INTERESTING):
        if node.id in seen:
            continue
        seen.add(node.id)
        if node.type == "call":
            if first <= callee_line(node) <= last and not is_log_call(node):
                chain = chain_to(root, node)
                if not _in_log_call(chain) and not _in_decorator(chain):
                    yield _call_site(root, node)
        elif first <= first_line(node) <= last and _is_store(node):
            yield _store_site(root, node)
    yield from _compiled(root, lines)


def _call_site(root: Node, call: Node) -> Site:
    callee = callee_of(call)
    kind: SiteKind = "launch" if is_launch(call) else "call"
    return _site(root, call, kind, _symbol(callee), callee, callee_line(call))


def _store_site(root: Node, node: Node) -> Site:
    left = node.child_by_field_name("left")
    return _site(root, node, "assignment", "", text_of(left) if left else "", first_line(node))


def _site(root: Node, node: Node, kind: SiteKind, symbol: str, callee: str, line: int) -> Site:
    chain = tuple(chain_to(root, node))
    return Site(
        kind,
        symbol,
        callee,
        (first_line(node), last_line(node)),
        line,
        text_of(node),
        qualname_of(chain),
        guard_chain(chain),
        node.type,
        node,
        chain,
    )


def _compiled(root: Node, lines: tuple[int, int]) -> Iterator[Site]:
    """Yield `@torch.compile` functions whose decorator or `def` line is in the range."""
    first, last = lines
    for node in nodes_within(
        root, max(first - MAX_LINES, 1), last, frozenset({"decorated_definition"})
    ):
        function = node.child_by_field_name("definition")
        decorators = [one for one in node.children if one.type == "decorator"]
        if function is None or function.type != "function_definition":
            continue
        if not any(_COMPILERS.match(text_of(one).lstrip("@").strip()) for one in decorators):
            continue
        line = first_line(function)
        if first <= line <= last:
            name = function.child_by_field_name("name")
            yield _site(root, function, "compiled", text_of(name) if name else "", "", line)


def _is_store(node: Node) -> bool:
    left = node.child_by_field_name("left")
    return left is not None and left.type == "subscript"


def _symbol(callee: str) -> str:
    parts = [part for part in re.split(r"\.", re.sub(r"\[.*?\]|\(.*?\)", "", callee)) if part]
    while len(parts) > 1 and parts[-1] in _TRANSPARENT:
        parts.pop()
    return parts[-1] if parts else ""


def _in_log_call(chain: list[Node]) -> bool:
    return any(node.type == "call" and is_log_call(node) for node in chain[:-1])


def _in_decorator(chain: list[Node]) -> bool:
    return any(node.type == "decorator" for node in chain)


def _within_function(site: Site) -> bool:
    if site.kind == "compiled":
        return True
    return any(node.type == "function_definition" for node in site.chain[:-1])


def _noise(file: SourceFile, root: Node, lines: tuple[int, int]) -> Finding | None:
    """Say that all lines of a range are comment or string; None when some are code."""
    kinds = set()
    for number, start, text in _visible_lines(file, lines):
        kinds.add(_line_kind(line_chain(root, start, text), number - 1, text))
    if kinds and kinds <= {"comment"}:
        return _finding("E_IN_COMMENT", file, lines, "is a comment, not code")
    if kinds and kinds <= {"string", "comment"}:
        return _finding("E_IN_STRING", file, lines, "lies inside a string, not code")
    if kinds and kinds <= {"import", "comment"}:
        message = "imports a name; importing launches nothing"
        return _finding("E_NO_MATCHING_NODE", file, lines, message)
    if not kinds:
        return _finding("E_NO_MATCHING_NODE", file, lines, "is blank")
    return None


def _line_kind(chain: list[Node], row: int, text: bytes) -> str:
    kinds = [node.type for node in chain]
    if "comment" in kinds:
        return "comment"
    if "string" in kinds:
        string = chain[kinds.index("string")]
        rest = text[string.end_point.column :].strip(b" \t\r,)]}:")
        return "code" if string.end_point.row <= row and rest else "string"
    return "import" if IMPORTS & set(kinds) else "code"


def _visible_lines(file: SourceFile, lines: tuple[int, int]) -> Iterator[tuple[int, int, bytes]]:
    offset = 0
    for number, text in enumerate(file.text.split(b"\n"), 1):
        if number > lines[1]:
            return
        if number >= lines[0] and text.strip():
            yield number, offset, text
        offset += len(text) + 1


def _cuts(file: SourceFile, root: Node, lines: tuple[int, int]) -> Iterator[Finding]:
    """Say when a range of several lines is neither whole statements nor part of a single one."""
    statements = [
        _smallest_statement(line_chain(root, start, text))
        for _, start, text in _visible_lines(file, lines)
    ]
    first, last = lines
    opening = statements[0]
    visible = {number for number, _, _ in _visible_lines(file, lines)}
    if not {first, last} <= visible:
        yield _finding("E_NO_MATCHING_NODE", file, lines, "begins or ends on a blank line")
        return
    if len(statements) < 2 or opening is None:
        return
    if opening.type not in _COMPOUND and last <= last_line(opening):
        return
    for statement in statements:
        if statement is None:
            continue
        begin, end = first_line(statement), last_line(statement)
        if begin < first or end > last:
            message = f"cuts the statement of lines {begin}..{end} in two"
            yield _finding("E_NO_MATCHING_NODE", file, lines, message)
            return


def _smallest_statement(chain: list[Node]) -> Node | None:
    simple = statement_of(chain)
    if simple is not None:
        return simple
    return next((one for one in reversed(chain) if one.type in _COMPOUND), None)


def _no_node(file: SourceFile, lines: tuple[int, int]) -> Finding:
    message = "holds no call, launch, subscript assignment or compiled function"
    return _finding("E_NO_MATCHING_NODE", file, lines, message)


def _nothing(*findings: Finding) -> Region:
    return Region((), "", (), findings)


def _finding(code: str, file: SourceFile, lines: tuple[int, int], message: str) -> Finding:
    where = f"{file.path}:{lines[0]}"
    span = f"line {lines[0]}" if lines[0] == lines[1] else f"lines {lines[0]}..{lines[1]}"
    return Finding(code, f"{span} of {file.path} {message}", "error", where)
