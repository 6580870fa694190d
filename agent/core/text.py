r"""Foreign text made fit to be shown: kernel names, source lines, rule files, model replies.

Nothing that moves a cursor, hides, reorders or colours text gets through; it becomes a visible
escape such as `\x1b` or `\u202e`. Printable text, brackets and backslashes stay verbatim, so the
result is *not* safe as rich markup: print it with `markup=False`.
"""

from __future__ import annotations

import unicodedata

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_INVISIBLE = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0))
) | frozenset(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_TAB = "    "


def shown(text: str, *, limit: int = 0) -> str:
    """Give `text` as one line that is safe to print; cut after `limit` characters, with a note.

    Control, format (bidi, zero-width, tags), private-use and separator characters, invisible
    letters, lone surrogates and noncharacters (no XML may hold U+FFFE) are escaped; a tab and a
    line end are, too.
    """
    cut = len(text) - limit if limit and len(text) > limit else 0
    kept = text[: len(text) - cut]
    if not (kept.isascii() and kept.isprintable()):
        kept = "".join(map(_visible, kept))
    return f"{kept}… ({cut} more characters)" if cut else kept


def shown_block(text: str) -> str:
    """Give several lines that are safe to print: as `shown`, but line ends and tabs stay white."""
    return "\n".join(shown(line.replace("\t", _TAB)) for line in text.split("\n"))


def counted(number: int, noun: str) -> str:
    """Give a number with what it counts: `1 call`, `2,048 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def is_plain(text: str) -> bool:
    """Tell whether `shown` would leave the text as it is."""
    return shown(text) == text


def _visible(char: str) -> str:
    code = ord(char)
    hidden = unicodedata.category(char) in _HIDDEN_CATEGORIES or char in _INVISIBLE
    if not hidden and code & 0xFFFE != 0xFFFE and not 0xFDD0 <= code <= 0xFDEF:
        return char
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
