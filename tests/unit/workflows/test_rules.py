"""The `rules` commands as functions: what they give for files of a user."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from agent.core.kernels import Trace
from agent.errors import RuleFileError, UsageError
from agent.ruleset import codec
from agent.workflows import rulefile
from agent.workflows import rules as workflow
from agent.workflows.rulefile import rule_path
from agent.workflows.rules import (
    check_names_file,
    import_file,
    lint_file,
    list_rules,
    preview_upgrade,
    show_rule,
    upgrade_preview,
    write_upgrade,
)
from tests.builders import signature, stats, trace

RULE = """
[[rule]]
id = 'mine.reduce'
category = 'Comm'
kernel = 'our_special_allreduce_k'
grade = 'vendor'
examples = ['our_special_allreduce_k<1>']
counterexamples = ['their_kernel']
"""
FILE = "schema = 1\nversion = 1\n" + RULE
RUN = trace({signature("our_special_allreduce_k"): stats(3, 6_000_000)})


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rule file in a folder that commands run in."""
    (tmp_path / "label-rules.toml").write_text(FILE, encoding="utf-8")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    monkeypatch.setattr(workflow, "_read", lambda traces, progress: RUN if traces else None)
    return tmp_path / "label-rules.toml"


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


class TestLint:
    def test_the_file_found_upwards_is_clean(self, mine: Path) -> None:
        report = lint_file()
        assert (report.findings, report.failed, report.moves) == ((), False, ())
        assert report.ruleset.name == "label-rules.toml"

    def test_errors_of_the_form_and_of_lint_come_at_once(self, mine: Path) -> None:
        ungraded = RULE.replace("mine", "n").replace("'vendor'", "'sure'")
        generic = RULE.replace("mine", "o").replace("'our_special_allreduce_k'", "'kernel'")
        mine.write_text(FILE + ungraded + generic)
        report = lint_file(mine)
        assert report.failed
        assert [(f.code, f.location.rsplit(":", 1)[1]) for f in report.findings] == [
            ("RS003", "16"),
            ("RS023", "20"),
            ("RS008", "25"),
            ("RS009", "26"),
        ]

    def test_a_file_that_is_not_toml_cannot_be_linted(self, mine: Path) -> None:
        mine.write_text("x = [")
        with pytest.raises(RuleFileError):
            lint_file(mine)

    def test_locations_are_relative_to_the_working_folder(
        self, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine.write_text(FILE.replace("counterexamples", "#"))
        monkeypatch.chdir(mine.parent)
        assert [f.location for f in lint_file().findings] == ["label-rules.toml:4"]

    def test_names_that_moved_since_a_revision(self, mine: Path) -> None:
        git(mine.parent, "init", "-q")
        git(mine.parent, "add", ".")
        git(mine.parent, "commit", "-q", "-m", "first")
        mine.write_text(FILE.replace("'Comm'", "'ReduceOP'"))
        report = lint_file(mine, traces=["t"], since="HEAD")
        assert [(m.before, m.after, m.time_ns) for m in report.moves] == [
            ("Comm", "ReduceOP", 6_000_000)
        ]
        [finding] = [f for f in report.findings if f.code == "RS032"]
        assert finding.location == f"{mine}:4"
        assert finding.message == (
            '"our_special_allreduce_k" was Comm, is ReduceOP by "mine.reduce": 3 calls, 6.000 ms'
        )

    def test_a_name_that_no_rule_takes_any_more_moved_too(self, mine: Path) -> None:
        git(mine.parent, "init", "-q")
        git(mine.parent, "add", ".")
        git(mine.parent, "commit", "-q", "-m", "first")
        mine.write_text("schema = 1\nversion = 2\n")
        report = lint_file(mine, traces=["t"], since="HEAD")
        [finding] = [f for f in report.findings if f.code == "RS032"]
        assert finding.location == str(mine)
        assert "was Comm, is Unlabelled: 3 calls" in finding.message
        assert not report.failed

    @pytest.mark.parametrize("revision", ["nowhere", "--output=x", "HEAD", "", "a\nb"])
    def test_a_revision_without_the_file_is_an_error(self, mine: Path, revision: str) -> None:
        git(mine.parent, "init", "-q")
        git(mine.parent, "commit", "-q", "--allow-empty", "-m", "empty")
        with pytest.raises(RuleFileError) as caught:
            workflow._text_at(mine, revision)
        assert caught.value.code == "RS014"
        assert sorted(path.name for path in mine.parent.iterdir()) == [
            ".git",
            "label-rules.toml",
            "sub",
        ]

    def test_since_needs_a_trace(self, mine: Path) -> None:
        with pytest.raises(UsageError, match="trace"):
            lint_file(mine, since="HEAD")


def test_rules_are_listed_by_category(mine: Path) -> None:
    assert [rule.id for rule in list_rules()[1]] == ["mine.reduce"]
    assert list_rules(category="GEMM")[1] == ()
    with pytest.raises(UsageError) as caught:
        list_rules(category="Com")
    assert caught.value.hint == "did you mean Comm?"


def test_a_rule_is_shown_with_its_category_page(mine: Path) -> None:
    found = show_rule("mine.reduce")
    assert (found.rule.id, found.category.id) == ("mine.reduce", "Comm")
    assert found.page.startswith("# Comm")
    with pytest.raises(UsageError) as caught:
        show_rule("mine.reduc")
    assert (caught.value.code, caught.value.hint) == ("RS013", "did you mean mine.reduce?")


def test_a_list_of_names_is_checked(mine: Path) -> None:
    names = mine.with_name("names.tsv")
    names.write_text("kernel_name\tcategory\nour_special_allreduce_k\tReduceOP\n")
    report = check_names_file(names)
    assert (report.total, report.clean, report.wrong[0].got) == (1, False, "Comm")
    with pytest.raises(RuleFileError):
        check_names_file(mine.with_name("missing.tsv"))


def test_a_foreign_file_is_imported_by_its_content(mine: Path) -> None:
    foreign = mine.with_name("foreign.txt")
    foreign.write_text(json.dumps({"e": {"m": {"my_gemm": "gemm", ".*": "misc"}}}))
    report = import_file(foreign)
    assert [rule.category for rule in report.imported.rules] == ["GEMM"]
    foreign.write_text("category,pattern\ngemm,my_gemm\n")
    assert [rule.category for rule in import_file(foreign).imported.rules] == ["GEMM"]
    assert not [f for f in import_file(foreign).findings if f.severity == "error"]


class TestUpgrade:
    OWN = "schema = 1\nversion = 1\nextends = 'builtin@1' # ours\n"

    @pytest.fixture
    def shipped(self, mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        folder = mine.parent / "shipped"
        folder.mkdir()
        (folder / "builtin.toml").write_text(
            FILE.replace("version = 1", "version = 2").replace("'Comm'", "'ReduceOP'")
        )
        (folder / "builtin-1.toml").write_text(FILE)
        for module in (codec, rulefile, workflow):
            monkeypatch.setattr(module, "bundled_folder", lambda name: folder)
        mine.write_text(self.OWN)
        return mine

    def test_what_it_relabels_is_shown_before_it_is_written(self, shipped: Path) -> None:
        preview = preview_upgrade(traces=["t"])
        assert (preview.current, preview.newest, preview.needed) == ("builtin@1", "builtin@2", True)
        assert [(m.name, m.before, m.after, m.time_ns) for m in preview.moves] == [
            ("our_special_allreduce_k", "Comm", "ReduceOP", 6_000_000)
        ]
        assert shipped.read_text() == self.OWN
        write_upgrade(preview)
        assert shipped.read_text() == "schema = 1\nversion = 2\nextends = 'builtin@2' # ours\n"
        assert not preview_upgrade().needed

    def test_lint_says_that_there_is_a_newer_version(self, shipped: Path) -> None:
        assert [(f.code, f.severity) for f in lint_file().findings] == [("RS033", "note")]

    def test_lint_says_which_shipped_rules_are_replaced(self, shipped: Path) -> None:
        shipped.write_text(self.OWN + RULE)
        replaced = [f for f in lint_file().findings if f.code == "RS034"]
        assert [(f.severity, f.location.rsplit(":", 1)[1]) for f in replaced] == [("note", "5")]

    def test_a_file_that_changed_meanwhile_is_not_written(self, shipped: Path) -> None:
        preview = preview_upgrade()
        shipped.write_text(self.OWN + "# more\n")
        with pytest.raises(RuleFileError, match="changed since"):
            write_upgrade(preview)

    def test_a_file_that_extends_nothing_cannot_be_upgraded(self, mine: Path) -> None:
        with pytest.raises(RuleFileError, match="extends nothing"):
            preview_upgrade()

    def test_the_same_labels_move_nothing(self, shipped: Path) -> None:
        other: Trace = trace({signature("x"): stats()})
        assert upgrade_preview(self.OWN, other) == ()


def test_without_any_file_the_shipped_rules_are_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert rule_path().name == "builtin.toml"
    assert list_rules()[0].name == "builtin"
