"""What a Python file says around a line: functions, calls, imports, strings and comments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from agent.source.parse import MAX_DEPTH, ancestors, captures, first_line, last_line, text_of

_DEFINITIONS = "[(function_definition) (class_definition) (decorated_definition)] @one"
_MAX_VISITED = 50_000
_SIMPLE = frozenset(
    {
        "expression_statement", "return_statement", "assert_statement", "raise_statement",
        "delete_statement", "import_statement", "import_from_statement", "future_import_statement",
        "global_statement", "nonlocal_statement", "pass_statement", "break_statement",
        "continue_statement", "print_statement", "exec_statement", "type_alias_statement",
    }
)  # fmt: skip
IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})
_LOGGERS = frozenset({"logger", "logging", "log", "warnings", "_logger", "LOGGER", "LOG"})
_LOG_CALLS = frozenset(
    {"print", "rank0_log", "log_info_on_rank0", "print_info_once", "print_warning_once"}
)


@dataclass(frozen=True, slots=True)
class FunctionDef:
    """A Python function: `line` is that of `def`, `first` that of its first decorator."""

    name: str
    qualname: str
    line: int
    first: int
    last: int
    start_byte: int
    end_byte: int
    decorators: tuple[str, ...]


def functions(root: Node) -> tuple[FunctionDef, ...]:
    """List every function of a file in source order, nested ones and methods included."""
    found: list[FunctionDef] = []
    owners: list[tuple[int, str]] = []
    decorated: dict[int, Node] = {}
    for node in captures("python", _DEFINITIONS, root).get("one", []):
        while owners and owners[-1][0] <= node.start_byte:
            owners.pop()
        if node.type == "decorated_definition":
            inner = node.child_by_field_name("definition")
            if inner is not None:
                decorated[inner.id] = node
            continue
        name = node.child_by_field_name("name")
        owners.append((node.end_byte, text_of(name) if name is not None else "?"))
        if node.type == "function_definition":
            qualname = ".".join(owner for _, owner in owners)
            found.append(_function(node, decorated.get(node.id, node), qualname))
    return tuple(found)


def function_at(found: Sequence[FunctionDef], start: int, end: int) -> FunctionDef | None:
    """Give the innermost function whose body holds a byte range."""
    inside = [one for one in found if one.start_byte <= start and end <= one.end_byte]
    return max(inside, key=lambda one: one.start_byte, default=None)


def qualname_of(chain: Sequence[Node]) -> str:
    """Give the dotted name of the classes and functions in an ancestor chain."""
    names = []
    for node in chain:
        if node.type in ("class_definition", "function_definition"):
            name = node.child_by_field_name("name")
            names.append(text_of(name) if name is not None else "?")
    return ".".join(names)


def statement_of(chain: Sequence[Node]) -> Node | None:
    """Give the smallest simple statement of an ancestor chain."""
    for node in reversed(chain):
        if node.type in _SIMPLE:
            return node
    return None


def callee_of(call: Node) -> str:
    """Give the dotted text of what a call calls, with the grid of a launch left out."""
    function = call.child_by_field_name("function")
    if function is not None and function.type == "subscript":
        function = function.child_by_field_name("value")
    return "".join(text_of(function).split()) if function is not None else ""


def is_launch(call: Node) -> bool:
    """Tell whether a call is `kernel[grid](...)`."""
    function = call.child_by_field_name("function")
    return function is not None and function.type == "subscript"


def is_log_call(call: Node) -> bool:
    """Tell whether a call only writes a message."""
    callee = callee_of(call)
    head, _, _ = callee.partition(".")
    return callee in _LOG_CALLS or (head in _LOGGERS and "." in callee)


def nodes_within(root: Node, first: int, last: int, types: frozenset[str]) -> Iterator[Node]:
    """Yield nodes of some types that begin on lines `first`..`last`, outermost first."""
    pending = [root]
    for _ in range(_MAX_VISITED):
        if not pending:
            return
        node = pending.pop()
        if last_line(node) < first or first_line(node) > last:
            continue
        if node.type in types and first <= first_line(node) <= last:
            yield node
        pending.extend(reversed(node.children))


def chain_to(root: Node, node: Node) -> list[Node]:
    """Give the ancestors of a node, the root first and the node last."""
    chain = [root]
    current: Node | None = root
    while current is not None and current != node and len(chain) < MAX_DEPTH:
        current = current.child_with_descendant(node)
        if current is not None:
            chain.append(current)
    return chain


def imports(root: Node) -> dict[str, tuple[str, str]]:
    """Map each imported name of a file, wherever it is imported, to (module, original name).

    A module imported whole maps to (module, ""). A later import of the same name wins.
    """
    found: dict[str, tuple[str, str]] = {}
    for node in captures("python", "[(import_statement) (import_from_statement)] @i", root).get(
        "i", []
    ):
        module = node.child_by_field_name("module_name")
        for name in node.children_by_field_name("name"):
            original, alias = _imported(name)
            if module is None:
                found[alias or original.partition(".")[0]] = (original, "")
            else:
                found[alias or original] = (text_of(module), original)
    return found


def line_chain(root: Node, line_start: int, line_text: bytes) -> list[Node]:
    """Give the ancestor chain at the first visible character of a line."""
    indent = len(line_text) - len(line_text.lstrip())
    offset = line_start + min(indent, max(len(line_text) - 1, 0))
    return ancestors(root, offset, offset + 1)


def _imported(name: Node) -> tuple[str, str]:
    if name.type != "aliased_import":
        return text_of(name), ""
    original, alias = name.child_by_field_name("name"), name.child_by_field_name("alias")
    return (text_of(original) if original else ""), (text_of(alias) if alias else "")


def _function(node: Node, outer: Node, qualname: str) -> FunctionDef:
    decorators = tuple(
        text_of(child).removeprefix("@").strip()
        for child in outer.children
        if child.type == "decorator"
    )
    keyword = next((child for child in node.children if child.type == "def"), node)
    return FunctionDef(
        qualname.rpartition(".")[2],
        qualname,
        first_line(keyword),
        first_line(outer),
        last_line(node),
        node.start_byte,
        node.end_byte,
        decorators,
    )
