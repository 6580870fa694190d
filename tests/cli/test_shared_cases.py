"""The handed cases by command: exit code, totals, texts and stamps are what their files say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, Run
from tests.conftest import SHARED

CASES = SHARED / "cases"
FOLDERS = sorted(path.parent for path in CASES.glob("*/expected.json"))
READ = ("summarise", "diff")
BY_OTHER_TESTS = {
    "26-rule-order-shadowing": "tests/unit/ruleset",
    "31-llm-json-escapes": "tests/unit/proposing",
    "33-hostile-regex": "tests/unit/ruleset",
    "34-claimed-source-evidence": "tests/unit/source",
    "36-git-unrelated-work": "tests/unit/review",
    "41-llm-provider-errors": "tests/unit/proposing",
    "42-large-trace": "tests/unit/traces",
}
TEXTS = {
    "line/column or byte offset of the first bad token": r":\d+: .*byte \d+ \(column \d+\)",
    "how to read it anyway": r"--salvage",
    "truncated / ends inside event 4": r"truncated.*ends inside event 4",
    "byte size read": r"\d+ bytes",
    "control character": r"control characters?",
    "incomplete capture on side b": r"incomplete capture on side new",
    "delta not trustworthy": r"delta is not trustworthy",
    "unequal work: every shared category has 0.9x the calls (10 vs 9 steps)": (
        r"unequal work: every shared category has 0\.9x the calls \(10 against 9 steps\)"
    ),
    "normalised result has the opposite sign": r"normalised, .* the opposite sign",
}
"""What a case asks to be said, where it describes the text or says it in other words."""


def document(folder: Path) -> dict[str, Any]:
    text = (folder / "expected.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def inputs(folder: Path) -> list[tuple[str, bool, dict[str, Any]]]:
    """Give (input, salvage, expectation) for all that a case says of single inputs."""
    case = document(folder)
    names, expect = case["inputs"], case["expect"]
    if "outcome" in expect:
        return [(names[0], False, expect)]
    known = {"default": (names[0], False), "salvage": (names[0], True)}
    known |= {name: (name, False) for name in names}
    found = [(*known[key], value) for key, value in expect.items() if key in known]
    folders = [key for key in expect if key.endswith("(a directory)")]
    return [*found, *((key.partition("/")[0], False, expect[key]) for key in folders)]


def rule_file(folder: Path) -> Path:
    """Write RULES.json as rules of ours."""
    rules = ["schema = 1\nversion = 1\n"]
    rows = json.loads((CASES / "RULES.json").read_text(encoding="utf-8"))["rules"]
    for number, (category, match) in enumerate(rows):
        by_name = isinstance(match, str)
        pattern = match.replace("(?i)rmsnorm", "[Rr][Mm][Ss][Nn][Oo][Rr][Mm]") if by_name else ".+"
        dtypes = "" if by_name else f"input_dtypes = {json.dumps([match['dst'], match['src']])}\n"
        op = "" if by_name else f"op = '^{match['op']}$'\n"
        rules.append(
            f'[[rule]]\nid = "r{number}"\ncategory = "{category}"\nkernel = \'{pattern}\'\n'
            f'{op}{dtypes}grade = "vendor"\nexamples = []\ncounterexamples = []\n'
        )
    path = folder / "rules.toml"
    path.write_text("\n".join(rules), encoding="utf-8")
    return path


def says(text: str, wanted: list[str]) -> None:
    text = " ".join(text.split())
    for words in wanted:
        assert re.search(TEXTS.get(words, re.escape(words)), text), (words, text)


TRIED = [
    (folder, *tried)
    for folder in FOLDERS
    if document(folder)["intent"] in READ and folder.name not in BY_OTHER_TESTS
    for tried in inputs(folder)
]


@pytest.mark.parametrize(
    ("folder", "name", "salvage", "expect"), TRIED, ids=lambda value: str(value)[-40:]
)
def test_label(
    run: Run, tmp_path: Path, folder: Path, name: str, salvage: bool, expect: dict[str, Any]
) -> None:
    arguments = ["label", folder / name, *(["--salvage"] if salvage else [])]
    done = run(*arguments, "--json")
    if expect.get("outcome", "ok").startswith("error"):
        assert done.code == 2
        assert done.out == ""
        assert "hint: " in done.err
        says(done.err, expect.get("must_say", []))
        return
    assert done.code == 0, done.err
    result = json.loads(done.out)
    check_totals(result, expect)
    says(run(*arguments).out, expect.get("must_say", []))
    if "stamp" in expect:
        assert "INCOMPLETE" in done.out
        assert "INCOMPLETE" in run(*arguments).out
    if "categories" in expect:
        table = json.loads(run(*arguments, "--rules", rule_file(tmp_path), "--json").out)
        rows = {row["id"]: row for row in table["categories"]}
        for category, sums in expect["categories"].items():
            assert (rows[category]["count"], rows[category]["time_ns"]) == tuple(sums.values())


def check_totals(result: dict[str, Any], expect: dict[str, Any]) -> None:
    totals = result["totals"]
    wanted = {
        "kernels": expect.get("kernel", {}).get("count"),
        "kernel_ns": expect.get("kernel", {}).get("time_ns", expect.get("time_ns")),
        "busy_ns": expect.get("busy_ns"),
        "span_ns": expect.get("span_ns"),
        "clipped_ns": expect.get("time_ns_clipped_to_next_on_stream"),
    }
    wanted = {key: value for key, value in wanted.items() if value is not None}
    assert {key: totals[key] for key in wanted} == wanted
    if "ranks" in expect:
        assert {rank["label"]: rank["kernel_ns"] for rank in result["ranks"]} == expect["ranks"]


@pytest.mark.parametrize(
    "folder", [path for path in FOLDERS if document(path)["intent"] == "diff"], ids=lambda p: p.name
)
def test_diff(run: Run, folder: Path) -> None:
    expect = document(folder)["expect"]
    said = [*expect.get("must_say", []), *expect.get("diff a.json b.json", {}).get("must_say", [])]
    done = run("diff", folder / "a.json", folder / "b.json")
    assert done.code == 0
    says(done.out, said)
    result = json.loads(run("diff", folder / "a.json", folder / "b.json", "--json").out)
    if "raw" in expect:
        assert result["ledger"]["net_ns"] == expect["raw"]["delta_ns"]


def test_a_side_that_is_damaged_or_empty_is_refused(run: Run, shared: Path) -> None:
    good = CASES / "13-concurrent-streams" / "trace.json"
    cut = CASES / "05-truncated-json" / "trace.json"
    refused: list[Done] = [
        run("diff", CASES / "07-no-gpu-events" / name, good)
        for name in ("cpu-only.json", "annotations-only.json", "empty-list.json")
    ]
    refused += [run("diff", cut, good), run("diff", good, cut, "--salvage")]
    for done in refused:
        assert (done.code, done.out) == (2, "")
        assert "hint: " in done.err
    assert "--allow-incomplete" in refused[-1].err
    forced = run("diff", good, cut, "--salvage", "--allow-incomplete")
    assert forced.code == 0
    assert "INCOMPLETE" in forced.out


@pytest.mark.parametrize("form", ["text", "md", "csv", "json"])
def test_names_that_look_like_markup_appear_verbatim(run: Run, shared: Path, form: str) -> None:
    path = CASES / "39-rich-markup-names" / "trace.json"
    out = run("label", path, "--kernels", "--format", form).out
    out = " ".join(out.replace('""', '"').replace("\\", "").split())
    for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]:
        assert event["name"] in out


def test_every_handed_case_is_some_test_s(shared: Path) -> None:
    here = {folder.name for folder in FOLDERS if document(folder)["intent"] in READ}
    assert {folder.name for folder in FOLDERS} == here | set(BY_OTHER_TESTS)
