"""Casts in Python source: which way a conversion goes, and whether it is on the KV path.

The direction is read from the expression, the local assignments and the guards; what cannot be
read is "unknown", never guessed. FP8 names follow PyTorch; the number after the lambda of
`float8_copy_kernel_cuda` is 1 e4m3fn, 2 e5m2, 3 e4m3fnuz, 4 e5m2fnuz, 5 e8m0fnu.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from agent.source.parse import captures, text_of
from agent.source.python.kvcache import (
    FP8,
    decides,
    holds_kv,
    is_elsewhere,
    is_other_cache,
    is_pool,
    stores_kv,
)
from agent.source.python.sites import Site

Kind = Literal["fp8", "wide", "cache", "parameter", "device", "other", "unknown"]
Direction = Literal["from", "to", "unknown", "none"]
_WIDE = re.compile(
    r"\b(?:bfloat16|float16|float32|half|float|double|bf16|fp16|fp32)\b", re.IGNORECASE
)
_OTHER = re.compile(r"\b(?:u?int(?:8|16|32|64)|long|bool|complex\d*)\b|\buint8\b", re.IGNORECASE)
_DEVICE = re.compile(r"^[rbuf]?[\"'](?:cpu|cuda|hip|npu|xpu|meta|mps)|\bdevice\b", re.IGNORECASE)
_WEIGHT = re.compile(
    r"(?:^|[._])(?:w|weights?|w_\w+|w\d+|scales?|bias|lora_\w+|params?)(?:$|[._\[(])"
)
_ACTIVATION = re.compile(
    r"^(?:self\.)?(?:q|q_\w+|query\w*|x|hidden\w*|input\w*|out\w*|o|logits)(?:$|[.\[(])"
)
_POOL_SELF = re.compile(r"^self\.(?:store_)?dtype$")
_CACHE_DTYPE = re.compile(r"(?:kv_cache|kv|cache)_dtype$")
_METHODS = {
    "to": "",
    "type": "",
    "bfloat16": "wide",
    "half": "wide",
    "float": "wide",
    "double": "wide",
}
_MAX_STEPS = 4


@dataclass(frozen=True, slots=True)
class Cast:
    """One conversion: what is converted, to what, and whether it touches the KV cache."""

    direction: Direction
    subject: str
    destination: str
    kind: Kind
    on_kv_path: bool
    is_weight: bool


def read_cast(site: Site, path: str) -> Cast | None:  # noqa: PLR0911 - one per way to convert
    """Read a site as a conversion; None when it converts nothing."""
    if site.kind == "assignment":
        return _store(site, path)
    if site.kind != "call":
        return None
    function = site.node.child_by_field_name("function")
    if function is None or function.type != "attribute":
        return None
    method, subject = (
        function.child_by_field_name("attribute"),
        function.child_by_field_name("object"),
    )
    if method is None or subject is None:
        return None
    name, source = text_of(method), "".join(text_of(subject).split())
    if name == "copy_":
        return _cast(site, path, source, "", "unknown")
    if name not in _METHODS:
        return None
    fixed = _METHODS[name]
    if fixed:
        return _cast(site, path, source, f"torch.{name}", "wide")
    return _converted(site, path, source)


def cast_destination(name: str) -> Kind | None:
    """Give what a copy kernel's name says it writes: `fp8`, `wide`, or None when it does not.

    `direct_copy_kernel_cuda` carries the destination as the type of its lambda; the name of an
    FP8 copy is its destination.
    """
    if "float8_copy_kernel_cuda" in name:
        return "fp8"
    if re.search(r"bfloat16_copy_kernel_cuda|float16_copy_kernel_cuda|tofloat32_copy", name):
        return "wide"
    if "direct_copy_kernel_cuda" in name:
        found = re.search(r"lambda\(([\w:]+)\)", name)
        if found is None:
            return None
        return "fp8" if "Float8" in found.group(1) else "wide"
    return None


def never_casts(name: str) -> bool:
    """Tell whether a copy kernel's name says that both sides have one type."""
    return "gpu_kernel_impl_nocast" in name


