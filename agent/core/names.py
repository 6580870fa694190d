"""Kernel names: from the raw name the profiler wrote to the canonical one that rules also see.

The raw name is the key everywhere. The canonical name drops a trailing ` [clone .kd]` or `.kd` and
is demangled when it parses; it is never cut at "(" and its lambda numbers are kept, because they
carry the dtype.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pycxxfilt

_SUFFIX = re.compile(r"(?: \[clone \.kd\]|\.kd)$")
_NSYS_LAMBDA = re.compile(r"\[(lambda\([^()\[\]]*\)) \(instance (\d+)\)\]")
_MAX_MANGLED = 16_384


@lru_cache(maxsize=65_536)
def canonical_name(raw: str) -> str:
    """Give the canonical form of a raw kernel name; the same name when there is nothing to do."""
    name = _SUFFIX.sub("", raw)
    if name.startswith(("_Z", "__Z")) and len(name) <= _MAX_MANGLED:
        name = _demangled(name)
    return _NSYS_LAMBDA.sub(r"{\1#\2}", name)


def _demangled(mangled: str) -> str:
    try:
        demangled = pycxxfilt.demangle(mangled)
    except (ValueError, RuntimeError, UnicodeError):
        return mangled
    return demangled or mangled
