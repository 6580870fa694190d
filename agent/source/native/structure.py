"""Read HIP and CUDA text: `__global__` heads, namespaces, enclosing functions, macros, launches.

The structure is found lexically on text whose comments and strings are blanked, because real HIP
files seldom parse without errors; tree-sitter then says how well each head was understood.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

_NOISE = re.compile(
    rb"//(?:[^\n\\]|\\(?:\r?\n)?)*+|/\*.*?(?:\*/|\Z)"
    rb"|R\"([A-Za-z0-9_]{0,16})\((?:.{0,4000}?)\)\1\"|\"(?:[^\"\\\n]|\\.)*+\""
    rb"|'(?:[^'\\\n]|\\.){1,8}'",
    re.DOTALL,
)
_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(\w+)((?:[^\n\\]|\\(?:\r?\n)?)*+)", re.MULTILINE)
_DISABLED = re.compile(rb"[ \t]*#[ \t]*if[ \t]+(?:0|false)[ \t]*\r?$", re.MULTILINE)
_MACRO_NAME = re.compile(rb"[ \t]*(\w+)(\(([^)]*)\))?")
_GLOBAL = re.compile(rb"(?<![\w])__global__(?![\w])")
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w*")
_NOT_FUNCTIONS = frozenset(
    b"if for while switch return sizeof catch defined static_assert alignof decltype noexcept "
    b"do else case throw new delete and or not constexpr __attribute__ __launch_bounds__ "
    b"__align__ alignas requires using typedef template operator".split()
)
_MAX_HEAD = 6_000


@dataclass(frozen=True, slots=True)
class GlobalHead:
    """One `__global__` function: `line` is that of its name, `first` that of `__global__`.

    `begins` is the line of its `template`, or of the first specifier.
    `spaces` are the namespaces and classes around it ("" for an anonymous one); `macro` is the
    `#define` that holds it; a head whose name is a macro parameter has `name` "".
    """

    name: str
    spaces: tuple[str, ...]
    line: int
    first: int
    last: int
    offset: int
    begins: int = 0
    macro: str = ""
    body: bool = True

    @property
    def qualified(self) -> str:
        """Give the dotted C++ name."""
        return "::".join((*(space or "(anonymous namespace)" for space in self.spaces), self.name))


@dataclass(frozen=True, slots=True)
class Block:
    """One brace block: `kind` is namespace, class, function or other."""

    kind: str
    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Macro:
    """One function-like or object-like `#define`."""

    name: str
    parameters: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class NativeFile:
    """The lexical structure of one file; `code` has comments and strings blanked."""

    text: bytes
    code: bytes
    blocks: tuple[Block, ...]
    macros: tuple[Macro, ...]
    heads: tuple[GlobalHead, ...]

    @cached_property
    def named_macros(self) -> dict[str, Macro]:
        """Give the macros by name; of several definitions the first."""
        return {macro.name: macro for macro in reversed(self.macros)}

    def macro_at(self, offset: int) -> Macro | None:
        """Give the `#define` an offset lies in."""
        index = bisect_right(self._macro_starts, offset) - 1
        if index >= 0 and offset < self.macros[index].end:
            return self.macros[index]
        return None

    def around(self, offset: int) -> tuple[Block, ...]:
        """Give the blocks around an offset, outermost first."""
        blocks, starts, parents = self._nested
        index = bisect_left(starts, offset) - 1
        found: list[Block] = []
        while index >= 0:
            if offset < blocks[index].end:
                found.append(blocks[index])
            index = parents[index]
        return tuple(reversed(found))

    @cached_property
    def _macro_starts(self) -> list[int]:
        return [macro.start for macro in self.macros]

    @cached_property
    def _nested(self) -> tuple[list[Block], list[int], list[int]]:
        """Give the blocks by their start, the starts, and the block each lies in; -1 for none."""
        blocks = sorted(self.blocks, key=lambda block: block.start)
        parents: list[int] = []
        opened: list[int] = []
        for at, block in enumerate(blocks):
            while opened and blocks[opened[-1]].end <= block.start:
                opened.pop()
            parents.append(opened[-1] if opened else -1)
            opened.append(at)
        return blocks, [block.start for block in blocks], parents

    def enclosing(self, offset: int) -> tuple[str, tuple[str, ...]]:
        """Name the macro or outermost function around an offset, and its classes, inner first."""
        macro = self.macro_at(offset)
        if macro is not None:
            return macro.name, ()
        around = self.around(offset)
        function = next((block.name for block in around if block.kind == "function"), "")
        classes = tuple(block.name for block in reversed(around) if block.kind == "class")
        return function, classes

    def last_line(self, head: GlobalHead) -> int:
        """Give the line on which the body of a head ends."""
        bodies = (one for one in self.blocks if one.start > head.offset)
        body = min(bodies, key=lambda one: one.start, default=None)
        return head.last if body is None else max(_line(self.code, body.end), head.last)

    def noise_at(self, offset: int) -> str:
        """Say whether an offset lies in a `string` or a `comment`; "" for code."""
        for match in _NOISE.finditer(self.text):
            if match.start() > offset:
                return ""
            if offset < match.end():
                return "comment" if match.group().startswith((b"//", b"/*")) else "string"
        return ""


@lru_cache(maxsize=128)
def native_file(text: bytes) -> NativeFile:
    """Read the structure of one file; any bytes are accepted."""
    code = _without_disabled(_NOISE.sub(_blank, text))
    macros = tuple(_macros(code))
    blocks = tuple(_blocks(_without_directives(code)))
    draft = NativeFile(text, code, blocks, macros, ())
    return NativeFile(text, code, blocks, macros, tuple(_heads(draft)))


def _blank(match: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\n]", b" ", match.group())


def _macros(code: bytes) -> Iterator[Macro]:
    for match in _DIRECTIVE.finditer(code):
        if match.group(1) != b"define":
            continue
        named = _MACRO_NAME.match(match.group(2))
        if named:
            parameters = (named.group(3) or b"").decode("utf-8", "replace").split(",")
            yield Macro(
                named.group(1).decode(),
                tuple(
                    parameter.strip(" \t\\\r\n") for parameter in parameters if parameter.strip()
                ),
                match.start(),
                match.end(),
            )


def _without_disabled(code: bytes) -> bytes:
    """Blank what stands between `#if 0` and its `#else` or `#endif`."""
    if _DISABLED.search(code) is None:
        return code
    out, branches = bytearray(code), list[int]()
    for match in _DIRECTIVE.finditer(code):
        word = match.group(1)
        if word in (b"if", b"ifdef", b"ifndef"):
            branches.append(match.end() if _DISABLED.match(match.group()) else -1)
        elif word in (b"else", b"elif", b"endif") and branches:
            start = branches.pop()
            if start >= 0:
                out[start : match.start()] = re.sub(rb"[^\n]", b" ", code[start : match.start()])
            if word != b"endif":
                branches.append(-1)
    return bytes(out)


def _without_directives(code: bytes) -> bytes:
    """Blank directives, and every `#else` branch's braces, so that braces balance."""
    out = bytearray(code)
    branches: list[int] = []
    for match in _DIRECTIVE.finditer(code):
        word = match.group(1)
        if word in (b"if", b"ifdef", b"ifndef"):
            branches.append(-1)
        elif word in (b"else", b"elif", b"endif") and branches:
            start = branches.pop()
            if start >= 0:
                _balance(out, start, match.start())
            if word != b"endif":
                branches.append(match.end())
        out[match.start() : match.end()] = _blank(match)
    return bytes(out)


