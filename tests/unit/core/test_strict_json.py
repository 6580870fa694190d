from __future__ import annotations

import pytest

from agent.core.strict_json import read_json


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', 'duplicate key "a"'),
        ('{"b": [{"a": 1, "a": 1}]}', 'duplicate key "a"'),
        ('{"\\u202ea": 1, "\\u202ea": 2}', r'duplicate key "\\u202ea"'),
        ("NaN", "not one JSON value: NaN is not JSON"),
        ("-Infinity", "not one JSON value: -Infinity is not JSON"),
        ("{} {}", "not one JSON value"),
        ("", "not one JSON value"),
        ("[" * 100_000, "not one JSON value"),
    ],
)
def test_what_is_not_one_plain_value_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_json(text)


def test_one_value_is_read() -> None:
    assert read_json(' {"a": [1, "\\u00e9", null]} ') == {"a": [1, "é", None]}
