"""Whether a pattern is safe and says something: VALIDATION's third gate, shared with lint.

Only the pattern is looked at here; what it matches, steals or shadows is asked of names elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import re2

from agent.core.proposals import Finding
from agent.core.text import shown
from agent.ruleset.match import Pattern
from agent.ruleset.syntax import (
    Node,
    branches,
    literal_runs,
    plain_text,
    read_pattern,
    required_run,
)

MAX_PATTERN = 400
MIN_LITERAL = 4
MAX_REPEAT = 256
"""Counted repetitions multiply; above this RE2 stays linear but slow (10 ms for a name of 5 kB)."""

_BACKSPACE_HINT = 'did you mean \\b? JSON and TOML read "\\b" as a backspace: write "\\\\b"'
_FORBIDDEN = (
    (re.compile(r"\(\?(?:=|!|<=|<!)"), "lookaround"),
    (re.compile(r"\\[1-9]|\(\?P=|\\g<|\\k<"), "a backreference"),
    (re.compile(r"\(\?[a-zA-Z]*-?[a-zA-Z]*[:)](?<!\(\?:)"), "an inline flag"),
    (re.compile(r"\(\?P?<[A-Za-z_]"), "a named group, which a rule has no use for"),
    (re.compile(r"\\[pP]"), "a Unicode class, which no kernel name needs"),
    (re.compile(r"\\[QEC]"), "\\Q, \\E or \\C"),
)
_ESCAPED_BACKSLASH = re.compile(r"\\\\")
_CLASS = re.compile(r"(?<!\\)\[\^?\]?(?:\\.|[^\]\\])*\]")
_VOLATILE = (
    (re.compile(r"MT\d+x\d+"), "a Tensile tile"),
    (re.compile(r"MI\d+x\d+"), "a Tensile instruction"),
    (re.compile(r"BLOCK_(?:SIZE_)?[A-Z]+_?\d+|num_(?:warps|stages)_?\d"), "a Triton block size"),
)
_TILE = re.compile(r"(?<!\d)(?:\d{2,4}x\d{2,4}|\d{1,4}x\d{1,4}x\d{1,4})(?!\d)")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# fmt: off
_GENERIC_WORDS = frozenset((
    "aten", "at", "backward", "bwd", "call", "cat", "compute", "const", "copy", "cpp", "cuda",
    "device", "do", "entry", "float", "forward", "func", "function", "fused", "fwd", "global",
    "gpu", "half", "hip", "impl", "init", "int", "kernel", "kernels", "launch", "main",
    "module", "native", "op", "ops", "process", "reduce", "rocm", "run", "std", "template",
    "torch", "triton", "update", "void", "wrapper",
))
# fmt: on
_GENERIC_NAMES = frozenset({"reduce_segments"})


def check_pattern(pattern: str) -> tuple[Finding, ...]:
    """Say everything that is wrong with a pattern as it is written, without looking at names.

    Codes: `E_NON_ASCII`, `E_TOO_LONG`, `E_REGEX_SYNTAX`, `E_MATCHES_EMPTY`, `E_NO_LITERAL`,
    `E_NESTED_QUANTIFIER`, `E_OVERFIT` and `E_GENERIC`; all errors, except that a generic name
    spelled out is a warning (only its evidence and what else it matches can tell).
    """
    return tuple(_findings(pattern))


def is_exact(pattern: str) -> bool:
    """Tell whether a pattern matches one name alone: anchored on both sides, nothing variable."""
    try:
        node = read_pattern(pattern)
    except (ValueError, RecursionError):
        return False
    return _is_exact(node)


def _findings(pattern: str) -> Iterator[Finding]:
    if not (pattern.isascii() and pattern.isprintable()):
        hint = _BACKSPACE_HINT if "\b" in pattern else ""
        message = f'"{shown(pattern, limit=200)}" holds a character that is not printable ASCII'
        yield Finding("E_NON_ASCII", message, hint=hint)
    if len(pattern) > MAX_PATTERN:
        message = f"the pattern has {len(pattern)} characters, more than {MAX_PATTERN}"
        yield Finding("E_TOO_LONG", message)
        return
    wrong = tuple(_syntax_findings(pattern))
    yield from wrong
    if wrong:
        return
    if Pattern(pattern).search(""):
        yield Finding("E_MATCHES_EMPTY", f'"{shown(pattern, limit=200)}" matches the empty name')
    yield from _structure_findings(read_pattern(pattern))


def _syntax_findings(pattern: str) -> Iterator[Finding]:
    visible = _CLASS.sub("[]", _ESCAPED_BACKSLASH.sub("", pattern))
    for forbidden, what in _FORBIDDEN:
        if forbidden.search(visible):
            message = f'"{shown(pattern, limit=200)}" uses {what}'
            yield Finding("E_REGEX_SYNTAX", message, hint="rules are plain RE2, case-sensitive")
            return
    try:
        Pattern(pattern)
    except re2.error as err:
        reason = err.args[0].decode("utf-8", "replace") if err.args else "unknown error"
        message = f'"{shown(pattern, limit=200)}" is not RE2: {shown(reason, limit=200)}'
        yield Finding("E_REGEX_SYNTAX", message)


def _structure_findings(node: Node) -> Iterator[Finding]:
    yield from _repetition_findings(node)
    if (length := required_run(node).longest) < MIN_LITERAL:
        message = f"a match may hold only {length} literal characters in a row"
        hint = f"each alternative needs {MIN_LITERAL} in a row to tell kernels apart"
        yield Finding("E_NO_LITERAL", message, hint=hint)
    for branch in branches(node):
        yield from _volatile_findings(branch)
        yield from _generic_findings(branch)


def _repetition_findings(node: Node) -> Iterator[Finding]:
    for outer in node.walk():
        if _repeats(outer) and any(_varies(inner) for inner in outer.parts[0].walk()):
            message = "a repetition inside a repetition: many ways to match the same text"
            yield Finding(
                "E_NESTED_QUANTIFIER", message, hint="write one class: [\\w:]* for (\\w+::)*"
            )
            return
    if (times := _times(node)) > MAX_REPEAT:
        message = f"counted repetitions multiply to {times}, more than {MAX_REPEAT}"
        yield Finding("E_NESTED_QUANTIFIER", message)


def _repeats(node: Node) -> bool:
    return node.kind == "repeat" and (node.most is None or node.most > 1)


def _varies(node: Node) -> bool:
    """Tell whether a repetition may stop at several counts; `?` and `{3}` may not."""
    return _repeats(node) and node.most != node.least


def _times(node: Node) -> int:
    """Give how often the most repeated part is written out when compiled."""
    inner = max((_times(part) for part in node.parts), default=1)
    if node.kind != "repeat":
        return inner
    return inner * max(node.least, node.most or 1, 1)


def _volatile_findings(branch: Node) -> Iterator[Finding]:
    exact = _is_exact(branch)
    for run in literal_runs(branch):
        found = next((what for volatile, what in _VOLATILE if volatile.search(run)), "")
        if not found and not exact and _TILE.search(run):
            found = "a tile size"
        if found:
            message = f'"{shown(run, limit=100)}" holds {found}: the next tuning has another'
            yield Finding("E_OVERFIT", message, hint="match the family: \\d+ for the numbers")
            return


def _generic_findings(branch: Node) -> Iterator[Finding]:
    runs = literal_runs(branch)
    words = [word.lower() for run in runs for word in _WORD.findall(run) if len(word) > 1]
    name = plain_text(branch)
    generic = bool(words) and all(word in _GENERIC_WORDS for word in words)
    if _is_exact(branch) or not (generic or name in _GENERIC_NAMES):
        return
    spelled_out = name is not None and len(words) > 1
    message = f'"{shown(" ".join(runs), limit=100)}" is a name that any project may use'
    hint = "give the exact name between ^ and $, with evidence"
    yield Finding("E_GENERIC", message, "warning" if spelled_out else "error", hint=hint)


def _is_exact(node: Node) -> bool:
    if node.kind != "concat":
        return False
    inner = [part for part in node.parts if not _is_start(part)]
    if len(inner) == len(node.parts) or not inner or inner[-1] != Node("assertion", "$"):
        return False
    return all(part.kind == "literal" for part in inner[:-1])


def _is_start(node: Node) -> bool:
    """Recognise `^`, and `(^|::)` for a name that may stand in a namespace."""
    if node.kind == "alternate":
        return all(_is_start(part) or plain_text(part) == "::" for part in node.parts)
    return node == Node("assertion", "^")