def _balance(out: bytearray, start: int, end: int) -> None:
    """Blank the braces of a branch whose braces do not balance by themselves."""
    depth = 0
    for byte in out[start:end]:
        depth += (byte == 123) - (byte == 125)
        if depth < 0:
            break
    if depth:
        out[start:end] = out[start:end].translate(bytes.maketrans(b"{}", b"  "))


def _blocks(code: bytes) -> Iterator[Block]:
    """Yield brace blocks; blocks left open end at the end of the file."""
    stack: list[tuple[int, str, str]] = []
    previous = 0
    for match in re.finditer(rb"[{};]", code):
        char, offset = match.group(), match.start()
        if char == b"{":
            kind, name = _block_head(code[max(previous, offset - _MAX_HEAD) : offset])
            stack.append((offset, kind, name))
        elif char == b"}" and stack:
            start, kind, name = stack.pop()
            yield Block(kind, name, start, offset)
        previous = offset + 1
    for start, kind, name in stack:
        yield Block(kind, name, start, len(code))


def _block_head(head: bytes) -> tuple[str, str]:
    text = head.strip()
    if found := re.search(rb"\bnamespace\b\s*((?:\w+(?:\s*::\s*\w+)*)?)\s*$", text):
        return "namespace", re.sub(rb"\s", b"", found.group(1)).decode()
    if text.endswith(b"extern") or re.search(rb"\bextern\s*$", text):
        return "other", ""
    bare = _strip_templates(text)
    if found := re.search(
        rb"\b(?:class|struct|union)\s+(?:\w+\s*\([^)]*\)\s*)?(\w+)[^()=]*$", bare
    ):
        return "class", found.group(1).decode()
    name = _called_name(bare) or _macro_head(bare)
    return ("function", name) if name else ("other", "")


def _macro_head(head: bytes) -> str:
    """Give the macro that stands for a whole function head: `FUNCTION_HEAD {`."""
    return head.decode() if re.fullmatch(rb"[A-Z][A-Z0-9]*_[A-Z0-9_]+", head) else ""


