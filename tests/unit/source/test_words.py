"""A table of words answers exactly what reading every text would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.source.snapshot import whole_word
from agent.source.words import WordTable

TEXTS = (
    b"def launch_kernel(x):\n    return kernel_one[grid](x)\n",
    b"from module import *\nlaunch_kernels()\n",
    "größe_kernel = 1\n".encode("latin-1"),
    b"",
)


@pytest.mark.parametrize(
    ("literal", "found"),
    [
        pytest.param(b"launch_kernel", [0, 1], id="a word and a longer one that begins with it"),
        pytest.param(b"ernel_on", [0], id="a piece from the middle of a word"),
        pytest.param(b"import *", [1], id="a word and marks"),
        pytest.param(b"](", [0], id="marks alone"),
        pytest.param(b"x):", [0], id="too short to be looked up"),
        pytest.param(b"\xf6\xdfe_kernel", [2], id="bytes that are no ASCII"),
        pytest.param(b"absent_word", [], id="what no text holds"),
        pytest.param(b"", [0, 1, 2, 3], id="the empty literal is everywhere"),
    ],
)
def test_a_literal_is_found_where_it_stands(literal: bytes, found: list[int]) -> None:
    assert WordTable(TEXTS).holding(literal) == found


def test_a_text_of_endless_different_words_is_still_searched() -> None:
    odd = b" ".join(b"w%d" % number for number in range(20_001)) + b" needle_word"
    assert WordTable((b"needle_word", odd)).holding(b"needle_word") == [0, 1]


SOURCE = st.binary(max_size=60) | st.text("ab_ .(=\n", max_size=60).map(str.encode)


@given(st.lists(SOURCE, max_size=6), SOURCE, st.integers(0, 60), st.integers(0, 12))
def test_answers_are_those_of_a_plain_search(
    texts: list[bytes], other: bytes, start: int, size: int
) -> None:
    literal = b"".join(texts)[start : start + size] or other
    table = WordTable(texts)
    assert table.holding(literal) == [i for i, text in enumerate(texts) if literal in text]


@given(st.text("ab_ .", max_size=40), st.sampled_from(["a", "ab", "a_b", "_"]))
def test_a_whole_word_has_no_word_beside_it(text: str, name: str) -> None:
    spaced = f" {text} "
    starts = [
        at
        for at in range(1, len(spaced) - len(name))
        if spaced.startswith(name, at)
        and not (spaced[at - 1].isalnum() or spaced[at - 1] == "_")
        and not (spaced[at + len(name)].isalnum() or spaced[at + len(name)] == "_")
    ]
    assert [one.start() for one in whole_word(name).finditer(spaced.encode())] == starts
