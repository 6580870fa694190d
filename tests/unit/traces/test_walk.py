"""A walked document gives what `json` gives, whatever its white space, cuts and contents."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.traces.walk import DamagedJson, Walker


class Point(msgspec.Struct):
    x: int
    label: str = ""


POINTS = msgspec.json.Decoder(list[Point])
SEPARATORS = [(",", ":"), (", ", ": "), (" ,\n", "\t: ")]

hostile = st.text() | st.sampled_from(["},{", '"', "\\", "]}", "{[", "é", "\u2028", "\x7f"])
elements = (
    st.fixed_dictionaries({"x": st.integers(), "label": hostile, "more": st.lists(st.just({}))})
    | st.fixed_dictionaries(
        {"x": st.just("7"), "list": st.lists(st.fixed_dictionaries({"x": st.integers()}))}
    )
    | st.lists(st.integers())
    | st.integers()
    | hostile
    | st.none()
)


def chunks(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def collect(text: bytes, size: int) -> list[Any]:
    taken: list[Any] = []
    walker = Walker(chunks(text, size))
    walker.blocks(POINTS, taken.extend)
    assert walker.peek() == b""
    return [
        {"x": taken_.x, "label": taken_.label} if isinstance(taken_, Point) else taken_
        for taken_ in taken
    ]


def as_points(members: list[Any], taken: list[Any]) -> list[Any]:
    """Reduce the originals to what was kept of those that were decoded as points."""
    return [
        {"x": member["x"], "label": member.get("label", "")}
        if isinstance(member, dict) and set(kept) == {"x", "label"}
        else member
        for member, kept in zip(members, taken, strict=True)
    ]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(elements, max_size=30), st.sampled_from(SEPARATORS), st.integers(1, 90), st.booleans()
)
def test_a_list_is_handed_on_whole_and_in_order(
    members: list[Any], separators: tuple[str, str], size: int, ascii_only: bool
) -> None:
    text = json.dumps(members, separators=separators, ensure_ascii=ascii_only)
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return
    taken = collect(raw, size)
    kept = [member if isinstance(member, dict) else {} for member in taken]
    assert taken == as_points(members, kept)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(elements, lambda inner: st.lists(inner) | st.dictionaries(hostile, inner)),
    st.integers(1, 50),
)
def test_a_skipped_value_ends_where_it_ends(value: Any, size: int) -> None:
    text = json.dumps([value, "end"], indent=1, ensure_ascii=True).encode()
    walker = Walker(chunks(text, size))
    last = None
    for position in walker.elements():
        if position == 0:
            walker.skip()
        else:
            last = walker.value()
    assert last == "end"


def test_members_come_in_the_order_of_the_file() -> None:
    walker = Walker([b'\xef\xbb\xbf {"b": 1, "a":', b" [2, 3]", b', "b": {"c": null}} '])
    assert [(key, walker.value()) for key in walker.members()] == [
        ("b", 1),
        ("a", [2, 3]),
        ("b", {"c": None}),
    ]
    assert walker.peek() == b""


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (b'{"a": 1 "b": 2}', 8),
        (b'{"a" 1}', 5),
        (b"{1: 2}", 2),
        (b'{"a": tru}', 6),
        (b"[1]", 0),
        (b'{"a": 1', 7),
        (b"", 0),
    ],
)
def test_damage_is_named_by_its_byte(text: bytes, at: int) -> None:
    walker = Walker([text])
    with pytest.raises(DamagedJson) as caught:
        _ = [(key, walker.value()) for key in walker.members()]
    assert caught.value.at == at


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"x":1},{"a":', b'{"a":[{"x":1},{"b":'])
def test_deep_nesting_is_damage_not_a_crash(opening: bytes) -> None:
    walker = Walker([opening * 200_000])
    with pytest.raises(DamagedJson):
        walker.skip()


def test_memory_does_not_grow_with_the_list() -> None:
    element = b'{"x": 1, "label": "' + b"y" * 1000 + b'"},'
    count = 0
    widest = 0

    def source() -> Any:
        yield b"["
        for _ in range(5000):
            yield element
        yield b'{"x": 2}]'

    def take(block: Any) -> None:
        nonlocal count, widest
        count += len(block)
        widest = max(widest, len(block))

    Walker(source()).blocks(POINTS, take)
    assert count == 5001
    assert widest < 100
