"""Which files of a group hold a literal, told by their words instead of by reading every text.

Built in one pass over the text when first asked (0.1 s for 20 MB); a search then costs a tenth of
a millisecond instead of several. Answers are exactly those of `literal in text`.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

_WORD = re.compile(rb"[\w\x80-\xff]+")
_SPACED = bytes(code if _WORD.fullmatch(bytes([code])) else 32 for code in range(256))
_MIN_PART = 4
_MAX_WORDS = 20_000
"""Distinct words of one file; a text of more is no source, and is searched as it stands."""


class WordTable:
    """The words of some texts, each with the texts that hold it; packed, 10 bytes a word."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._texts = texts
        self._odd: list[int] = []
        holders = self._read()
        self._spelled = b" ".join((b"", *holders, b""))
        self._words, self._firsts = array("I", [0]), array("I", [0])
        self._holders = array("I")
        for word, held in holders.items():
            self._words.append(self._words[-1] + len(word) + 1)
            self._holders.extend(held)
            self._firsts.append(len(self._holders))

    def holding(self, literal: bytes) -> list[int]:
        """Give the texts that hold a literal, by their place, in order."""
        part = max(_WORD.findall(literal), key=len, default=b"")
        if len(part) < _MIN_PART:
            return self._searched(literal, range(len(self._texts)))
        found = set(self._with(part))
        if part != literal:
            return self._searched(literal, sorted(found.union(self._odd)))
        return sorted(found.union(self._searched(literal, self._odd)))

    def _read(self) -> dict[bytes, list[int]]:
        holders: dict[bytes, list[int]] = {}
        for index, text in enumerate(self._texts):
            words = set(text.translate(_SPACED).split())
            if len(words) > _MAX_WORDS:
                self._odd.append(index)
                continue
            for word in words:
                holders.setdefault(word, []).append(index)
        return holders

    def _with(self, part: bytes) -> Iterator[int]:
        """Yield the texts of every word that a part stands in."""
        at = self._spelled.find(part)
        while at >= 0:
            word = bisect_right(self._words, at) - 1
            yield from self._holders[self._firsts[word] : self._firsts[word + 1]]
            at = self._spelled.find(part, self._words[word + 1])

    def _searched(self, literal: bytes, likely: Iterable[int]) -> list[int]:
        return [index for index in likely if literal in self._texts[index]]
