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

_SUFFIX = re.compile(r"(?:(?: \[clone \.[^\[\]]*\])+| \(\.[\w.]+\)|\.kd)$")
_MAX_MANGLED = 16_384
_MAX_DEMANGLED = 1 << 18

_ANONYMOUS = re.compile(r"<unnamed>(?=::)|\(unnamed(?: namespace)?\)(?=::)|`anonymous namespace'")
_NSYS_LAMBDA = re.compile(r"\[(lambda\([^\[\]]*\)) \(instance (\d+)\)\]")
_SPACED_REFERENCE = re.compile(r"(?<=[\w>)\]*&]) (?=[&*])")
_CLOSERS = re.compile(r"(?<=>)(?=>)(?<!operator>)")
_CAST_LITERAL = re.compile(r"(?<=[<, ])\((int|unsigned int|long|unsigned long|bool)\)(-?\d+)\b")
_LITERAL_SUFFIX = {"int": "", "unsigned int": "u", "long": "l", "unsigned long": "ul"}
_LLVM_UNNAMED = re.compile(r"'lambda(\d*)'\(|'unnamed(\d*)'|[()]")
_LOCAL_RETURN = re.compile(r"(?<=[<(,])( ?)void (?=[A-Za-z_])(?!const\b|volatile\b)")


@lru_cache(maxsize=65_536)
def canonical_name(raw: str) -> str:
    """Give the canonical form of a raw kernel name; the same name when there is nothing to do."""
    name = _SUFFIX.sub("", raw)
    if name.startswith(("_Z", "__Z")) and len(name) <= _MAX_MANGLED:
        name = _SUFFIX.sub("", _demangled(name))
    return _kineto_spelling(name)


def _demangled(mangled: str) -> str:
    try:
        demangled = pycxxfilt.demangle(mangled)
    except (ValueError, RuntimeError, UnicodeError):
        return mangled
    return demangled if demangled and len(demangled) <= _MAX_DEMANGLED else mangled


def _kineto_spelling(name: str) -> str:
    """Rewrite what other demanglers spell differently; the tests for presence keep this cheap."""
    if "unnamed" in name or "`" in name:
        name = _ANONYMOUS.sub("(anonymous namespace)", name)
    if "'" in name:
        name = _libiberty_lambdas(name)
    if " (instance " in name:
        name = _NSYS_LAMBDA.sub(r"{\1#\2}", name)
    if " &" in name or " *" in name:
        name = _SPACED_REFERENCE.sub("", name)
    if "operator (" in name:
        name = name.replace("operator ()", "operator()")
    if "<(" in name or ", (" in name:
        name = _CAST_LITERAL.sub(_plain_literal, name)
    if ">>" in name:
        name = _CLOSERS.sub(" ", name)
    return name


def _plain_literal(found: re.Match[str]) -> str:
    kind, value = found[1], found[2]
    if kind == "bool":
        return "false" if value == "0" else "true"
    return value + _LITERAL_SUFFIX[kind]


def _libiberty_lambdas(name: str) -> str:
    """Turn `'lambda0'(int)` into `{lambda(int)#2}`: LLVM counts from nothing, then 0, 1, ..."""
    written: list[str] = []
    closers: list[str] = []
    done = 0
    for found in _LLVM_UNNAMED.finditer(name):
        written.append(name[done : found.start()])
        done = found.end()
        written.append(_rewritten(found, closers))
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
