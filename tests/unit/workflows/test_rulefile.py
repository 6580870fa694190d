"""Kept rules are those of the text, to the last field; another text or code never meets them."""

from __future__ import annotations

import random

import pytest

from agent.errors import RuleFileError
from agent.kept import KeptFolder
from agent.ruleset import codec
from agent.ruleset.codec import load_builtin
from agent.ruleset.stored import read_rules, write_rules
from agent.workflows import rulefile
from agent.workflows.rulefile import rules_in_force

OWN = """schema = 1
version = 2
extends = "builtin@1"

[[rule]]
id = "mine"
category = "GEMM"
kernel = '^my_kernel$'
grade = "vendor"
examples = ["my_kernel"]
counterexamples = ["your_kernel"]
"""


@pytest.fixture
def kept(tmp_path):
    return KeptFolder(tmp_path / "kept")


@pytest.fixture
def parsed(monkeypatch):
    """The sources that were really parsed."""
    sources: list[str] = []
    real = codec.parse_rules

    def counting(text, *, source, shipped):
        sources.append(source)
        return real(text, source=source, shipped=shipped)

    monkeypatch.setattr(codec, "parse_rules", counting)
    return sources


@pytest.fixture
def rule_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "label-rules.toml"
    path.write_text(OWN)
    return path


def test_every_field_of_the_built_in_rules_comes_back():
    assert read_rules(write_rules(load_builtin())) == load_builtin()


@pytest.mark.usefixtures("rule_file")
def test_a_file_is_parsed_once(kept, parsed):
    plain = rules_in_force()
    assert rules_in_force(kept=kept) == plain
    assert rules_in_force(kept=kept) == plain
    assert plain.rules[0].id == "mine"
    assert len([source for source in parsed if source == "label-rules.toml"]) == 2


def test_a_changed_file_is_parsed_again(rule_file, kept):
    rules_in_force(kept=kept)
    rule_file.write_text(OWN.replace("GEMM", "Comm"))
    assert rules_in_force(kept=kept).rules[0].category == "Comm"


def test_the_same_text_elsewhere_keeps_its_own_name(rule_file, kept):
    rules_in_force(kept=kept)
    other = rule_file.with_name("other.toml")
    other.write_text(OWN)
    assert rules_in_force(other, kept=kept).rules[0].source == "other.toml"


@pytest.mark.usefixtures("rule_file")
def test_other_code_or_shipped_rules_parse_again(kept, parsed, monkeypatch):
    rules_in_force(kept=kept)
    before = len(parsed)
    monkeypatch.setattr(rulefile, "digest_of_files", lambda paths: "another")
    rules_in_force(kept=kept)
    assert len(parsed) > before


def test_a_wrong_file_is_an_error_each_time(rule_file, kept):
    rule_file.write_text(OWN.replace("your_kernel", "my_kernel"))
    for _ in range(2):
        with pytest.raises(RuleFileError, match="RS009"):
            rules_in_force(kept=kept)
    assert not kept.path.exists()


@pytest.mark.usefixtures("rule_file")
def test_damage_is_ignored_and_written_again(kept):
    plain = rules_in_force(kept=kept)
    (entry,) = kept.path.iterdir()
    good = entry.read_bytes()
    rng = random.Random(1)
    flips = [bytearray(good) for _ in range(20)]
    for flipped in flips:
        flipped[rng.randrange(len(good))] ^= 1 << rng.randrange(8)
    for content in (b"", b"hello", b"cos\nsystem\n", good[:-9], *map(bytes, flips)):
        entry.write_bytes(content)
        assert rules_in_force(kept=kept) == plain
    entry.write_bytes(good[:-9])
    rules_in_force(kept=kept)
    assert entry.read_bytes() == good
