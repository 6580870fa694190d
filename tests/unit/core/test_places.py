"""Where evidence stands, as readers write it."""

from __future__ import annotations

import pytest

from agent.core.proposals import Evidence


@pytest.mark.parametrize(
    ("commit", "lines", "expected"),
    [
        ("0123456789abcdef" * 2 + "01234567", (12, 12), "engine@0123456789ab a/b.py:12"),
        ("sha256:" + "ab" * 32, (12, 14), "engine@sha256:abababababab a/b.py:12-14"),
    ],
)
def test_a_place_is_the_short_commit_the_path_and_the_lines(
    commit: str, lines: tuple[int, int], expected: str
) -> None:
    assert Evidence("emission", "engine", commit, "a/b.py", lines).place == expected
