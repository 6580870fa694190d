"""Patterns that match one family and nothing else: from the names seen and the candidate's own."""

from __future__ import annotations

import re

from agent.core.names import canonical_name
from agent.core.source import Candidate
from agent.proposing.stems import base_name, copy_name
from agent.source.names import kernel_ref

COPY_OP = "^aten::copy_$"
_SPECIAL = re.compile(r"([\\.+*?()\[\]{}^$|])")
_CONFIGURED = r"_[A-Z]"
_NUMBERED = re.compile(r"float8_copy_kernel_cuda\([^(){}]*\)::\{lambda\([\w:]+\)#\d\}")
_PLAIN = frozenset({"triton", "gluon"})
_SUFFIXED = frozenset({"triton-repr", "flydsl"})
_CPP = frozenset({"hip-global", "aiter-asm"})


def escaped(text: str) -> str:
    """Give a pattern that matches a text literally, with no more escapes than RE2 needs."""
    return _SPECIAL.sub(r"\\\1", text)


def pattern_for(candidate: Candidate, names: tuple[str, ...]) -> str | None:
    """Give a pattern for the family's names; None where none can be exact enough."""
    if candidate.origin in _PLAIN | _SUFFIXED:
        return _python_kernel(candidate, names)
    if candidate.origin in _CPP:
        return _cpp_kernel(names)
    return None


def cast_pattern(name: str, *, known_dtypes: bool) -> str | None:
    """Give a pattern for an ATen copy kernel.

    Where the launching op's dtypes are part of the rule the functor is enough; else the lambda's
    type and the converting template are what tells it from other copies. A copy to FP8 is numbered
    by the type it writes, and only the number tells a cast from the scales of a quantisation.
    """
    copy = copy_name(name)
    if copy is None:
        return None
    if copy.writes_fp8 and (numbered := _NUMBERED.search(canonical_name(name))):
        return escaped(numbered.group())
    if known_dtypes or copy.writes_fp8:
        return escaped(copy.functor)
    if not copy.converts:
        return None
    canonical = canonical_name(name)
    if "gpu_kernel_impl<" in canonical:
        return rf"gpu_kernel_impl<.*{escaped(copy.functor)}.*lambda\({escaped(copy.element)}\)"
    return rf"{escaped(copy.functor)}.*lambda\({escaped(copy.element)}\).*LoadWithCast"


def _python_kernel(candidate: Candidate, names: tuple[str, ...]) -> str | None:
    base = candidate.name
    if not base or not all(name.startswith(base) for name in names):
        return None
    ends = {name[len(base) :] for name in names}
    if ends == {""}:
        return f"^{escaped(base)}$"
    if candidate.origin == "flydsl" and all(re.fullmatch(r"(?:_\d+)?", end) for end in ends):
        return rf"^{escaped(base)}(?:_\d+)?$"
    if candidate.origin in _SUFFIXED and all(re.match(_CONFIGURED, end) for end in ends if end):
        last = f"(?:{_CONFIGURED}|$)" if "" in ends else _CONFIGURED
        return f"^{escaped(base)}{last}"
    return None


def _cpp_kernel(names: tuple[str, ...]) -> str | None:
    """Spell the qualified name out; whatever wraps another kernel is too wide for a rule."""
    heads = {base_name(name) for name in names}
    if len(heads) != 1 or any(kernel_ref(name).payload for name in names):
        return None
    head = heads.pop().removeprefix("(anonymous namespace)::")
    ends = {canonical_name(name).endswith(head) for name in names}
    end = "$" if ends == {True} else r"[<(]" if ends == {False} else r"(?:[<(]|$)"
    return f"(?:^|::| ){escaped(head)}{end}" if head else None
