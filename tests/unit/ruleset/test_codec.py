"""Rule file text -> rule set: what a file means, and everything that is wrong with it at once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent.bundled import bundled_folder
from agent.core.rules import RuleSet
from agent.core.vocabulary import VOCABULARY
from agent.errors import RuleFileError
from agent.ruleset import codec
from agent.ruleset.codec import load_builtin, load_rules, parse_rules
from agent.ruleset.files import find_rule_file
from agent.ruleset.lint import lint_rules
from agent.ruleset.writing import file_text

HEAD = "schema = 1\nversion = 7\n"


def rule_toml(
    id: str = "a.b", category: str = "GEMM", kernel: str = "gemm_kernel", rest: str = ""
) -> str:
    return (
        f'\n[[rule]]\nid = "{id}"\ncategory = "{category}"\nkernel = \'{kernel}\'\n'
        f'grade = "vendor"\n{rest}'
    )


def findings_of(text: str) -> list[tuple[str, str]]:
    with pytest.raises(RuleFileError) as caught:
        parse_rules(text, source="rules.toml")
    return [(finding.code, finding.location) for finding in caught.value.findings]


def test_every_key_of_the_format_is_read() -> None:
    text = HEAD + rule_toml(
        rest="""op = '^aten::copy_$'
input_dtypes = ["c10::BFloat16", ""]
overrides = ["x"]
note = "why"
examples = ['gemm_kernel']
counterexamples = ['other']
[[rule.evidence]]
kind = "definition"
repo = "sglang"
commit = "21c4fc6334d13cbc075504353b9abc3716cc069e"
path = "a/b.py"
lines = [3, 4]
symbol = "f"
guard = "x == 1"
snippet = "y"
blob = "00"
[rule.proposed_by]
model = "m"
date = "2026-01-01"
[rule.accepted_by]
author = "A <a@b>"
date = "2026-01-02"
"""
    )
    [rule] = parse_rules(text).rules
    assert (rule.op, rule.input_dtypes, rule.overrides) == (
        "^aten::copy_$",
        ("c10::BFloat16", ""),
        ("x",),
    )
    assert (rule.note, rule.source, rule.line) == ("why", "label-rules.toml", 4)
    assert rule.evidence[0].lines == (3, 4)
    assert rule.evidence[0].pin is not None
    assert rule.proposed_by is not None
    assert rule.proposed_by.date == "2026-01-01"
    assert rule.accepted_by is not None
    assert rule.accepted_by.author == "A <a@b>"


def test_dtypes_unknown_is_read_and_written_back() -> None:
    [rule] = parse_rules(HEAD + rule_toml(rest="dtypes_unknown = true\n")).rules
    assert rule.dtypes_unknown
    assert parse_rules(file_text(version=1, rules=[rule])).rules == (replace(rule, line=4),)


def test_dtypes_cannot_be_asked_for_and_unknown() -> None:
    text = HEAD + rule_toml(rest='input_dtypes = ["float"]\ndtypes_unknown = true\n')
    assert findings_of(text) == [("RS003", "rules.toml:10")]


def test_the_digest_tells_a_rule_for_unknown_dtypes_from_one_for_all() -> None:
    narrow = parse_rules(HEAD + rule_toml(rest="dtypes_unknown = true\n"))
    assert narrow.digest != parse_rules(HEAD + rule_toml()).digest
    plain = parse_rules(HEAD + rule_toml(rest="dtypes_unknown = false\n"))
    assert plain.digest == parse_rules(HEAD + rule_toml()).digest


def test_a_file_begins_with_the_vocabulary_and_may_declare_more() -> None:
    text = (
        HEAD
        + '[[category]]\nid = "Mine"\ntitle = "t"\nrollup = "Others"\n'
        + rule_toml(category="Mine")
    )
    ruleset = parse_rules(text)
    assert ruleset.category_ids == {i for i, _, _ in VOCABULARY} | {"Mine"}
    assert ruleset.rollup_of(ruleset.rules[0].category) == "Others"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(HEAD + "x = [", [("RS002", "rules.toml:3")], id="not TOML"),
        pytest.param(HEAD + "version = 8\n", [("RS002", "rules.toml:3")], id="a key twice"),
        pytest.param("schema = 1\n", [("RS003", "rules.toml:1")], id="no version"),
        pytest.param(HEAD + "other = 1\n", [("RS003", "rules.toml:3")], id="an unknown key"),
        pytest.param(
            HEAD.replace("7", "'7'"), [("RS003", "rules.toml:2")], id="a version in quotes"
        ),
        pytest.param(
            HEAD.replace("7", "true"), [("RS003", "rules.toml:2")], id="a version that is true"
        ),
        pytest.param(
            HEAD.replace("1", "2", 1), [("RS004", "rules.toml:1")], id="a schema of the future"
        ),
        pytest.param(HEAD + "rule = 3\n", [("RS003", "rules.toml:3")], id="rules that are no list"),
        pytest.param(
            HEAD + "rule = [1]\n", [("RS003", "rules.toml:3")], id="a rule that is no table"
        ),
        pytest.param(
            HEAD + rule_toml() + rule_toml(), [("RS005", "rules.toml:11")], id="an id used twice"
        ),
        pytest.param(
            HEAD + rule_toml(category="GEMm"), [("RS006", "rules.toml:6")], id="an unknown category"
        ),
        pytest.param(
            HEAD + rule_toml(category="Unlabelled"),
            [("RS006", "rules.toml:6")],
            id="Unlabelled named",
        ),
        pytest.param(
            HEAD + '[[category]]\nid = "Unlabelled"\ntitle = ""\n',
            [("RS011", "rules.toml:4")],
            id="Unlabelled declared",
        ),
        pytest.param(
            HEAD + '[[category]]\nid = "A"\ntitle = ""\n' * 2,
            [("RS011", "rules.toml:7")],
            id="a category declared twice",
        ),
        pytest.param(
            HEAD + rule_toml(kernel="(?<!x)gemm"), [("RS007", "rules.toml:7")], id="a lookbehind"
        ),
        pytest.param(
            HEAD + rule_toml(rest="op = '('\n"), [("RS007", "rules.toml:9")], id="a broken op"
        ),
        pytest.param(
            HEAD + rule_toml(rest="examples = [\n'gemm_kernel',\n'x']\n"),
            [("RS008", "rules.toml:11")],
            id="an example that does not match",
        ),
        pytest.param(
            HEAD + rule_toml(rest="counterexamples = ['my_gemm_kernel']\n"),
            [("RS009", "rules.toml:9")],
            id="a counterexample that matches",
        ),
        pytest.param(
            HEAD + 'extends = "builtin"\n', [("RS010", "rules.toml:3")], id="extends no version"
        ),
        pytest.param(
            HEAD + 'extends = "builtin@999999"\n',
            [("RS010", "rules.toml:3")],
            id="a version not shipped",
        ),
        pytest.param(
            HEAD + 'extends = "../other.toml"\n',
            [("RS010", "rules.toml:3")],
            id="extends another file",
        ),
        pytest.param(
            HEAD + rule_toml(rest="[[rule.evidence]]\nkind = 'definition'\nlines = [1]\n"),
            [("RS003", "rules.toml:9")] * 3 + [("RS003", "rules.toml:11")],
            id="evidence without its keys",
        ),
        pytest.param(
            HEAD + rule_toml(rest="[rule.accepted_by]\nauthor = 'a'\ndate = 2026-01-01\n"),
            [("RS003", "rules.toml:11")],
            id="a date without quotes",
        ),
        pytest.param(
            HEAD
            + rule_toml(rest="level = 'L4'\n")
            + rule_toml("b", "Nope")
            + rule_toml("c", kernel="("),
            [("RS003", "rules.toml:9"), ("RS006", "rules.toml:13"), ("RS007", "rules.toml:20")],
            id="three rules, each wrong in its way",
        ),
        pytest.param(
            HEAD + rule_toml(category="Nope", kernel="(", rest="level = 'L4'\n"),
            [("RS006", "rules.toml:6"), ("RS007", "rules.toml:7"), ("RS003", "rules.toml:9")],
            id="one rule wrong in three ways",
        ),
        pytest.param(
            HEAD + rule_toml() + rule_toml(kernel="("),
            [("RS005", "rules.toml:11"), ("RS007", "rules.toml:13")],
            id="an id used twice by a rule that is wrong besides",
        ),
    ],
)
def test_everything_wrong_is_found_with_its_line(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert findings_of(text) == expected
    assert findings_of(text.replace("\n", "\r\n")) == expected
    assert findings_of("\ufeff" + text) == expected


def test_the_error_names_the_first_finding_and_counts_the_rest() -> None:
    text = HEAD + rule_toml("b", "GEMm") + rule_toml("c", kernel="(")
    with pytest.raises(RuleFileError, match=r'unknown category "GEMm" \(and 1 more\)') as caught:
        parse_rules(text, source="rules.toml")
    assert str(caught.value).startswith("rules.toml:6: RS006 ")
    assert caught.value.hint == 'did you mean "GEMM"?'


def test_a_hostile_name_is_shown_as_escapes() -> None:
    text = HEAD + rule_toml(rest='examples = ["\\u001b[2J\\u202e"]\n')
    with pytest.raises(RuleFileError) as caught:
        parse_rules(text)
    assert "\\x1b[2J\\u202e" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[" * 5_000, "a = " + "[" * 5_000, "a." * 5_000 + "b = 1", "a = " + "9" * 5_000]
)
def test_toml_that_breaks_parsers_is_an_error(text: str) -> None:
    with pytest.raises(RuleFileError):
        parse_rules(text)


class TestDigest:
    def test_comments_layout_examples_and_authorship_do_not_count(self) -> None:
        text = HEAD + rule_toml(rest="examples = ['gemm_kernel']\nnote = 'x'\n")
        other = "# c\n" + HEAD.replace("7", "8") + rule_toml().replace('"a.b"', "'a.b' # x")
        assert parse_rules(text).digest == parse_rules(other).digest

    @pytest.mark.parametrize(
        "changed",
        [
            rule_toml("y") + rule_toml("x"),
            rule_toml("x", kernel="gemm_kernel2") + rule_toml("y"),
            rule_toml("x", category="MoEGEMM") + rule_toml("y"),
            rule_toml("x", rest="op = 'aten'\n") + rule_toml("y"),
            rule_toml("x") + rule_toml("y").replace("vendor", "inferred"),
            rule_toml("x") + rule_toml("y") + '[[category]]\nid = "GEMM"\ntitle = "t"\n',
        ],
        ids=["order", "pattern", "category", "op", "grade", "a category's row"],
    )
    def test_what_decides_labels_counts(self, changed: str) -> None:
        text = HEAD + rule_toml("x") + rule_toml("y")
        assert parse_rules(text).digest != parse_rules(HEAD + changed).digest

    def test_the_extended_file_counts(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        text = HEAD + 'extends = "builtin@1"\n' + rule_toml()
        one = ship(monkeypatch, tmp_path / "1", {"builtin.toml": (1, rule_toml("x"))})(text)
        two = ship(monkeypatch, tmp_path / "2", {"builtin.toml": (1, rule_toml("z"))})(text)
        assert one.digest != two.digest


def ship(monkeypatch: pytest.MonkeyPatch, folder: Path, files: dict[str, tuple[int, str]]):
    """Let a folder stand for the shipped rules, and give `parse_rules` under it."""
    folder.mkdir(parents=True)
    for name, (version, rules) in files.items():
        (folder / name).write_text(f"schema = 1\nversion = {version}\n{rules}", encoding="utf-8")

    def parse(text: str) -> RuleSet:
        monkeypatch.setattr(codec, "bundled_folder", lambda name: folder)
        return parse_rules(text)

    return parse


class TestExtends:
    def test_own_rules_stand_before_those_of_the_extended_file(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        parse = ship(
            monkeypatch, tmp_path / "r", {"builtin.toml": (3, rule_toml("x") + rule_toml("y"))}
        )
        ruleset = parse(HEAD + 'extends = "builtin@3"\n' + rule_toml("own"))
        assert [(rule.id, rule.source) for rule in ruleset.rules] == [
            ("own", "label-rules.toml"),
            ("x", "builtin@3"),
            ("y", "builtin@3"),
        ]
        assert (ruleset.name, ruleset.version, ruleset.extends) == (
            "label-rules.toml",
            7,
            "builtin@3",
        )

    def test_a_rule_with_a_shipped_id_replaces_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        parse = ship(
            monkeypatch, tmp_path / "r", {"builtin.toml": (3, rule_toml("x") + rule_toml("y"))}
        )
        ruleset = parse(HEAD + 'extends = "builtin@3"\n' + rule_toml("y", "Misc"))
        assert [(rule.id, rule.category) for rule in ruleset.rules] == [
            ("y", "Misc"),
            ("x", "GEMM"),
        ]

    def test_an_earlier_version_stays_what_it_was(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        shipped = {"builtin.toml": (3, rule_toml("new")), "builtin-2.toml": (2, rule_toml("old"))}
        ruleset = ship(monkeypatch, tmp_path / "r", shipped)(HEAD + 'extends = "builtin@2"\n')
        assert [(rule.id, rule.source) for rule in ruleset.rules] == [("old", "builtin@2")]

    def test_a_version_that_is_not_shipped_says_which_is(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        parse = ship(monkeypatch, tmp_path / "r", {"builtin.toml": (3, rule_toml("new"))})
        with pytest.raises(RuleFileError) as caught:
            parse(HEAD + 'extends = "builtin@2"\n')
        assert "builtin@3" in caught.value.hint


def test_the_shipped_file_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parse = ship(monkeypatch, tmp_path / "r", {"builtin.toml": (3, rule_toml("x"))})
    text = HEAD + 'extends = "builtin@3"\n' + rule_toml("own")
    first = parse(text)
    (tmp_path / "r" / "builtin.toml").unlink()
    assert parse(text) == first
    assert codec.builtin_version() == 3


@pytest.mark.parametrize("name", ["builtin.toml", "builtin-2.toml", "builtin_mine.toml"])
def test_a_users_file_is_not_the_shipped_one_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(HEAD + rule_toml("own"), encoding="utf-8")
    ruleset = load_rules(tmp_path / name)
    assert ruleset.name == name
    assert [rule.source for rule in ruleset.rules] == [name]
    assert parse_rules(HEAD + rule_toml("own"), source=name).name == name


def test_the_shipped_file_is_known_by_its_folder() -> None:
    path = bundled_folder("rules") / "builtin.toml"
    assert load_rules(path) == load_builtin()
    assert load_rules(os.path.relpath(path)).name == "builtin"


def test_the_shipped_file_is_the_default() -> None:
    assert load_rules() == load_builtin()
    assert load_rules().name == "builtin"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("missing.toml", None, "missing.toml: RS001 cannot read the rule file"),
        (".", None, ": RS001 cannot read the rule file: it is a folder"),
        ("bytes.toml", b"schema = 1\n\n# \xff\n", "bytes.toml:3: RS001 not UTF-8: byte 0xff"),
        ("empty.toml", b"", "empty.toml:1: RS003 schema: missing"),
        ("nul.toml", b"\x00", "nul.toml:1: RS002 not TOML"),
    ],
)
def test_a_file_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes | None, expected: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RuleFileError) as caught:
        load_rules(tmp_path / name)
    assert expected in str(caught.value)


def test_a_rule_file_is_found_upwards(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "label-rules.toml").write_text(HEAD)
    assert find_rule_file(inner) == tmp_path / "a" / "label-rules.toml"


def test_the_example_in_the_documentation_is_a_clean_rule_file() -> None:
    page = (Path(__file__).parents[3] / "docs" / "rule-file.md").read_text(encoding="utf-8")
    text = page.split("```toml\n", 1)[1].split("```", 1)[0]
    ruleset = parse_rules(text)
    assert not [finding for finding in lint_rules(ruleset) if finding.severity != "note"]
