"""What can be read of a mangled name that does not demangle, because a tool cut it short.

A table of kernels often keeps the first 60 to 128 characters. Of `_Z` names that is not a name any
more, but its identifiers stand in it in clear, each behind its length. They are written as the
demangled name would write them, as far as it goes; literals and builtin types are passed over.
"""

from __future__ import annotations

import re

_MAX_READ = 512
_MAX_FIRST = 32
"""What is read, and how long the first namespace may be that later parts refer to."""

_PART = re.compile(
    r"L[a-z]n?[0-9]+E|D[A-Za-z](?:[0-9]+[a-z_]?)?|S[0-9A-Z]*_|[0-9]{1,4}|.", re.DOTALL
)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ANONYMOUS = "_GLOBAL__N_1"
_QUALIFIERS = "NKPRO"
"""Letters before a name that do not end the one before it: nested, const, pointer, references."""


def read_cut(mangled: str) -> str:
    """Give `ck_tile::kentry<ck_tile::Layernorm2dFwd<...` of a cut name; "" where nothing reads."""
    text = mangled[:_MAX_READ]
    written: list[str] = []
    first, joint = "", ""
    at = text.find("_Z") + 2
    while at < len(text) and (part := _PART.match(text, at)):
        at = part.end()
        word = ""
        if part[0].isdigit():
            word, at = text[at : at + int(part[0])], at + int(part[0])
            if not _WORD.fullmatch(word):
                return "".join(written)
            word = "(anonymous namespace)" if word == _ANONYMOUS else word
            first = first or word
        elif part[0] == "S_" and len(first) <= _MAX_FIRST:
            word = first
        if word:
            written += (joint, word)
            joint = "::"
        elif part[0] == "I":
            written.append("<")
            joint = ""
        elif part[0] not in _QUALIFIERS and written and written[-1] != "<":
            joint = ", "
    return "".join(written)
