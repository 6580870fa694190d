"""All ways profilers and demanglers write the name of one kernel, from its Kineto spelling."""

from __future__ import annotations

import re

from agent.core.names import canonical_name

_INNERMOST_LAMBDA = re.compile(r"\{lambda\(([^{}]*)\)#(\d+)\}")
_CODE_OBJECT_SUFFIXES = (".kd", " [clone .kd]", " (.kd)")


def spellings(name: str) -> tuple[str, ...]:
    """Give a name in every spelling it can have, the given one first, each once.

    A mangled name is also given demangled; a demangled one cannot be mangled again.
    """
    bare = name
    for suffix in _CODE_OBJECT_SUFFIXES:
        bare = bare.removesuffix(suffix)
    kineto = canonical_name(bare)
    forms = [name, bare, kineto, _llvm(kineto), _nsys(kineto)]
    forms += [
        kineto.replace("(anonymous namespace)", other)
        for other in ("<unnamed>", "(unnamed namespace)")
    ]
    forms += [
        form + suffix for form in forms[1:4] for suffix in _CODE_OBJECT_SUFFIXES if suffix != ".kd"
    ]
    forms += [bare + ".kd"]
    return tuple(dict.fromkeys(forms))


def _llvm(name: str) -> str:
    def rewritten(found: re.Match[str]) -> str:
        number = int(found[2])
        return f"'lambda{number - 2 if number > 1 else ''}'({found[1]})"

    return _inside_out(rewritten, name).replace("> >", ">>")


def _nsys(name: str) -> str:
    name = _inside_out(lambda found: f"[lambda({found[1]}) (instance {found[2]})]", name)
    name = re.sub(r"(?<=[<, ])(\d+)(ul|u|l)?(?=[,>])", _nsys_literal, name)
    name = re.sub(
        r"(?<=[<, ])(true|false)(?=[,>])", lambda found: f"(bool){int(found[1] == 'true')}", name
    )
    name = re.sub(r"(?<=[\w>])([*&])(?=[,)>])", r" \1", name)
    name = name.replace("operator()", "operator ()").replace(
        "(anonymous namespace)::", "<unnamed>::"
    )
    return name.replace("> >", ">>")


def _nsys_literal(found: re.Match[str]) -> str:
    kinds = {None: "int", "u": "unsigned int", "l": "long", "ul": "unsigned long"}
    return f"({kinds[found[2]]}){found[1]}"


def _inside_out(rewrite, name: str) -> str:
    while (done := _INNERMOST_LAMBDA.sub(rewrite, name)) != name:
        name = done
    return name