def _converted(site: Site, path: str, source: str) -> Cast:
    arguments = site.node.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    stated: list[tuple[str, str]] = []
    for argument in given:
        name = argument.child_by_field_name("name") if argument.type == "keyword_argument" else None
        value = argument.child_by_field_name("value") if name is not None else argument
        if value is not None and argument.type != "comment":
            stated.append(
                (text_of(name) if name is not None else "", "".join(text_of(value).split()))
            )
    dtype = next((value for name, value in stated if name == "dtype"), "")
    if not dtype:
        plain = [value for name, value in stated if not name]
        dtype = next((value for value in plain if not _DEVICE.search(value)), "")
    if not dtype:
        return _cast(site, path, source, stated[0][1] if stated else "", "device")
    return _cast(site, path, source, dtype, _kind_of(site, path, dtype, 0))


def _kind_of(site: Site, path: str, expression: str, steps: int) -> Kind:  # noqa: PLR0911 - a table
    if _DEVICE.search(expression):
        return "device"
    if FP8.search(expression):
        return "fp8"
    if _CACHE_DTYPE.search(expression) or (_POOL_SELF.search(expression) and is_pool(site)):
        return "cache"
    if expression.endswith(".dtype"):
        owner = expression.removesuffix(".dtype")
        if not _ACTIVATION.match(owner) and holds_kv(site, owner):
            return "cache"
        return "wide" if _ACTIVATION.match(owner) or "weight" in owner else "unknown"
    if _WIDE.search(expression):
        return "wide"
    if _OTHER.search(expression):
        return "other"
    if re.fullmatch(r"[A-Za-z_]\w*", expression) and steps < _MAX_STEPS:
        return _variable(site, path, expression, steps)
    return "unknown"


def _variable(site: Site, path: str, name: str, steps: int) -> Kind:
    function = next(
        (one for one in reversed(site.chain) if one.type == "function_definition"), None
    )
    if function is None:
        return "unknown"
    query = "(assignment left: (identifier) @left right: (_) @right) @a"
    best: Node | None = None
    for assigned in captures("python", query, function).get("a", []):
        left = assigned.child_by_field_name("left")
        if left is not None and text_of(left) == name and assigned.end_byte <= site.node.start_byte:
            best = assigned.child_by_field_name("right")
    if best is not None:
        return _kind_of(site, path, "".join(text_of(best).split()), steps + 1)
    parameters = function.child_by_field_name("parameters")
    if parameters is not None and re.search(rf"\b{re.escape(name)}\b", text_of(parameters)):
        return "parameter"
    return "unknown"


def _store(site: Site, path: str) -> Cast | None:
    right = site.node.child_by_field_name("right")
    if right is None:
        return None
    source = "".join(text_of(right).split())
    kind: Kind = "cache" if stores_kv(site.callee) else "unknown"
    return _cast(site, path, source, site.callee, kind)


def _cast(site: Site, path: str, subject: str, destination: str, kind: Kind) -> Cast:
    weight = bool(_WEIGHT.search(subject))
    on_path = not (weight or is_elsewhere(path)) and (
        holds_kv(site, subject)
        or (site.kind == "assignment" and kind == "cache")
        or (kind == "cache" and is_pool(site) and not is_other_cache(subject))
    )
    return Cast(
        _direction(site, kind, on_kv_path=on_path), subject, destination, kind, on_path, weight
    )


def _direction(site: Site, kind: Kind, *, on_kv_path: bool) -> Direction:
    if kind in ("device", "other"):
        return "none"
    if kind in ("fp8", "cache"):
        return "to"
    if kind == "wide":
        reads_fp8 = any(guard.startswith("+") and decides(guard, "from") for guard in site.guards)
        return "from" if reads_fp8 or on_kv_path else "unknown"
    return "unknown"
