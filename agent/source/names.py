"""Read a kernel name: its origin family, its qualified name and the type it runs.

Pure string work on canonical names; nothing is looked up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from agent.core.names import canonical_name
from agent.core.source import KernelOrigin

_MANGLED = re.compile(r"_ZN?K?((?:\d+[A-Za-z_]\w*)+)")
_EXTERNAL = (
    "Cijk_", "Custom_Cijk_", "nccl", "nvjet_", "cutlass_", "ampere_", "sm80_", "sm90_", "volta_",
    "turing_", "gemmSN_", "gemv2T_", "gemvNSP_", "__amd_rocclr_", "Memcpy ", "Memset ", "memcpy32_",
    "memcpy128", "hipBLASLt", "miopen", "MIOpen", "cudnn",
)  # fmt: skip
_EXTERNAL_SPACES = (
    "rocprim::", "hipcub::", "cub::", "thrust::", "cublas", "cudnn", "cask_", "cutlass::Kernel",
    "rocblas_", "rocblas::", "hiprand", "rocrand", "curand", "miopen", "gemv2T", "dot_kernel",
    "Tensile",
)  # fmt: skip
_CK = re.compile(r"(?:ck_tile|ck)::|kentry$")
_INDUCTOR = re.compile(r"^triton_(?:poi|red|per|tem|for|mm|bmm|conv)_")
_ATEN_CAST = re.compile(
    r"\b(?:float8_copy_kernel_cuda|direct_copy_kernel_cuda|bfloat16_copy_kernel_cuda"
    r"|float16_copy_kernel_cuda|bfloat16tofloat32_copy_kernel_cuda|CopyFunctor|LoadWithCast)\b"
)
_ATEN = re.compile(
    r"\bat::(?:native|cuda|detail)\b|\bat_cuda_detail\b"
    r"|^void \(anonymous namespace\)::(?:elementwise_kernel|CatArrayBatchedCopy)"
)
_ANONYMOUS = "(anonymous namespace)"
_PLACEHOLDER = "@anonymous@"


@dataclass(frozen=True, slots=True)
class KernelRef:
    """A kernel name taken apart.

    Attributes:
        raw: as the profiler wrote it.
        qualified: namespaces and name, without return type, template arguments and parameters.
        base: the last component of `qualified`.
        spaces: the namespaces, `""` for an anonymous one.
        payload: for `ck_tile::kentry<...>` the qualified type it runs, else "".
        cpp: the name has C++ parts, so it cannot be a Triton name.
        declared: the name goes on to its parameter list, as a demangler writes it.
    """

    raw: str
    qualified: str
    base: str
    spaces: tuple[str, ...]
    payload: str
    cpp: bool
    declared: bool


@lru_cache(maxsize=16_384)
def kernel_ref(raw: str) -> KernelRef:
    """Take a raw kernel name apart."""
    name = canonical_name(raw)
    if name.startswith("_Z"):
        name = _lenient_demangle(name)
    cpp = name != raw.removesuffix(" [clone .kd]").removesuffix(".kd") or bool(
        re.search(r"::|[<(]", name)
    )
    text = name.replace(_ANONYMOUS, _PLACEHOLDER)
    qualified = _last_word(_without_brackets(text))
    parts = [part for part in qualified.split("::") if part]
    base = parts[-1] if parts else name
    spaces = tuple("" if part == _PLACEHOLDER else part for part in parts[:-1])
    payload = _payload(text) if base == "kentry" else ""
    shown = "::".join((*(space or _ANONYMOUS for space in spaces), base))
    return KernelRef(raw, shown, base, spaces, payload, cpp, name.endswith(")"))


@lru_cache(maxsize=16_384)
def origin_of(raw: str) -> KernelOrigin:
    """Tell the family of a kernel name by its spelling; "unknown" leaves it to the source."""
    name = canonical_name(raw)
    ref = kernel_ref(raw)
    if _CK.match(ref.qualified):
        return "ck"
    if name.startswith(_EXTERNAL) or any(
        ref.qualified.startswith(space) or f" {space}" in name[:80] for space in _EXTERNAL_SPACES
    ):
        return "external"
    if _INDUCTOR.match(name):
        return "inductor"
    if _ATEN.search(name):
        return "aten-cast" if _ATEN_CAST.search(name) else "aten"
    return "hip-global" if ref.cpp else "unknown"


@lru_cache(maxsize=16_384)
def template_arguments(raw: str) -> int | None:
    """Count the template arguments of the function a demangled name is of; None if it is cut.

    A bare name says nothing; one with a parameter list and no angle brackets has none.
    """
    ref, name = kernel_ref(raw), canonical_name(raw).replace(_ANONYMOUS, _PLACEHOLDER)
    at = name.find(ref.base)
    rest = name[at + len(ref.base) :] if at >= 0 and ref.base else ""
    if rest.startswith("("):
        return 0
    parts = angle_parts(rest[1:]) if rest.startswith("<") else None
    return None if parts is None else len(parts)


def angle_parts(text: str) -> tuple[str, ...] | None:
    """Split at its commas what stands before the `>` that closes it; None if nothing does."""
    parts: list[str] = []
    start = angles = round_ = 0
    for at, char in enumerate(text):
        if char in "([{":
            round_ += 1
        elif char in ")]}":
            round_ -= 1
        elif round_:
            continue
        elif char == "<":
            angles += 1
        elif char == ">" and text[at - 1 : at] != "-":
            if not angles:
                parts.append(text[start:at].strip())
                return () if parts == [""] else tuple(parts)
            angles -= 1
        elif char == "," and not angles:
            parts.append(text[start:at].strip())
            start = at + 1
    return None


def is_generic_collective(raw: str) -> bool:
    """Tell whether a name is RCCL's `Generic` kernel, which does not name its collective."""
    return bool(re.search(r"nccl(?:Dev)?Kernel_Generic", raw))


def folded(name: str) -> str:
    """Fold case and underscores, to compare a CK type with the function that instantiates it."""
    return name.replace("_", "").casefold()


def _lenient_demangle(name: str) -> str:
    match = _MANGLED.match(name)
    if match is None:
        return name
    rest, parts = name[match.start(1) :], []
    while found := re.match(r"\d+", rest):
        size = int(found.group())
        part = rest[found.end() : found.end() + size]
        if len(part) < size:
            break
        parts.append(part)
        rest = rest[found.end() + size :]
    return "::".join(parts) or name


def _without_brackets(text: str) -> str:
    """Drop `<...>` and everything from the parameter list on; brackets may be unbalanced.

    A `>` within parentheses inside template arguments is a comparison, not an end.
    """
    out: list[str] = []
    angles = round_ = 0
    for index, char in enumerate(text):
        if angles and char in "()":
            round_ = max(round_ + (1 if char == "(" else -1), 0)
        elif char == "<" and not round_:
            angles += 1
        elif char == ">" and angles and not round_ and text[index - 1] != "-":
            angles -= 1
        elif not angles:
            if char in "({[":
                break
            out.append(char)
    return "".join(out)


def _last_word(text: str) -> str:
    words = text.split()
    return words[-1] if words else ""


def _payload(text: str) -> str:
    arguments = text[text.find("<") + 1 :]
    depth, start, pieces = 0, 0, []
    for index, char in enumerate(arguments):
        if char in "<(":
            depth += 1
        elif char in ">)" and depth:
            depth -= 1
        elif char in ",>" and not depth:
            pieces.append(arguments[start:index].strip())
            start = index + 1
            if char == ">":
                break
    for piece in pieces:
        if "::" in piece:
            return _last_word(_without_brackets(piece))
    return ""
