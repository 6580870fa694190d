"""Launches in HIP and CUDA source on given lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from agent.core.proposals import Finding
from agent.source.native.calls import call_around, launch_offset, pasted
from agent.source.native.structure import Macro, NativeFile, native_file
from agent.source.snapshot import SourceFile, whole_word

_MAX_WORDS = 2_000
_WORD = re.compile(rb"[A-Za-z_]\w*")
_MAX_STATEMENT = 2_000
_MAX_MACROS = 3
_LAUNCHERS = re.compile(r"[lL]aunch|LAUNCH|^KL$|[dD]ispatch|[kK]ernel|KERNEL|case|CASE")


@dataclass(frozen=True, slots=True)
class NativeSite:
    """One launch: the kernel named, where, and the function or macro it is in.

    `symbols` are the name and, where it is a variable, what is assigned to that.
    """

    symbol: str
    function: str
    line: int
    node: str
    symbols: tuple[str, ...] = ()
    offset: int = 0


@dataclass(frozen=True, slots=True)
class _Launch:
    """How a name gets launched, and where the call, macro or `<<<` that does it stands."""

    node: str
    offset: int


def native_region(file: SourceFile, lines: tuple[int, int]) -> tuple[NativeSite, ...] | Finding:
    """Give the launches on a range of lines, or say why there are none."""
    parsed = native_file(file.text)
    start, end = file.span(*lines)
    if not parsed.code[start:end].strip() and file.text[start:end].strip():
        kind = parsed.noise_at(
            start + len(file.text[start:end]) - len(file.text[start:end].lstrip())
        )
        code = "E_IN_STRING" if kind == "string" else "E_IN_COMMENT"
        return _finding(code, file, lines, f"is a {kind or 'comment'}, not code")
    sites = tuple(_sites(file, parsed, start, end))
    if not sites:
        return _finding("E_NO_MATCHING_NODE", file, lines, "holds no launch of a kernel")
    if len({site.function for site in sites}) != 1 or not sites[0].function:
        return _finding("E_NOT_IN_FUNCTION", file, lines, "is not inside exactly one function")
    return sites


def launches_of(file: SourceFile, name: str) -> tuple[NativeSite, ...]:
    """Give the launches of a kernel in a file."""
    found = []
    for used in (name, *pasted(native_file(file.text), name)):
        if (word := whole_word(used)).search(file.text) is None:
            continue
        parsed = native_file(file.text)
        for match in islice(word.finditer(parsed.code), _MAX_WORDS):
            launch = _launch(parsed, match.start(), match.end())
            if launch is not None:
                found.append(_site(file, parsed, match.start(), match.end(), launch))
    return tuple(found)


def _sites(file: SourceFile, parsed: NativeFile, start: int, end: int) -> list[NativeSite]:
    """Give the launches of which the name, or the call that launches it, stands in a span."""
    found = []
    begin, stop = _statement(parsed.code, start, end)
    for match in islice(_WORD.finditer(parsed.code, begin, stop), _MAX_WORDS):
        launch = _launch(parsed, match.start(), match.end())
        inside = start <= match.start() < end
        if launch is not None and (inside or start <= launch.offset < end):
            found.append(_site(file, parsed, match.start(), match.end(), launch))
    return found


def _statement(code: bytes, start: int, end: int) -> tuple[int, int]:
    """Widen a span to the statements it begins and ends in."""
    before = code[max(start - _MAX_STATEMENT, 0) : start]
    after = re.search(rb"[;{}]", code[end : end + _MAX_STATEMENT])
    begun = max(before.rfind(mark) for mark in (b";", b"{", b"}"))
    return start - len(before) + begun + 1, end + (after.start() if after else 0)


def _site(
    file: SourceFile, parsed: NativeFile, start: int, end: int, launch: _Launch
) -> NativeSite:
    name = parsed.code[start:end].decode()
    function, _ = parsed.enclosing(start)
    symbols = (name, *_assigned(parsed, start, name))
    return NativeSite(name, function, file.line_of(start), launch.node, symbols, start)


def _assigned(parsed: NativeFile, start: int, name: str) -> tuple[str, ...]:
    """Give the names in what is assigned to a variable in the function, or the class, around it."""
    function, classes = parsed.enclosing(start)
    assigned = re.compile(rb"\b" + name.encode() + rb"\s*=([^;=][^;]{0,800});")
    words: dict[str, None] = {}
    for match in islice(assigned.finditer(parsed.code), _MAX_WORDS):
        owner, owners = parsed.enclosing(match.start())
        if owner == function or (not owner and owners and owners == classes[-len(owners) :]):
            words.update((word.decode(), None) for word in _WORD.findall(match.group(1)))
    return tuple(words)


def _launch(parsed: NativeFile, start: int, end: int) -> _Launch | None:
    """Say how a name gets launched; None when it does not."""
    name = parsed.code[start:end].decode()
    function, _ = parsed.enclosing(start)
    macro = parsed.macro_at(start)
    if not function or function == name or (macro is not None and name in macro.parameters):
        return None
    if (offset := launch_offset(parsed.code, end)) >= 0:
        return _Launch("kernel_call", offset)
    around, offset = call_around(parsed.code, start)
    node = _call_node(parsed, around, name)
    return _Launch(node, offset) if node else None


def _call_node(parsed: NativeFile, around: str, name: str) -> str:
    """Say how a name that is an argument of a call gets launched; "" when it does not."""
    if not around or around == name:
        return ""
    called = parsed.named_macros.get(around)
    if called is None:
        return "launch_call" if _LAUNCHERS.search(around) else ""
    return "macro_launch" if _macro_launches(parsed, called, 0) else ""


def _macro_launches(parsed: NativeFile, macro: Macro, depth: int) -> bool:
    """Tell whether a macro launches what it is given, itself or by other macros of the file."""
    body = parsed.code[macro.start : macro.end]
    if b"<<<" in body or _LAUNCHERS.search(body.decode("utf-8", "replace")):
        return True
    words = {word.decode() for word in _WORD.findall(body)} - {macro.name}
    used = [parsed.named_macros[word] for word in sorted(words & parsed.named_macros.keys())]
    return depth < _MAX_MACROS and any(_macro_launches(parsed, one, depth + 1) for one in used)


def _finding(code: str, file: SourceFile, lines: tuple[int, int], message: str) -> Finding:
    span = f"line {lines[0]}" if lines[0] == lines[1] else f"lines {lines[0]}..{lines[1]}"
    where = f"{file.path}:{lines[0]}"
    return Finding(code, f"{span} of {file.path} {message}", "error", where)
