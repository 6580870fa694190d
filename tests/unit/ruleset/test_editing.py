"""Changing a rule file leaves every other byte as it was."""

from __future__ import annotations

import difflib
import tomllib

import pytest

from agent.core.proposals import Evidence, Origin, Pin
from agent.core.rules import Acceptance, RuleId
from agent.errors import RuleFileError
from agent.ruleset.codec import parse_rules
from agent.ruleset.editing import (
    with_evidence,
    with_extends,
    with_rule,
)
from tests.builders import evidence, rule

FILE = """\
# The team's rules. Ünïcode stays.
schema = 1
version = 7    # +1 for every accepted change

# Our own all-reduce,
# measured by hand.
[[rule]]
id = "comm.ours"          # aligned
category = "Comm"
kernel = '\\bour_reduce_kernel'
grade = "vendor"
examples = [ 'our_reduce_kernel<1>' ,
   "our_reduce_kernel\\u0041", ]

[[rule]]
category = 'GEMM'
id = 'gemm.ours'
kernel = "our_gemm\\\\w+"
grade = 'validated'
[[rule.evidence]]
kind = "definition"   # the def
repo = "sglang"
commit = "0000000000000000000000000000000000000000"
path = "python/kernels.py"
lines = [ 1, 1 ]
guard = 'x'
"""
NEW = rule(
    "attention.new",
    "Attention",
    "^_fwd_kernel_new$",
    examples=("_fwd_kernel_new", "it's 'quoted'"),
    op="^aten::x$",
    evidence=(evidence(snippet="if x:\n    y = '''z'''\n"), evidence(guard="a == 'b'")),
    proposed_by=Origin(provider="openai", model="m", prompt="propose@1"),
    accepted_by=Acceptance("Ann <ann@example.org>", "2026-01-01"),
)


def added_and_removed(old: str, new: str) -> tuple[list[str], list[str]]:
    lines = list(difflib.ndiff(old.splitlines(keepends=True), new.splitlines(keepends=True)))
    return [line[2:] for line in lines if line[0] == "+"], [
        line[2:] for line in lines if line[0] == "-"
    ]


VARIANTS = {
    "as it is": FILE,
    "CRLF": FILE.replace("\n", "\r\n"),
    "no final newline": FILE.rstrip("\n"),
    "byte order mark": "\ufeff" + FILE,
    "blank lines at the end": FILE + "\n\n  \n",
    "a comment at the end": FILE + "# the end",
    "a category at the end": FILE + "\n[[category]]\nid = 'Mine'\ntitle = 'x'\n",
}


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS.keys())
class TestWithRule:
    def test_at_the_end_all_else_stays(self, text: str) -> None:
        new = with_rule(text, NEW)
        assert new.replace("version = 8 ", "version = 7 ").startswith(text)
        assert new.endswith("\n")
        assert ("\r\n" in text) == ("\r\n" in new)
        assert new.count("\r\n") in (0, new.count("\n"))

    def test_before_another_rule_and_its_comment(self, text: str) -> None:
        new = with_rule(text, NEW, before=RuleId("comm.ours"))
        head, tail = text.split("# Our own", 1)
        assert new.startswith(head.replace("version = 7", "version = 8"))
        assert new.endswith("# Our own" + tail)

    def test_the_new_file_means_the_old_one_and_the_rule(self, text: str) -> None:
        old = parse_rules(text.replace("it's", "its"))
        for before, place in ((None, 2), ("comm.ours", 0), ("gemm.ours", 1), ("builtin.one", 2)):
            changed = with_rule(text, rule("a.new", kernel="x'y"), before=before and RuleId(before))
            new = parse_rules(changed)
            assert new.version == old.version + 1
            assert [r.id for r in new.rules if r.id != "a.new"] == [r.id for r in old.rules]
            assert new.rules[place].id == "a.new"
            assert new.rules[place].kernel == "x'y"

    def test_a_second_rule_goes_in_the_same_way(self, text: str) -> None:
        once = with_rule(text, rule("one"))
        assert [r.id for r in parse_rules(with_rule(once, rule("two"))).rules][-2:] == [
            "one",
            "two",
        ]


