r"""What a pattern is made of: a small reader of RE2 syntax for the checks in `patterns`.

RE2 itself decides what is valid; this only reads valid patterns of bounded length and keeps what
the checks ask: literal runs, alternatives, repetitions. Anything it does not know (a class, `\d`,
`.`) is one character of any kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_COUNTED = re.compile(r"\{(\d+)(,?)(\d*)\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|:))?")
_LISTED = re.compile(r"\[(?:[A-Za-z0-9_<>(){} ,:;&*#-]|\\[^A-Za-z0-9]){2,10}\]")
_RANGE = re.compile(r"\w-\w")
_COUNTED_AT_MOST = 8
_HEXADECIMAL = re.compile(r"\\x([0-9A-Fa-f]{2})|\\x\{([0-9A-Fa-f]+)\}|\\([0-7]{1,3})")
_ZERO_WIDTH = frozenset("bBAz")
_ONE_OF_MANY = frozenset("dDwWsSpPC")
_CONTROL = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Node:
    """One part of a pattern.

    `literal` has `text`; `any` is one unknown character, with `text` where it is one of a short
    list; `assertion` is zero-width with its `text`;
    `concat` and `alternate` have parts; `repeat` has one part and its bounds (`most` None: no end).
    """

    kind: Literal["literal", "any", "assertion", "concat", "alternate", "repeat"]
    text: str = ""
    parts: tuple[Node, ...] = ()
    least: int = 1
    most: int | None = 1

    def walk(self) -> Iterator[Node]:
        """Give this part and all inside it."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class Run:
    """How many literal characters in a row every match of a part holds, at least.

    `start` at its start, `end` at its end, `longest` anywhere; `whole` tells that each match is
    literal from start to end, so that what stands before and after joins it.
    """

    start: int = 0
    end: int = 0
    longest: int = 0
    whole: bool = False


_NOTHING = Run(whole=True)


def read_pattern(pattern: str) -> Node:
    """Read a pattern that RE2 accepts; at most a few hundred characters, for it recurses."""
    node, at = _alternation(pattern, 0)
    if at < len(pattern):
        message = f"unbalanced at {at}"
        raise ValueError(message)
    return node


def branches(node: Node) -> tuple[Node, ...]:
    """Give the outermost alternatives of a pattern."""
    return node.parts if node.kind == "alternate" else (node,)


def required_run(node: Node) -> Run:
    """Give the literal characters that every match of a part holds.

    A class that lists single characters (`[nN]`) counts as one.
    """
    runs = [required_run(part) for part in node.parts]
    match node.kind:
        case "alternate":
            return _weakest(runs)
        case "concat":
            return _joined(runs)
        case "repeat":
            return _repeated(node, runs[0])
        case "any" if not node.text:
            return Run()
        case _:
            length = 0 if node.kind == "assertion" else 1
            return Run(length, length, length, whole=True)


def plain_text(node: Node) -> str | None:
    """Give the text of a part that has only literals and assertions; None for any other."""
    if node.kind in ("literal", "assertion"):
        return node.text if node.kind == "literal" else ""
    if node.kind != "concat":
        return None
    texts = [plain_text(part) for part in node.parts]
    return None if None in texts else "".join(text for text in texts if text)


def literal_runs(node: Node) -> tuple[str, ...]:
    """Give every piece of literal text in a part, required or not, neighbours joined."""
    pieces: list[str] = []
    _collect(node, pieces)
    return tuple(run for run in "".join(pieces).split("\0") if run)


def _collect(node: Node, pieces: list[str]) -> None:
    match node.kind:
        case "literal":
            pieces.append(node.text)
        case "any":
            pieces.append("\0")
        case "repeat" | "alternate":
            for part in node.parts:
                pieces.append("\0")
                _collect(part, pieces)
            pieces.append("\0")
        case _:
            for part in node.parts:
                _collect(part, pieces)


