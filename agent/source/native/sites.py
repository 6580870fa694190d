"""Launches in HIP and CUDA source on given lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from agent.core.proposals import Finding
from agent.source.native.structure import NativeFile, call_around, is_launch, native_file
from agent.source.snapshot import SourceFile, whole_word

_MAX_WORDS = 2_000
_WORD = re.compile(rb"[A-Za-z_]\w*")
_LAUNCHERS = re.compile(
    r"launch|^KL$|make_kernel|dispatch|cudaLaunch|hipLaunch|kernel|KERNEL|HIP_KERNEL_NAME|case|CASE"
)


@dataclass(frozen=True, slots=True)
class NativeSite:
    """One launch: the kernel named, and the function or macro it is in."""

    symbol: str
    function: str
    line: int
    node: str


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
    word = whole_word(name)
    if word.search(file.text) is None:
        return ()
    parsed = native_file(file.text)
    found = []
    for match in islice(word.finditer(parsed.code), _MAX_WORDS):
        site = _site(parsed, match.start(), match.end(), name, file.line_of(match.start()))
        if site is not None:
            found.append(site)
    return tuple(found)


def _sites(file: SourceFile, parsed: NativeFile, start: int, end: int) -> list[NativeSite]:
    found = []
    for match in islice(_WORD.finditer(parsed.code, start, end), _MAX_WORDS):
        line = file.line_of(match.start())
        site = _site(parsed, match.start(), match.end(), match.group().decode(), line)
        if site is not None:
            found.append(site)
    return found


def _site(parsed: NativeFile, start: int, end: int, name: str, line: int) -> NativeSite | None:
    function, _ = parsed.enclosing(start)
    macro = parsed.macro_at(start)
    if not function or function == name or (macro is not None and name in macro.parameters):
        return None
    node = "kernel_call" if is_launch(parsed.code, end) else _call_node(parsed, start, name)
    return NativeSite(name, function, line, node) if node else None


def _call_node(parsed: NativeFile, start: int, name: str) -> str:
    """Say how a name that is an argument gets launched; "" when it does not."""
    around = call_around(parsed.code, start)
    if not around or around == name:
        return ""
    called = next((one for one in parsed.macros if one.name == around), None)
    if called is None:
        return "launch_call" if _LAUNCHERS.search(around) else ""
    body = parsed.code[called.start : called.end]
    launches = b"<<<" in body or _LAUNCHERS.search(body.decode("utf-8", "replace"))
    return "macro_launch" if launches else ""


def _finding(code: str, file: SourceFile, lines: tuple[int, int], message: str) -> Finding:
    span = f"line {lines[0]}" if lines[0] == lines[1] else f"lines {lines[0]}..{lines[1]}"
    where = f"{file.path}:{lines[0]}"
    return Finding(code, f"{span} of {file.path} {message}", "error", where)
