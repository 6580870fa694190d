"""The guard chain of a Python node: under which conditions it runs, with polarity.

A guard is written `+condition` or `-condition`. A negated condition flips the sign, a conjunction
that must hold is split, and so is a disjunction that must not; what is left is compared as tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from tree_sitter import Node

from agent.source.parse import text_of

_JUMPS = frozenset({"return_statement", "raise_statement", "continue_statement", "break_statement"})
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"[^\"]*\"|'[^']*'|[=!<>]=|\S")
_FUNCTIONS = frozenset({"function_definition", "lambda"})
_EXITS = re.compile(r"(?:sys\.exit|os\._exit|exit|quit|os\.abort)\(")
_MAX_NESTED = 24
_MAX_GUARDS = 200
_FLIPPED = {
    "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
    "is": "is not", "is not": "is", "in": "not in", "not in": "in",
}  # fmt: skip
_COMPARISON = re.compile(r"\s(==|!=|<=|>=|<|>|is not|is|not in|in)\s")


def guard_chain(chain: Sequence[Node]) -> tuple[str, ...]:
    """Give the guards around the last node of an ancestor chain, outermost first.

    Only the innermost function counts: what guards its definition does not guard its run.
    """
    functions = [at for at, one in enumerate(chain[:-1]) if one.type in _FUNCTIONS]
    return all_guards(chain[functions[-1] :] if functions else chain)


def all_guards(chain: Sequence[Node]) -> tuple[str, ...]:
    """Give the guards around a node, also those that decide whether its function exists."""
    guards: list[str] = []
    for parent, child in pairwise(chain):
        guards.extend(islice(_between(parent, child), _MAX_GUARDS))
        if len(guards) > _MAX_GUARDS:
            break
    return tuple(dict.fromkeys(guards))


def jump_before(chain: Sequence[Node]) -> str:
    """Name the statement (`return`, `raise`, ...) that always leaves before a node; "" if none."""
    for block, child in pairwise(chain):
        if block.type != "block":
            continue
        for statement in block.named_children:
            if statement.start_byte >= child.start_byte:
                break
            if leaving := _leaving(statement, 0):
                return leaving
    return ""


def atoms(condition: str) -> tuple[str, ...]:
    """Split a stated guard into signed, normalised atoms."""
    return tuple(_signed(condition, positive=True))


def inverted(atom: str) -> str:
    """Give the guard that contradicts an atom."""
    return ("-" if atom.startswith("+") else "+") + atom[1:]


def same_guard(left: str, right: str) -> bool:
    """Tell whether two signed atoms say the same, comparisons turned round included."""
    left, right = left[:1] + normalise(left[1:]), right[:1] + normalise(right[1:])
    return left == right or _canonical(left) == _canonical(right)


def normalise(text: str) -> str:
    """Fold whitespace and drop comments: tokens joined by single spaces."""
    return " ".join(_TOKEN.findall(re.sub(r"(?m)(?<![\"'\w])#.*$", "", text)))


def _between(parent: Node, child: Node) -> Iterator[str]:
    """Yield the guards that one step of a chain adds."""
    match parent.type:
        case "if_statement" | "elif_clause":
            yield from _if_guards(parent, child)
        case "while_statement" if _is_field(parent, "body", child):
            yield from _condition(parent, positive=True)
        case "block" | "module":
            yield from _earlier(parent, child)
        case "except_clause" | "except_group_clause":
            yield "+" + normalise(text_of(parent).partition(":")[0])
        case "case_clause" if _is_field(parent, "consequence", child):
            yield "+" + normalise(text_of(parent).partition("\n")[0].rstrip(":"))
        case _:
            yield from _within_expression(parent, child)


def _within_expression(parent: Node, child: Node) -> Iterator[str]:
    match parent.type:
        case "conditional_expression":
            parts = parent.named_children
            if len(parts) == 3 and child != parts[1]:
                yield from _signed(text_of(parts[1]), positive=child == parts[0])
        case "boolean_operator":
            left, operator = parent.child_by_field_name("left"), parent.child(1)
            if left is not None and child != left and operator is not None:
                yield from _signed(text_of(left), positive=operator.type == "and")
        case "list_comprehension" | "generator_expression" | "set_comprehension":
            for clause in parent.named_children:
                if clause.type == "if_clause" and clause != child:
                    yield from _signed(text_of(clause).removeprefix("if"), positive=True)


def _if_guards(parent: Node, child: Node) -> Iterator[str]:
    if _is_field(parent, "consequence", child):
        yield from _condition(parent, positive=True)
    elif child.type in ("elif_clause", "else_clause"):
        yield from _condition(parent, positive=False)
        if parent.named_child_count > _MAX_GUARDS:
            return
        for other in parent.named_children:
            if other == child:
                return
            if other.type == "elif_clause":
                yield from _condition(other, positive=False)


def _earlier(block: Node, child: Node) -> Iterator[str]:
    """Give what earlier statements of a block establish: asserts, and branches that leave."""
    for statement in block.named_children:
        if statement.start_byte >= child.start_byte:
            return
        if statement.type == "assert_statement":
            asserted = statement.named_child(0)
            if asserted is not None:
                yield from _signed(text_of(asserted), positive=True)
        elif statement.type == "if_statement" and _leaves(statement):
            yield from _condition(statement, positive=False)


def _leaves(statement: Node) -> bool:
    """Tell whether an `if` without `else` always leaves the block when its condition holds."""
    if statement.child_by_field_name("alternative") is not None:
        return False
    return _always_leaves(statement.child_by_field_name("consequence"), 0)


def _always_leaves(block: Node | None, depth: int) -> bool:
    """Tell whether the last statement of a block leaves, whichever way is taken through it."""
    inner = [node for node in block.named_children if node.type != "comment"] if block else []
    return bool(inner) and bool(_leaving(inner[-1], depth))


def _leaving(statement: Node, depth: int) -> str:
    """Name what always leaves the block of a statement when that has run; "" for what may go on."""
    said = ""
    match statement.type:
        case kind if kind in _JUMPS:
            said = kind.removesuffix("_statement")
        case "expression_statement" if _EXITS.match(text_of(statement)):
            said = text_of(statement).partition("(")[0]
        case "while_statement" if _is_endless(statement):
            said = "an endless loop"
        case "with_statement" if depth < _MAX_NESTED:
            body = statement.child_by_field_name("body")
            said = "a `with` that leaves" if _always_leaves(body, depth + 1) else ""
        case "try_statement" if depth < _MAX_NESTED and _leaves_a_try(statement, depth):
            said = "a `try` that leaves"
        case "if_statement" if depth < _MAX_NESTED and _leaves_either_way(statement, depth):
            said = "an `if` that leaves either way"
    return said


def _leaves_either_way(statement: Node, depth: int) -> bool:
    branches = [statement.child_by_field_name("consequence")]
    for other in statement.children_by_field_name("alternative"):
        field = "consequence" if other.type == "elif_clause" else "body"
        branches.append(other.child_by_field_name(field))
    last = statement.children_by_field_name("alternative")[-1:]
    total = any(one.type == "else_clause" for one in last)
    return total and all(_always_leaves(one, depth + 1) for one in branches)


def _leaves_a_try(statement: Node, depth: int) -> bool:
    """Tell whether a `try` leaves: its body and all its handlers do, or its `finally` does."""
    blocks = {"body": [statement.child_by_field_name("body")], "finally": list[Node | None]()}
    for clause in statement.named_children:
        inner = next((one for one in clause.named_children if one.type == "block"), None)
        if clause.type == "finally_clause":
            blocks["finally"].append(inner)
        elif clause.type.endswith("_clause"):
            blocks["body"].append(inner)
    return any(
        bool(held) and all(_always_leaves(one, depth + 1) for one in held)
        for held in blocks.values()
    )


def _is_endless(statement: Node) -> bool:
    condition = statement.child_by_field_name("condition")
    text = text_of(statement)
    return (
        condition is not None
        and text_of(condition) in ("True", "1")
        and re.search(r"\b(?:break|return|yield|raise)\b", text) is None
    )


def _condition(statement: Node, *, positive: bool) -> Iterator[str]:
    condition = statement.child_by_field_name("condition")
    if condition is not None:
        yield from _signed(text_of(condition), positive=positive)


def _is_field(parent: Node, field: str, child: Node) -> bool:
    return parent.child_by_field_name(field) == child


def _signed(condition: str, *, positive: bool) -> Iterator[str]:
    pending = [(normalise(condition), positive)]
    for _ in range(64):
        if not pending:
            return
        text, sign = pending.pop(0)
        text = _unwrapped(text)
        if text.startswith("not ") and not _split(text, "and", "or"):
            pending.insert(0, (text[4:], not sign))
            continue
        parts = _conjuncts(text) if sign else _split(text, "or")
        if not parts:
            yield ("+" if sign else "-") + _pretty(text)
        pending[:0] = [(part, sign) for part in parts]


def _conjuncts(text: str) -> list[str]:
    return [] if _split(text, "or") else _split(text, "and")


def _pretty(text: str) -> str:
    """Write tokens as a person would."""
    text = re.sub(r" ?\. ?", ".", text)
    text = re.sub(r"([(\[{~]) ", r"\1", text)
    text = re.sub(r" ([)\]},:])", r"\1", text)
    return re.sub(
        r"(?<=[\w)\]]) (?=[(\[])(?<!\bin )(?<!\bnot )(?<!\band )(?<!\bor )(?<!\bis )", "", text
    )


def _unwrapped(text: str) -> str:
    while text.startswith("( ") and text.endswith(" )") and _closes_at_end(text):
        text = text[2:-2].strip()
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if not depth:
            return index == len(text) - 1
    return False


def _split(text: str, *operators: str) -> list[str]:
    """Split at operators that stand outside brackets; [] when there are none."""
    parts: list[list[str]] = [[]]
    depth = 0
    for piece in text.split(" "):
        depth += (piece in "([{") - (piece in ")]}") if len(piece) == 1 else 0
        if not depth and piece in operators:
            parts.append([])
        else:
            parts[-1].append(piece)
    return [" ".join(part) for part in parts] if len(parts) > 1 else []


def _canonical(atom: str) -> str:
    sign, text = atom[0], atom[1:]
    found = list(_COMPARISON.finditer(text))
    if sign == "-" and len(found) == 1 and "(" not in text[: found[0].start()]:
        operator = found[0].group(1)
        flipped = _FLIPPED[operator]
        return "+" + text[: found[0].start()] + f" {flipped} " + text[found[0].end() :]
    return atom
