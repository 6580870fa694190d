"""Kernel names cut down to the part that names the kernel: families are formed by it.

A stem is never a key of anything else: rules, labels and joins keep the raw name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.core.names import canonical_name

_ANONYMOUS = "(anonymous namespace)"
_ANONYMOUS_MARK = "\x00anon\x00"
_OPERATOR = re.compile(r"operator\(\)")
_WRAPPER = re.compile(
    r"(?:^|::)(?:kentry\w*|kernel_entry|[Kk]ernel2?|device_kernel\w*|trampoline_kernel|main_kernel"
    r"|gpu_kernel_impl\w*|gpu_index_kernel|\w*elementwise_kernel\w*|reduce_kernel|ReduceOp"
    r"|func_wrapper_t|\w*UnaryFunctor|BinaryFunctor)$"
)
_CONFIGURED = re.compile(r"_[A-Z][A-Z0-9]*(?:_[A-Z][A-Z0-9]*)*_(?:\d+|None|True|False)(?:_|$)")
_NUMBERED = re.compile(r"(?<=[A-Za-z])_\d+$")
_TENSILE = re.compile(r"^(?:Custom_)?Cijk_[A-Za-z]+_[A-Za-z]+_[A-Z0-9]+")
_COPY = re.compile(r"\b\w*copy_kernel\w*(?=\()")
_LAMBDA = re.compile(r"\{lambda\(([\w:]+)\)#(\d+)\}")
_VENDOR = re.compile(
    r"^(?:Custom_)?Cijk_|^nccl|^Mem(?:cpy|set) |^__amd_rocclr|\brocprim::|\bhipcub::|\bcub::"
    r"|\bthrust::|^nvjet_|\bcutlass_\d+_|_xmma_|^(?:ampere|hopper|sm\d+)_\w+gemm"
)


@dataclass(frozen=True, slots=True)
class CopyName:
    """What the name of an ATen copy kernel tells of the conversion it may do.

    `element` is the lambda's argument: the *source* type of `float8_copy_kernel_cuda`, the common
    type of `direct_copy_kernel_cuda`. `ordinal` tells FP8 formats apart. `converts` is False where
    the template never converts.
    """

    functor: str
    element: str
    ordinal: int
    converts: bool

    @property
    def writes_fp8(self) -> bool:
        """Tell whether the name alone says that the destination is FP8."""
        return self.functor.startswith("float8_copy_kernel")


def copy_name(name: str) -> CopyName | None:
    """Read an ATen copy kernel's name; None when it is none."""
    canonical = canonical_name(name)
    if "at::native::" not in canonical:
        return None
    functor = _COPY.search(canonical)
    if functor is None:
        return None
    element = _LAMBDA.search(canonical, functor.end())
    if element is None:
        return None
    loads = "gpu_kernel_impl<" in canonical or "LoadWithCast" in canonical
    writes = functor.group().startswith("float8_copy_kernel")
    return CopyName(functor.group(), element.group(1), int(element.group(2)), loads or writes)


def is_vendor(name: str) -> bool:
    """Tell whether the kernel belongs to a library whose source no serving checkout holds."""
    return _VENDOR.search(canonical_name(name)) is not None


def base_name(name: str) -> str:
    """Give the qualified function name without return type, template arguments and parameters."""
    head, _ = _split(canonical_name(name))
    return head


def stem_of(name: str) -> str:
    """Give the part of a kernel's name that its variants share."""
    canonical = canonical_name(name)
    copy = copy_name(canonical)
    if copy is not None:
        mark = "" if copy.converts else " nocast"
        return f"{copy.functor}[{copy.element}#{copy.ordinal}]{mark}"
    tensile = _TENSILE.match(canonical)
    if tensile is not None:
        return tensile.group()
    return _typed_stem(canonical)


def _typed_stem(canonical: str, depth: int = 0) -> str:
    head, arguments = _split(canonical)
    if arguments and depth < 4 and _WRAPPER.search(head):
        inner = next((part for part in _arguments(arguments) if "::" in part), "")
        if inner:
            return f"{head}<{_typed_stem(inner, depth + 1)}>"
    if arguments or "::" in head:
        return head
    configured = _CONFIGURED.search(head)
    if configured is not None and configured.start() > 0:
        return head[: configured.start()]
    return _NUMBERED.sub("", head)


def _split(canonical: str) -> tuple[str, str]:
    """Split into the qualified name and the text of its first template argument list."""
    text = _OPERATOR.sub("operator", canonical.replace(_ANONYMOUS, _ANONYMOUS_MARK))
    words: list[str] = []
    word: list[str] = []
    depth = 0
    opened = closed = 0
    for at, char in enumerate(text):
        if char == "<" or (char == "(" and depth):
            opened = at + 1 if not depth else opened
            depth += 1
        elif char in ">)" and depth:
            depth -= 1
            closed = at if not depth else closed
        elif depth:
            continue
        elif char == "(":
            break
        elif char == " ":
            words.append("".join(word))
            word, opened, closed = [], 0, 0
        else:
            word.append(char)
    names = [part for part in (*words, "".join(word)) if part]
    head = names[-1] if names else canonical
    inner = text[opened : closed if closed > opened else len(text)] if opened else ""
    return head.replace(_ANONYMOUS_MARK, _ANONYMOUS), inner.replace(_ANONYMOUS_MARK, _ANONYMOUS)


def _arguments(text: str) -> list[str]:
    """Split a template argument list at its top-level commas."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "<({[":
            depth += 1
        elif char in ">)}]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return parts