def _strip_templates(text: bytes) -> bytes:
    if text.startswith(b"template") and (opening := text.find(b"<")) >= 0:
        return _strip_templates(text[after_brackets(text, opening, b"<", b">") :].lstrip())
    return text


def _called_name(head: bytes) -> str:
    """Give the name before the first parameter list of a function head; "" for anything else."""
    if head.endswith((b"=", b",", b"(")) or head.startswith((b"enum", b"return")):
        return ""
    position = 0
    while (opening := head.find(b"(", position)) >= 0:
        before = head[:opening].rstrip()
        found = re.search(rb"(~?[A-Za-z_]\w*)(?:<[^()]*>)?$", before)
        if found is None or found.group(1) in _NOT_FUNCTIONS or _is_attribute(found.group(1)):
            if found is not None and found.group(1) == b"operator":
                return "operator"
            if (
                found is not None
                and found.group(1) in _NOT_FUNCTIONS
                and not _is_attribute(found.group(1))
            ):
                return ""
            position = after_brackets(head, opening, b"(", b")")
            continue
        if b"=" in before or b"[" in before[-2:]:
            return ""
        return found.group(1).decode()
    return ""


def _is_attribute(name: bytes) -> bool:
    return name.startswith(b"__") or name in (b"noexcept", b"alignas", b"requires", b"decltype")


def _heads(file: NativeFile) -> Iterator[GlobalHead]:
    for match in _GLOBAL.finditer(file.code):
        directive = file.code.rfind(b"\n", 0, match.start()) + 1
        line = file.code[directive : match.start()].lstrip()
        if re.match(rb"#\s*(?:define\s+\w+\s*$|undef|ifdef|ifndef|if)\b", line):
            continue
        head = _head(file, match.end())
        if head is None:
            continue
        name_offset, name, end, has_body = head
        macro = file.macro_at(match.start())
        if macro is not None and name in macro.parameters:
            name = ""
        around = file.around(match.start())
        spaces = tuple(
            part
            for block in around
            if block.kind in ("namespace", "class")
            for part in (block.name.split("::") if block.name else ("",))
        )
        yield GlobalHead(
            name,
            spaces,
            _line(file.code, name_offset),
            _line(file.code, match.start()),
            _line(file.code, end),
            name_offset,
            _line(file.code, _beginning(file.code, match.start())),
            macro.name if macro else "",
            has_body,
        )


def _beginning(code: bytes, offset: int) -> int:
    """Give the offset of the first token of the declaration an offset lies in."""
    start = max(code.rfind(mark, 0, offset) for mark in (b";", b"}", b"{")) + 1
    for match in _DIRECTIVE.finditer(code, start, offset):
        if b"\\" not in match.group():
            start = match.end()
    before = code[start:offset]
    return start + len(before) - len(before.lstrip(b" \t\r\n\\"))


def _head(file: NativeFile, start: int) -> tuple[int, str, int, bool] | None:
    """Find the name, and the end of the parameter list, of the head after `__global__`."""
    code = file.code
    limit = min(start + _MAX_HEAD, len(code))
    position = start
    while position < limit:
        opening = code.find(b"(", position, limit)
        if opening < 0:
            return None
        before = code[start:opening].rstrip(b" \t\r\n\\")
        found = re.search(rb"([A-Za-z_]\w*)(?:\s*##\s*\w+)?(?:<[^()]*>)?$", before)
        closing = after_brackets(code, opening, b"(", b")")
        if (
            found
            and not _is_attribute(found.group(1))
            and not _bounds(code, closing, found.group(1))
        ):
            rest = code[closing : closing + 300].lstrip(b" \t\r\n\\")
            body = rest[:1] == b"{" or not re.match(rb"[^{;]{0,200};", rest)
            return start + found.start(1), found.group(1).decode(), closing, body
        position = closing if closing > opening else opening + 1
    return None


def _bounds(code: bytes, closing: int, name: bytes) -> bool:
    """Tell whether `NAME(...)` is a macro attribute: another identifier follows it."""
    if not re.fullmatch(rb"[A-Z][A-Z0-9_]*", name):
        return False
    rest = code[closing : closing + 200].lstrip(b" \t\r\n\\")
    return bool(_IDENTIFIER.match(rest))


def after_brackets(text: bytes, opening: int, left: bytes, right: bytes) -> int:
    """Give the offset after the bracket that closes the one at `opening`; the end if none does."""
    depth = 0
    for match in re.finditer(
        b"[" + re.escape(left) + re.escape(right) + b";{]", text[opening : opening + _MAX_HEAD]
    ):
        char = match.group()
        if char == left:
            depth += 1
        elif char == right:
            depth -= 1
            if depth <= 0:
                return opening + match.end()
        elif char == b";" and left == b"<":
            return opening + match.start()
    return min(opening + _MAX_HEAD, len(text))


def _line(code: bytes, offset: int) -> int:
    return code.count(b"\n", 0, offset) + 1
