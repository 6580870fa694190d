from __future__ import annotations

import pytest

from agent.core.text import counted, is_plain, shown, shown_block


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("k[/x] [bold]red[/bold] :warning:", id="rich markup is only text"),
        pytest.param(r"^moe\d+_\\x1b", id="backslashes stay"),
        pytest.param("void at::native::k<float>(c10::BFloat16)", id="a kernel name"),
        pytest.param("größer → 注意力 é", id="printable letters of any script"),
    ],
)
def test_printable_text_is_shown_verbatim(text: str) -> None:
    assert shown(text) == text
    assert is_plain(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("\x1b[31mred", r"\x1b[31mred", id="escape sequence"),
        pytest.param("a\rb\nc\td\x00", r"a\x0db\x0ac\x09d\x00", id="C0 controls"),
        pytest.param("\x9b31m\x7f", r"\x9b31m\x7f", id="C1 control and DEL"),
        pytest.param("ab\u202ecd\u2066", r"ab\u202ecd\u2066", id="bidi"),
        pytest.param("a\u200bb\ufeff\u00ad", r"a\u200bb\ufeff\xad", id="zero width"),
        pytest.param("\ud800x", r"\ud800x", id="lone surrogate"),
        pytest.param("\U000e0041", r"\U000e0041", id="tag characters"),
        pytest.param("\u2028\u2029\ue000", r"\u2028\u2029\ue000", id="separators, private use"),
        pytest.param(
            "\ufffe\uffff\ufdd0\U0001ffff", r"\ufffe\uffff\ufdd0\U0001ffff", id="no characters"
        ),
        pytest.param("\u3164\ufe0f", r"\u3164\ufe0f", id="invisible letters"),
    ],
)
def test_what_would_hide_or_move_text_is_escaped(text: str, expected: str) -> None:
    assert shown(text) == expected
    assert not is_plain(text)
    shown(text).encode("utf-8")


def test_a_cut_is_said_and_counts_the_characters_left_out() -> None:
    assert shown("x" * 4000, limit=10) == "xxxxxxxxxx… (3990 more characters)"
    assert shown("x" * 10, limit=10) == "x" * 10


def test_a_block_keeps_its_lines_and_widens_its_tabs() -> None:
    assert shown_block("\tif x:\r\n\t\ty\x1b") == "    if x:\\x0d\n        y\\x1b"


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 calls"), (1, "1 call"), (2, "2 calls"), (2_048, "2,048 calls")]
)
def test_one_is_not_counted_in_the_plural(number: int, said: str) -> None:
    assert counted(number, "call") == said
