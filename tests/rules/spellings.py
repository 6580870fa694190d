"""The ways profilers and demanglers write one kernel name."""

from __future__ import annotations

import re
from collections.abc import Iterator

LAMBDA = re.compile(r"\{(lambda\([^{}()]*\))#(\d+)\}")


def spellings(name: str) -> Iterator[tuple[str, str]]:
    """Yield (how, name) for the name as given and in every other way it can be written."""
    yield "as given", name
    if not name.endswith((".kd", "]")):
        yield "code object", f"{name}.kd"
        yield "clone", f"{name} [clone .kd]"
    if name.isidentifier() and not name.startswith("_Z"):
        yield "specialised by Triton 2", f"{name}_0d1d2d3de4c56d"
        yield "specialised, of a code object", f"{name}_0d1d2d3d.kd"
    if LAMBDA.search(name):
        yield "LLVM lambdas", LAMBDA.sub(_llvm, name)
        yield "nsys lambdas", LAMBDA.sub(r"[\1 (instance \2)]", name)
    if "(anonymous namespace)" in name:
        yield "nvcc namespace", name.replace("(anonymous namespace)", "<unnamed>")
    if "> >" in name:
        yield "closed brackets", name.replace("> >", ">>")
    if "*" in name or "&" in name:
        yield "spaced references", re.sub(r"(?<=[A-Za-z0-9_])(?=[*&])", " ", name)


def _llvm(found: re.Match[str]) -> str:
    number = int(found[2]) - 2
    return f"'lambda{number if number >= 0 else ''}'{found[1].removeprefix('lambda')}"
