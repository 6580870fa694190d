"""Each category has a page under the fixed headings."""

from __future__ import annotations

import re

import pytest

from agent.bundled import bundled_folder
from agent.ruleset.codec import load_builtin

RULESET = load_builtin()
HEADINGS = [
    "What it covers",
    "What it does not",
    "Example names",
    "Where these kernels come from",
    "Known confusions",
]


@pytest.mark.parametrize("category", sorted(RULESET.category_ids))
def test_a_page_has_the_fixed_headings_and_prose_under_each(category: str) -> None:
    text = (bundled_folder("rules") / f"{category}.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert parts[1::2] == HEADINGS
    assert all(part.strip() for part in parts[2::2])
    assert text.startswith(f"# {category}: ")


def test_every_category_has_a_rule() -> None:
    assert {rule.category for rule in RULESET.rules} == RULESET.category_ids


def test_the_changelog_speaks_of_the_current_version() -> None:
    text = (bundled_folder("rules") / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {RULESET.version}\n" in text