def _weakest(runs: list[Run]) -> Run:
    return Run(
        min(run.start for run in runs),
        min(run.end for run in runs),
        min(run.longest for run in runs),
        all(run.whole for run in runs),
    )


def _joined(runs: list[Run]) -> Run:
    total = _NOTHING
    for run in runs:
        total = Run(
            total.start + run.start if total.whole else total.start,
            total.end + run.end if run.whole else run.end,
            max(total.longest, run.longest, total.end + run.start),
            total.whole and run.whole,
        )
    return total


def _repeated(node: Node, inner: Run) -> Run:
    """`x?` keeps a run going with or without `x`; without an end it does not."""
    once = _joined([inner] * min(node.least, _COUNTED_AT_MOST))
    if node.most is None or not inner.whole:
        return Run(once.start, once.end, once.longest)
    return once


def _alternation(pattern: str, at: int) -> tuple[Node, int]:
    found: list[Node] = []
    while True:
        node, at = _concatenation(pattern, at)
        found.append(node)
        if not pattern.startswith("|", at):
            return (found[0] if len(found) == 1 else Node("alternate", parts=tuple(found))), at
        at += 1


def _concatenation(pattern: str, at: int) -> tuple[Node, int]:
    parts: list[Node] = []
    while at < len(pattern) and pattern[at] not in "|)":
        node, at = _atom(pattern, at)
        node, at = _quantified(pattern, at, node)
        parts.append(node)
    return (parts[0] if len(parts) == 1 else Node("concat", parts=tuple(parts))), at


def _atom(pattern: str, at: int) -> tuple[Node, int]:
    match pattern[at]:
        case "(":
            opening = _GROUP.match(pattern, at)
            node, at = _alternation(pattern, opening.end() if opening else at + 1)
            return node, at + 1
        case "[":
            return _class(pattern, at)
        case ".":
            return Node("any"), at + 1
        case "^" | "$":
            return Node("assertion", pattern[at]), at + 1
        case "\\":
            return _escape(pattern, at)
        case character:
            return Node("literal", character), at + 1


def _class(pattern: str, at: int) -> tuple[Node, int]:
    found = _CLASS.match(pattern, at)
    if found is None:
        return Node("literal", "["), at + 1
    inside = found[0][1:-1]
    plain = inside[1:] if len(inside) == len("\\.") and inside[0] == "\\" else inside
    if len(plain) == 1 and plain.isprintable() and (plain == inside or not plain.isalnum()):
        return Node("literal", plain), found.end()
    listed = _LISTED.fullmatch(found[0]) and not _RANGE.search(found[0])
    return Node("any", found[0] if listed else ""), found.end()


def _escape(pattern: str, at: int) -> tuple[Node, int]:
    letter = pattern[at + 1 : at + 2]
    if letter in _ZERO_WIDTH:
        return Node("assertion", "\\" + letter), at + 2
    if letter in _ONE_OF_MANY:
        named = letter in "pP" and pattern.startswith("{", at + 2)
        return Node("any"), (pattern.find("}", at) if named else at + 1) + 1
    if found := _HEXADECIMAL.match(pattern, at):
        code = int(found[3], 8) if found[3] else int(found[1] or found[2], 16)
        return Node("literal", chr(min(code, 0x10FFFF))), found.end()
    return Node("literal", _CONTROL.get(letter, letter)), at + 2


def _quantified(pattern: str, at: int, node: Node) -> tuple[Node, int]:
    while at < len(pattern):
        if pattern[at] in "*+?":
            least = 1 if pattern[at] == "+" else 0
            node = Node(
                "repeat", parts=(node,), least=least, most=1 if pattern[at] == "?" else None
            )
            at += 1
        elif found := _COUNTED.match(pattern, at):
            least = int(found[1])
            most = int(found[3]) if found[3] else None if found[2] else least
            node = Node("repeat", parts=(node,), least=least, most=most)
            at = found.end()
        else:
            break
        at += pattern.startswith("?", at)  # a lazy quantifier repeats no less
    return node, at