def test_every_part_of_a_rule_is_written() -> None:
    written = tomllib.loads(with_rule("version = 1\n", NEW))["rule"][0]
    assert written["examples"] == ["_fwd_kernel_new", "it's 'quoted'"]
    assert [entry.get("snippet") for entry in written["evidence"]] == [
        "if x:\n    y = '''z'''\n",
        None,
    ]
    assert written["proposed_by"] == {"provider": "openai", "model": "m", "prompt": "propose@1"}
    assert written["accepted_by"] == {"author": "Ann <ann@example.org>", "date": "2026-01-01"}


def test_patterns_are_literal_strings() -> None:
    assert "kernel = '\\ba\\d+$'\n" in with_rule(FILE, rule("x", kernel=r"\ba\d+$"))


@pytest.mark.parametrize(
    "name", ["it's", "a\tb", "new\nline", "nul\x00", "\x7f", "end'", "'''", '"\\', "é\u2028", ""]
)
def test_any_name_comes_back(name: str) -> None:
    text = with_rule("version = 1\n", rule("x", examples=(name,), kernel=name))
    written = tomllib.loads(text)["rule"][0]
    assert (written["kernel"], written["examples"]) == (name, [name])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("version = [", "RS002"),
        (FILE.replace("comm.ours", "attention.new"), "RS005"),
        ("version = 1\nrule = [{id = 'a'}]\n", "RS002"),
        ("version = 1\nrule = []\n", "RS002"),
        ("version = 1\nrule = 3\n", "RS002"),
        ("version = '1'\n", "RS003"),
        ("version = 1.5\n", "RS003"),
    ],
)
def test_a_file_that_cannot_take_a_rule_is_refused(text: str, code: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        with_rule(text, NEW)
    assert caught.value.code == code
    assert caught.value.findings


@pytest.mark.parametrize("written", ["7", "+7", "0x7", "0b111", "0o7"])
def test_a_version_is_raised_however_it_is_written(written: str) -> None:
    assert with_rule(f"version = {written} # v\n", NEW).startswith("version = 8 # v\n")


def test_a_name_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(RuleFileError, match="not Unicode"):
        with_rule(FILE, rule("x", examples=("bad\udc80",)))


PIN = Pin(
    "1" * 40,
    "100644",
    "b" * 40,
    "call",
    "C.f",
    ("+a == 'b'", "-c"),
    "5" * 64,
    "python 0.25.0",
    "recovered",
)


class TestWithEvidence:
    def test_only_what_changed_is_rewritten(self) -> None:
        moved = evidence(commit="1" * 40, lines=(5, 6), guard="x")
        new = with_evidence(FILE, {RuleId("gemm.ours"): [moved]})
        added, removed = added_and_removed(FILE, new)
        assert added == [
            "version = 8    # +1 for every accepted change\n",
            f"commit = '{'1' * 40}'\n",
            "lines = [5, 6]\n",
        ]
        assert len(removed) == 3

    @pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS.keys())
    def test_keys_come_and_go(self, text: str) -> None:
        pinned = Evidence(
            "definition", "sglang", "1" * 40, "python/kernels.py", (1, 1), symbol="f", pin=PIN
        )
        new = with_evidence(text, {RuleId("gemm.ours"): [pinned]})
        assert parse_rules(new).rules[1].evidence == (pinned,)
        assert "guard =" not in new
        assert parse_rules(new).rules[0].kernel == parse_rules(text).rules[0].kernel

    def test_nothing_changed_is_the_same_text(self) -> None:
        same = parse_rules(FILE).rules[1].evidence
        assert with_evidence(FILE, {RuleId("gemm.ours"): same}) == FILE

    @pytest.mark.parametrize(
        ("rule_id", "count", "code"),
        [("nowhere", 1, "RS013"), ("gemm.ours", 2, "RS012"), ("comm.ours", 1, "RS012")],
    )
    def test_evidence_that_does_not_fit_is_refused(
        self, rule_id: str, count: int, code: str
    ) -> None:
        with pytest.raises(RuleFileError) as caught:
            with_evidence(FILE, {RuleId(rule_id): [evidence()] * count})
        assert caught.value.code == code


def test_extends_is_rewritten_in_place() -> None:
    text = "schema = 1\nversion = 2 # v\nextends = 'builtin@1' # pinned\n"
    assert (
        with_extends(text, "builtin@2")
        == "schema = 1\nversion = 3 # v\nextends = 'builtin@2' # pinned\n"
    )
    with pytest.raises(RuleFileError, match="extends nothing"):
        with_extends(FILE, "builtin@2")
