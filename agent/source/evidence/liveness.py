"""Does a place in Python source run at all while a server works?

Only what the text shows for certain counts: constant conditions, code behind a `return`, functions
for tests and for tuning, fallbacks of an import, local functions that nothing mentions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from agent.source.parse import text_of
from agent.source.python.guards import all_guards, jump_before
from agent.source.python.sites import Site
from agent.source.python.tree import callee_of
from agent.source.snapshot import whole_word

_NEVER = re.compile(
    r"\+(?:False|None|0|\"\"|(?:\w+ \. )*TYPE_CHECKING|__name__ == [\"']__main__[\"'])|-(?:True|1)"
)
_FALLBACK = re.compile(r"\+except\b.*\b(?:ImportError|ModuleNotFoundError)\b")
_TESTS = re.compile(r"@\s*(?:pytest|unittest|mock|hypothesis)\b")
_LOADS = re.compile(r"load\w*weight|weights?_\w*load|post_load", re.IGNORECASE)
_ASKS = re.compile(r"^_?(?:can_use|can_run|should_use|is|has|supports?)_")
_TUNES = re.compile(r"(?:^|_)(?:warm_?up|auto_?tuner?|tune|tuning|bench(?:mark)?|codegen)(?:_|$)")
_TIMERS = frozenset({"do_bench", "do_bench_cudagraph", "benchmark", "run_perftest", "perf_report"})


def never_runs(site: Site) -> str:
    """Say why a site never runs while a server works; "" when nothing shows that."""
    guards = all_guards(site.chain)
    dead = next((guard for guard in guards if _NEVER.fullmatch(guard)), "")
    if dead:
        return f"stands where {dead[1:]!r} {'holds' if dead[0] == '+' else 'does not hold'}: never"
    if any(_FALLBACK.match(guard) for guard in guards):
        return "only runs where an import fails"
    if jump := jump_before(site.chain):
        return f"stands behind a `{jump}`"
    return _by_function(site) or _by_call(site)


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
    """Yield the lambdas around a site that are a statement, or a variable nothing mentions."""
    chain = site.chain[:-1]
    for at, node in enumerate(chain):
        if node.type != "lambda":
            continue
        holders = [one for one in chain[:at] if one.type != "parenthesized_expression"]
        holder, left = holders[-1], holders[-1].child_by_field_name("left")
        if holder.type == "expression_statement":
            yield "a lambda"
        elif holder.type == "assignment" and left is not None and left.type == "identifier":
            owner = next(
                (one for one in reversed(holders) if one.type == "function_definition"), None
            )
            text = (owner.text or b"") if owner is not None else b""
            if text and len(whole_word(text_of(left)).findall(text)) < 2:
                yield text_of(left)


def _name(function: Node) -> str:
    name = function.child_by_field_name("name")
    return text_of(name) if name is not None else ""
