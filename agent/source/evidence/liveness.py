"""Does a place in Python source run at all while a server works?

Only what the text shows for certain counts: constant conditions, code behind a `return`, functions
for tests and for tuning, fallbacks of an import, local functions that nothing mentions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tree_sitter import Node

from agent.source.parse import first_line, text_of
from agent.source.python.guards import all_guards, jump_before
from agent.source.python.sites import Site
from agent.source.python.tree import callee_of
from agent.source.snapshot import whole_word

_NEVER = re.compile(
    r"\+(?:False|None|0|\"\"|(?:\w+ ?\. ?)*TYPE_CHECKING|__name__ == [\"']__main__[\"']"
    r"|(?:sys ?\. ?)?platform == [\"'](?:win32|darwin|cygwin)[\"']|os ?\. ?name == [\"']nt[\"']"
    r"|platform ?\. ?system ?\( ?\) == [\"'](?:Windows|Darwin)[\"'])|-(?:True|1)"
)
_EMPTY = frozenset({"[]", "()", "{}", "range(0)", '""', "''"})
_DEFINED = frozenset({"function_definition", "class_definition", "decorated_definition"})
_JITS = re.compile(r"@\s*(?:\w+\.)*(?:jit|autotune|heuristics)\b")
_FALLBACK = re.compile(r"\+except\b.*\b(?:ImportError|ModuleNotFoundError)\b")
_TESTS = re.compile(r"@\s*(?:pytest|unittest|mock|hypothesis)\b")
_LOADS = re.compile(r"load\w*weight|weights?_\w*load|post_load", re.IGNORECASE)
_ASKS = re.compile(r"^_?(?:can_use|can_run|should_use|is|has|supports?)_")
_TUNES = re.compile(r"(?:^|_)(?:warm_?up|auto_?tuner?|tune|tuning|bench(?:mark)?|codegen)(?:_|$)")
_TIMERS = frozenset({"do_bench", "do_bench_cudagraph", "benchmark", "run_perftest", "perf_report"})


def never_runs(site: Site) -> str:
    """Say why a site never runs while a server works; "" when nothing shows that."""
    if why := never_reached(site.chain):
        return why
    if jump := jump_before(site.chain):
        return f"stands behind {jump if ' ' in jump else f'a `{jump}`'}"
    return _by_function(site) or _by_call(site)


def never_reached(chain: Sequence[Node]) -> str:
    """Say why nothing ever gets to the last node of an ancestor chain; "" when it may."""
    guards = all_guards(chain)
    dead = next((guard for guard in guards if _NEVER.fullmatch(guard)), "")
    if dead:
        return f"stands where {dead[1:]!r} {'holds' if dead[0] == '+' else 'does not hold'}: never"
    if any(_FALLBACK.match(guard) for guard in guards):
        return "only runs where an import fails"
    if any(_loops_never(outer, inner) for outer, inner in pairwise(chain)):
        return "is in a loop over nothing"
    line = next(_defined_again(chain), 0)
    return f"is replaced: line {line} defines the name again" if line else ""


def _loops_never(outer: Node, inner: Node) -> bool:
    right = outer.child_by_field_name("right") if outer.type == "for_statement" else None
    if right is None or inner != outer.child_by_field_name("body"):
        return False
    return "".join(text_of(right).split()) in _EMPTY


def _defined_again(chain: Sequence[Node]) -> Iterator[int]:
    """Yield where a function or class around a node, or itself, is defined again beside it.

    Only plain definitions count: decorators may keep both (`@property.setter`, `@overload`).
    """
    for block, child in pairwise(chain):
        if block.type not in ("module", "block") or child.type not in _DEFINED:
            continue
        if child.type == "decorated_definition" and not _is_jit(child):
            continue
        name = _name(child.child_by_field_name("definition") or child)
        for later in block.named_children:
            if later.start_byte > child.start_byte and _defines(later, name):
                yield first_line(later)


def _defines(node: Node, name: str) -> bool:
    """Tell whether a node is a plain, or a jit-decorated, definition of a name."""
    if node.type not in _DEFINED or (node.type == "decorated_definition" and not _is_jit(node)):
        return False
    return _name(node.child_by_field_name("definition") or node) == name


def _is_jit(decorated: Node) -> bool:
    marks = [text_of(one) for one in decorated.children if one.type == "decorator"]
    return all(_JITS.search(one) for one in marks)


def _by_function(site: Site) -> str:
    name = site.qualname.rpartition(".")[2]
    if _LOADS.search(name):
        return "runs while weights are loaded, not while the server works"
    if _ASKS.search(name):
        return "only tells whether it can run"
    names = [_name(node) for node in site.chain[:-1] if node.type == "function_definition"]
    if any(_TUNES.search(one.lower()) for one in names):
        return "warms up, tunes or measures"
    if any(_is_for_tests(node) for node in site.chain):
        return "is a test or a fixture"
    unused = next(_unmentioned(site), "") or next(_uncalled(site), "")
    return f"is in {unused}, which nothing around it calls" if unused else ""


def _by_call(site: Site) -> str:
    calls = (callee_of(node) for node in site.chain[:-1] if node.type == "call")
    timed = next((one for one in calls if one.rpartition(".")[2] in _TIMERS), "")
    return f"is only measured by {timed}" if timed else ""


def _is_for_tests(node: Node) -> bool:
    return node.type == "decorated_definition" and any(
        _TESTS.match(text_of(one)) for one in node.children if one.type == "decorator"
    )


def _unmentioned(site: Site) -> Iterator[str]:
    """Yield the local functions around a site that the function they are in never mentions."""
    functions = [node for node in site.chain[:-1] if node.type == "function_definition"]
    for outer, inner in pairwise(functions):
        name, between = _name(inner), site.chain[site.chain.index(outer) : site.chain.index(inner)]
        if any(node.type in ("class_definition", "decorated_definition") for node in between):
            continue
        text = outer.text or b""
        if len(whole_word(name).findall(text)) < 2 and b"locals()" not in text:
            yield name


def _uncalled(site: Site) -> Iterator[str]:
    """Yield the lambdas around a site that are a statement, or a variable nothing mentions.

    So does a generator that is a statement: nothing asks for what it would give.
    """
    chain = site.chain[:-1]
    for at, node in enumerate(chain):
        if node.type not in ("lambda", "generator_expression"):
            continue
        holders = [one for one in chain[:at] if one.type != "parenthesized_expression"]
        holder, left = holders[-1], holders[-1].child_by_field_name("left")
        if holder.type == "expression_statement":
            yield "a lambda" if node.type == "lambda" else "a generator"
        elif (
            node.type == "lambda"
            and holder.type == "assignment"
            and left is not None
            and left.type == "identifier"
        ):
            owner = next(
                (one for one in reversed(holders) if one.type == "function_definition"), None
            )
            text = (owner.text or b"") if owner is not None else b""
            if text and len(whole_word(text_of(left)).findall(text)) < 2:
                yield text_of(left)


def _name(function: Node) -> str:
    name = function.child_by_field_name("name")
    return text_of(name) if name is not None else ""
