"""Read the symbol names of an ELF file; nothing else, and nothing outside the given bytes."""

from __future__ import annotations

import struct

_MAX_SYMBOLS = 200_000
_SYMTAB, _DYNSYM = 2, 11


def elf_symbols(content: bytes) -> frozenset[str] | None:
    """Give the names in `.symtab` and `.dynsym`; None when the bytes are not a sound ELF file."""
    if len(content) < 64 or content[:4] != b"\x7fELF" or content[4] not in (1, 2):
        return None
    if content[5] not in (1, 2):
        return None
    try:
        return frozenset(_names(content))
    except (struct.error, ValueError, OverflowError):
        return None


def _names(content: bytes) -> set[str]:
    wide, order = content[4] == 2, "<" if content[5] == 1 else ">"
    if wide:
        table, size, count = (
            struct.unpack_from(f"{order}Q", content, 40)[0],
            *struct.unpack_from(f"{order}HH", content, 58),
        )
    else:
        table, size, count = (
            struct.unpack_from(f"{order}I", content, 32)[0],
            *struct.unpack_from(f"{order}HH", content, 46),
        )
    layout = f"{order}IIQQQQIIQQ" if wide else f"{order}IIIIIIIIII"
    if size < struct.calcsize(layout) or table + size * count > len(content):
        raise ValueError
    sections = [struct.unpack_from(layout, content, table + size * index) for index in range(count)]
    names: set[str] = set()
    for section in sections:
        if section[1] in (_SYMTAB, _DYNSYM) and section[6] < count:
            strings = sections[section[6]]
            text = _slice(content, strings[4], strings[5])
            names.update(_section(_slice(content, section[4], section[5]), text, order, wide=wide))
    return names


def _section(table: bytes, strings: bytes, order: str, *, wide: bool) -> set[str]:
    entry = 24 if wide else 16
    names = set()
    for index in range(min(len(table) // entry, _MAX_SYMBOLS)):
        offset = struct.unpack_from(f"{order}I", table, index * entry)[0]
        if 0 < offset < len(strings):
            end = strings.find(b"\x00", offset)
            names.add(strings[offset : end if end >= 0 else None].decode("utf-8", "replace"))
    return names


def _slice(content: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(content):
        raise ValueError
    return content[offset : offset + size]
