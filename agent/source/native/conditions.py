"""Under which preprocessor conditions native source is compiled, and for which vendor."""

from __future__ import annotations

import re
from functools import lru_cache

_DIRECTIVE = re.compile(
    rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b((?:[^\n\\]|\\(?:\r?\n)?)*+)", re.MULTILINE
)
_ROCM = frozenset({
    "USE_ROCM", "USE_HIP", "ENABLE_ROCM", "__HIP__", "__HIPCC__", "__HIP_PLATFORM_AMD__",
    "__HIP_PLATFORM_HCC__",
})  # fmt: skip
_CUDA = frozenset({"USE_CUDA", "ENABLE_CUDA", "__NVCC__", "__HIP_PLATFORM_NVIDIA__"})
_MACRO = re.compile(r"(!?)(?:defined\(?)?(\w+)\)?(?:==1|>0|!=0)?")
Branch = tuple[int, int, str]
"""(start, end, vendor): what lies between is compiled for that vendor only."""


def vendor_at(code: bytes, offset: int) -> str:
    """Give the vendor (`rocm`, `cuda`) a place is compiled for only; "" when it is for any."""
    around = (vendor for start, end, vendor in _branches(code) if start <= offset < end)
    return next(around, "")


@lru_cache(maxsize=256)
def _branches(code: bytes) -> tuple[Branch, ...]:
    found: list[Branch] = []
    opened: list[tuple[int, str, str]] = []
    for match in _DIRECTIVE.finditer(code):
        word, rest = match.group(1), "".join(match.group(2).decode("latin-1").split())
        if word not in (b"if", b"ifdef", b"ifndef"):
            if not opened:
                continue
            start, here, otherwise = opened.pop()
            found += [(start, match.start(), here)] if here else []
            if word == b"else":
                opened.append((match.end(), otherwise, ""))
            elif word == b"elif":
                opened.append((match.end(), _vendor(rest) or otherwise, otherwise))
            continue
        rest = f"!{rest}" if word == b"ifndef" else rest
        opened.append((match.end(), _vendor(rest), _vendor(f"!{rest}")))
    return tuple(found)


def _vendor(condition: str) -> str:
    """Give the vendor one test of a macro leaves; "" for anything that says more."""
    told = _MACRO.fullmatch(condition.removeprefix("!!"))
    if told is None:
        return ""
    rocm, cuda = told.group(2) in _ROCM, told.group(2) in _CUDA
    if not (rocm or cuda):
        return ""
    return "rocm" if rocm != bool(told.group(1)) else "cuda"
