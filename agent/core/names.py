"""Kernel names: from the raw name the profiler wrote to the canonical one that rules also see.

The raw name is the key everywhere. The canonical name is the spelling Kineto traces use, whoever
wrote the raw one: a trailing ` [clone .x]`, ` (.x)` or `.kd` is dropped, a mangled name is
demangled when it parses, and LLVM's, nsys's and nvcc's ways to write lambdas, literals, references
and unnamed things become those of `__cxa_demangle`. It is never cut at "(" and its lambda numbers
are kept, because they carry the dtype.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pycxxfilt
import re2

_CLONE = re.compile(r" \[clone \.[^\[\]]*\]| \(\.[\w.]+\)")
_MAX_MANGLED = 8_192
_MAX_DEMANGLED = 262_144
_MAX_TRY = 4 << 20
_MAX_TRIED = 2 << 20
_BACK_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")

_ANONYMOUS = re.compile(r"<unnamed>(?=::)|\(unnamed(?: namespace)?\)(?=::)|`anonymous namespace'")
_NSYS_LAMBDA = re.compile(r"\[(lambda\([^\[\]]*\)) \(instance (\d+)\)\]")
_MAX_NESTED_LAMBDAS = 16
_SPACED_REFERENCE = re.compile(r"(?<=[\w>)\]*&]) (?=[&*])")
_CLOSERS = re.compile(r"(?<=>)(?=>)(?<!operator>)")
_CAST_LITERAL = re.compile(r"(?<=[<, ])\((int|unsigned int|long|unsigned long|bool)\)(-?\d+)\b")
_LITERAL_SUFFIX = {"int": "", "unsigned int": "u", "long": "l", "unsigned long": "ul"}
_FOREIGN = re2.compile(
    rb"[`']| [&*]|>>|unnamed|operator \(| \(instance |"
    rb"[<, ]\((?:int|unsigned int|long|unsigned long|bool)\)-?\d"
)
"""Whether there is anything to rewrite, in one pass; ten tests with `in` take four times it."""

_LLVM_UNNAMED = re.compile(r"'lambda(\d*)'\(|'unnamed(\d*)'|[()]")
_LOCAL_RETURN = re.compile(r"(?<=[<(,])( ?)void (?=[A-Za-z_])(?!const\b|volatile\b)")


@lru_cache(maxsize=8_192)
def canonical_name(raw: str) -> str:
    """Give the canonical form of a raw kernel name; the same name when there is nothing to do."""
    name = _without_clone(raw)
    if name.startswith(("_Z", "__Z")) and len(name) <= _MAX_MANGLED:
        name = _without_clone(_demangled(name))
    return _kineto_spelling(name)


def _without_clone(name: str) -> str:
    end = len(name)
    while True:
        if name.endswith(".kd", 0, end):
            end -= len(".kd")
        elif (start := _clone_start(name, end)) >= 0:
            end = start
        else:
            return name[:end]


def _clone_start(name: str, end: int) -> int:
    """Find where a clone suffix that ends at `end` begins; -1 where there is none."""
    opening = " [clone ." if name.endswith("]", 0, end) else " (."
    start = name.rfind(opening, 0, end)
    return start if start >= 0 and _CLONE.fullmatch(name, start, end) else -1


def _demangled(mangled: str) -> str:
    try:
        demangled = pycxxfilt.demangle(mangled) if _stays_small(mangled) else None
    except (ValueError, RuntimeError, UnicodeError):
        return mangled
    return demangled if demangled and len(demangled) <= _MAX_DEMANGLED else mangled


def _stays_small(mangled: str) -> bool:
    """Tell whether a mangled name demangles to at most `_MAX_DEMANGLED` characters.

    A back reference repeats an earlier part, so 300 characters can stand for gigabytes, which the
    demangler would write. References are let in a few at a time from the left, the rest being
    masked by identifiers of the same length; each can at most double the length of the last try.
    """
    spots = [found.start() for found in _BACK_REFERENCE.finditer(mangled)]
    size, live, left = 8 * len(mangled), 0, _MAX_TRIED
    if "cvT" in mangled:  # a conversion operator may refer to a later part
        return False
    while True:
        live += max(1, (_MAX_TRY // size).bit_length() - 1)
        if live >= len(spots):
            return True
        at = spots[live]
        masked = mangled[:at] + _BACK_REFERENCE.sub(_mask, mangled[at:])
        size = max(len(pycxxfilt.demangle(masked) or ""), len(mangled))
        left -= size
        if size > _MAX_DEMANGLED or left < 0:
            return False


def _mask(found: re.Match[str]) -> str:
    length = len(found[0]) - 1
    return f"{length}{'A' * length}" if length < 10 else "A"


def _kineto_spelling(name: str) -> str:
    """Rewrite what other demanglers spell differently."""
    if _FOREIGN.search(name.encode("utf-8", "replace")) is None:
        return name
    name = _ANONYMOUS.sub("(anonymous namespace)", name)
    if "'" in name:
        name = _libiberty_lambdas(name)
    for _ in range(_MAX_NESTED_LAMBDAS):
        inner_done = _NSYS_LAMBDA.sub(r"{\1#\2}", name)
        if inner_done == name:
            break
        name = inner_done
    name = _SPACED_REFERENCE.sub("", name).replace("operator ()", "operator()")
    name = _CAST_LITERAL.sub(_plain_literal, name)
    return _CLOSERS.sub(" ", name)


def _plain_literal(found: re.Match[str]) -> str:
    kind, value = found[1], found[2]
    if kind == "bool":
        return "false" if value == "0" else "true"
    return value + _LITERAL_SUFFIX[kind]


def _libiberty_lambdas(name: str) -> str:
    """Turn `'lambda0'(int)` into `{lambda(int)#2}`: LLVM counts "", 0, 1, ...

    LLVM also writes the return type of a template around a local name (only `void` is seen), which
    `__cxa_demangle` leaves out.
    """
    written: list[str] = []
    closers: list[str] = []
    done = 0
    for found in _LLVM_UNNAMED.finditer(name):
        written.append(name[done : found.start()])
        done = found.end()
        written.append(_rewritten(found, closers))
    if any(closer != ")" for closer in closers):
        return name
    written.append(name[done:])
    return _LOCAL_RETURN.sub(r"\1", "".join(written))


def _rewritten(found: re.Match[str], closers: list[str]) -> str:
    if found[0] == "(":
        closers.append(")")
        return "("
    if found[0] == ")":
        return closers.pop() if closers else ")"
    if found[2] is not None:
        return f"{{unnamed type#{_number(found[2])}}}"
    closers.append(f")#{_number(found[1])}}}")
    return "{lambda("


def _number(digits: str) -> int:
    return int(digits) + 2 if digits else 1
