"""Every code that can be shown has its entry, and every entry is of a code that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PREFIXES = "CL|TR|RS|SC|VF|PR|ML|RV|JR|DF"
CODE = re.compile(rf"""["']((?:{PREFIXES})\d{{3}}|E_[A-Z_]+)["']""")
ENTRY = re.compile(r"^### ((?:[A-Z]{2}\d{3}|E_[A-Z_]+))\b", re.MULTILINE)


def _codes_in_source() -> set[str]:
    sources = (ROOT / "agent").rglob("*.py")
    return {code for path in sources for code in CODE.findall(path.read_text(encoding="utf-8"))}


def _entries() -> list[str]:
    return ENTRY.findall((ROOT / "docs" / "findings.md").read_text(encoding="utf-8"))


def test_each_code_has_an_entry() -> None:
    assert sorted(_codes_in_source() - set(_entries())) == []


def test_each_entry_is_of_a_code_in_use() -> None:
    assert sorted(set(_entries()) - _codes_in_source()) == []


def test_no_code_is_described_twice() -> None:
    entries = _entries()
    assert sorted(entries) == sorted(set(entries))
