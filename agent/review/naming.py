"""Readable ids for new rules: category and kernel in kebab case, unique in the rule set."""

from __future__ import annotations

import re
from collections.abc import Container

from agent.core.rules import RuleId

MAX_STEM = 48
_BREAK = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z]{2})|(?<=[A-Z]{2})(?=[A-Z][a-z])"
)
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_CLASS = re.compile(r"\[(?:\\.|[^\]\\])*\]")
_ESCAPE = re.compile(r"\\([a-zA-Z])")
_QUOTED = re.compile(r"\\(.)")
_META = re.compile(r"[\^$.|?*+(){}\[\]<> ,]+")


def new_rule_id(category: str, pattern: str, taken: Container[str]) -> RuleId:
    """Give `category.kernel-stem`; a number is added when that is taken. Deterministic."""
    stem = f"{kebab(category)}.{_stem(pattern)}"
    number, candidate = 1, stem
    while candidate in taken:
        number += 1
        candidate = f"{stem}-{number}"
    return RuleId(candidate)


def kebab(name: str) -> str:
    """Give `CastFromFP8` as `cast-from-fp8`, `MoEGEMM` as `moe-gemm`."""
    spaced = _BREAK.sub("-", name.replace("MoE", "Moe").replace("RoPE", "Rope"))
    return _NOT_WORD.sub("-", spaced.lower()).strip("-") or "rule"


def _stem(pattern: str) -> str:
    """Take the longest literal name out of a pattern."""
    text = _ESCAPE.sub(" ", _CLASS.sub(" ", pattern))
    runs = _META.split(_QUOTED.sub(r"\1", text))
    names = [_NOT_WORD.sub("-", run.split("::")[-1].lower()).strip("-") for run in runs]
    longest = max(names, key=len, default="")
    return longest[:MAX_STEM].rstrip("-") or "kernel"
