"""Which of a rule's evidence is of a kernel, and which of another kernel that the rule names.

Evidence stands in groups: what defines a kernel (a definition, a table row, a binary), then the
emissions that launch it. Emissions that stand before any of these hold for every kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agent.core.names import canonical_name
from agent.core.proposals import Evidence

_COMPONENT = re.compile(r"::|\.")
_VARIANT = re.compile(r"_(?:\d[\dcde]*|[A-Z]\w*)")
"""What Triton and other compilers append for a specialisation: `_0`, `_0d1d2de`, `_BLOCK_M_16`."""


def evidence_of(
    evidence: Sequence[Evidence], kernels: Iterable[str]
) -> tuple[tuple[Evidence, ...], bool]:
    """Give a rule's evidence of these kernels, and whether it is of relatives only.

    It is where the rule defines other kernels and none of these: then all of it is given.
    """
    names = [canonical_name(kernel) for kernel in kernels]
    groups = _groups(evidence)
    defined = [_defined(group[0]) for group in groups]
    if any(defined) and not any(_is_of(one, names) for one in defined):
        return tuple(evidence), True
    kept = [
        group for group, one in zip(groups, defined, strict=True) if not one or _is_of(one, names)
    ]
    return tuple(one for group in kept for one in group), False


def _groups(evidence: Iterable[Evidence]) -> list[list[Evidence]]:
    groups: list[list[Evidence]] = []
    for one in evidence:
        if one.kind == "emission" and groups:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _defined(head: Evidence) -> frozenset[str]:
    """Give the own names of the function that a group's head defines; none of an emission."""
    if head.kind == "emission":
        return frozenset()
    qualified = (head.symbol, head.pin.qualname if head.pin else "")
    return frozenset(_COMPONENT.split(canonical_name(name))[-1] for name in qualified) - {""}


def _is_of(defined: Iterable[str], kernels: Iterable[str]) -> bool:
    return any(_names(kernel, own) for kernel in kernels for own in defined)


def _names(kernel: str, own: str) -> bool:
    """Tell whether a kernel's canonical name has a function's own name, or is a variant of it."""
    if kernel.startswith("_Z"):
        return f"{len(own)}{own}" in kernel
    if kernel.startswith(own) and _VARIANT.fullmatch(kernel, len(own)):
        return True
    return own in re.findall(r"\w+", kernel)
