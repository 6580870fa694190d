"""Does a pattern keep to the words of a name, and is a declared name one at all?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import re2

from agent.core.names import canonical_name
from agent.core.proposals import Finding
from agent.core.text import shown
from agent.ruleset.match import options
from agent.ruleset.syntax import Node, read_pattern
from agent.source.names import origin_of

_ROUND = re.compile(r"\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]")
_ANGLED = re.compile(r"<[^<>]*>")
_TYPE = re.compile(
    r"(?:const|static|unsigned|signed|void|bool|char|short|int|long|float|double|half|auto|typename"
    r"|__global__|__device__|[\w:]*(?:::|_t\b)[\w:]*)[*&]*"
)
_AFTER = re.compile(r"(?:const|noexcept|&|\*|\.kd|::.*)*")
_OPEN_START = re.compile(r"^\^?(?:\.[*+]\??)+")
_OPEN_END = re.compile(r"(?<!\\)(?:\.[*+]\??)+\$?$")
_MAX_FOLDS = 60


def cut_findings(pattern: str, names: Sequence[str]) -> tuple[Finding, ...]:
    """Say that every match of a pattern begins or ends within a word of the name.

    A fragment (`ouped_gemm` of `grouped_gemm`) names nothing: it matches by chance. `.*` at an end
    says nothing in a search.
    """
    told = _OPEN_END.sub("", _OPEN_START.sub("", pattern))
    try:
        compiled, tree = re2.compile(told, options()), read_pattern(told)
    except (re2.error, ValueError, RecursionError):
        return ()
    spelled = (_is_spelled(tree, 0), _is_spelled(tree, -1))
    found = [
        (name, match.span())
        for name in map(canonical_name, names)
        if (match := compiled.search(name)) is not None
    ]
    if not found or not all(_cuts(name, span, spelled) for name, span in found):
        return ()
    name, (start, end) = found[0]
    message = f'it matches "{shown(name[start:end], limit=60)}", a piece out of the words of a name'
    return (Finding("E_CUTS_WORD", message, hint="begin and end it where a word does"),)


def prose_findings(names: Sequence[str]) -> tuple[Finding, ...]:
    """Say which declared kernels are sentences around a name, not names of a profiler."""
    for name in names:
        before, _, after = _plain(canonical_name(name)).partition("()")
        words = before.split()[:-1]
        typed = all(_TYPE.fullmatch(word) for word in words)
        ended = all(_AFTER.fullmatch(word) for word in after.replace("()", " ").split())
        if not (typed and ended) and origin_of(name) != "external":
            message = f'"{shown(name, limit=80)}" is text around a name, not the name of a kernel'
            return (
                Finding("E_NO_KERNEL_MATCHED", message, hint="give names as the trace has them"),
            )
    return ()


def _plain(name: str) -> str:
    """Drop what brackets hold: `()` stays where a parameter list stood, templates go."""
    text = name.replace("(anonymous namespace)::", "").replace("->", "")
    for brackets, rest in ((_ROUND, "\x00"), (_ANGLED, "")):
        for _ in range(_MAX_FOLDS):
            text, count = brackets.subn(rest, text)
            if not count:
                break
    return re.sub(r"[<({\[].*", "", text).replace("\x00", "()")


def _is_spelled(node: Node, end: Literal[0, -1]) -> bool:
    """Tell whether a pattern begins (0) or ends (-1) with text, not with a class or an open end."""
    match node.kind:
        case "literal":
            return True
        case "concat":
            parts = [part for part in node.parts if part.kind != "assertion"]
            return bool(parts) and _is_spelled(parts[end], end)
        case "alternate":
            return all(_is_spelled(part, end) for part in node.parts)
        case "repeat":
            return bool(node.least) and _is_spelled(node.parts[0], end)
    return False


def _cuts(name: str, span: tuple[int, int], spelled: tuple[bool, bool]) -> bool:
    start, end = span
    begins = spelled[0] and start > 0 and _within_word(name[start - 1 : start + 1])
    return begins or (spelled[1] and _within_word(name[end - 1 : end + 1]))


def _within_word(pair: str) -> bool:
    """Tell whether two neighbouring characters belong to one word: `ab`, `AB`, `Ab`, `12`."""
    if len(pair) < 2:
        return False
    left, right = pair[0], pair[1]
    if left.isdigit() or right.isdigit():
        return left.isdigit() and right.isdigit()
    return left.isalpha() and (right.islower() or (left.isupper() and right.isupper()))
