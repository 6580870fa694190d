"""What a model is shown of a pattern, and how its questions are bounded."""

from __future__ import annotations

import pytest

from agent.core.rules import LabelledTrace
from agent.core.source import SourceHit
from agent.proposing.actions import (
    CheckPattern,
    FindCallSites,
    FindDefinition,
    ReadSource,
    SearchSource,
)
from agent.proposing.families import Family, rank_families
from agent.proposing.fit import fit_of
from agent.proposing.tools import MAX_HITS, MAX_LINES, Question, Toolbox
from agent.ruleset.match import label_trace
from tests.builders import rule, ruleset, signature, stats, trace
from tests.unit.proposing.fakes import MemorySource

OWN = ("scale_rows<1>", "scale_rows<2>")


def _world() -> tuple[Family, LabelledTrace]:
    """Give a family of two names beside a labelled, an unlabelled and a catch-all's kernel."""
    rules = ruleset(
        rule("mla.x", "MLA", "^scale_mla", examples=("scale_mla_rows", "other_scale_rows<9>")),
        rule("misc.x", "Misc", "^scale_misc", examples=("scale_misc_rows",)),
    )
    names = (*OWN, "scale_mla_rows", "scale_misc_rows", "scale_open_rows")
    run = label_trace(trace({signature(name): stats() for name in names}), rules)
    return next(one for one in rank_families(run) if one.names == OWN), run


@pytest.mark.parametrize(
    ("pattern", "matched", "missed", "stolen", "others", "negatives"),
    [
        ("^scale_rows<", OWN, (), (), (), ()),
        ("^scale_rows<1>", OWN[:1], OWN[1:], (), (), ()),
        ("^scale_open", (), OWN, (), ("scale_open_rows",), ()),
        ("scale_mla_rows", (), OWN, (("scale_mla_rows", "mla.x"),), (), ("scale_mla_rows",)),
        ("scale_rows<", OWN, (), (), (), ("other_scale_rows<9>",)),
        (
            *("scale_misc_rows", (), OWN, (("scale_misc_rows", "misc.x"),), ()),
            ("scale_misc_rows",),
        ),
    ],
    ids=["exact", "misses", "others", "steals", "an example of a rule", "a catch-all's"],
)
def test_a_pattern_is_told_what_it_matches_misses_and_steals(
    pattern, matched, missed, stolen, others, negatives
) -> None:
    fit = fit_of(pattern, *_world())
    assert (fit.matched, fit.missed, fit.stolen) == (matched, missed, stolen)
    assert (fit.others, fit.negatives) == (others, negatives)


def test_a_pattern_that_rules_may_not_use_is_refused_before_it_is_tried() -> None:
    family, run = _world()
    said = Toolbox(MemorySource(), run, family).answer(
        CheckPattern(do="test_pattern", kernel="(?=x)")
    )
    assert said.startswith("| refused: E_REGEX_SYNTAX")
    assert "matches" not in said


def test_no_more_lines_are_read_than_a_result_may_hold() -> None:
    family, run = _world()
    source = MemorySource(*(f"line {number}" for number in range(500)))
    question = ReadSource(do="read_source", repo="serve", path="a.py", first=1, last=500)
    assert len(Toolbox(source, run, family).answer(question).split("\n")) == MAX_LINES


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret"])
def test_a_place_outside_the_checkout_is_an_error_in_one_line(path: str) -> None:
    family, run = _world()
    question = ReadSource(do="read_source", repo="serve", path=path, first=1, last=5)
    said = Toolbox(MemorySource(), run, family).answer(question)
    assert said == f"error: no file {path}"


SHORT = [
    SearchSource(do="search_source", text="ab"),
    FindDefinition(do="find_definition", name="k"),
    FindCallSites(do="find_call_sites", symbol=" to "),
]


@pytest.mark.parametrize("question", SHORT, ids=lambda one: one.do)
def test_a_name_of_two_characters_is_not_looked_for_in_any_file(question: Question) -> None:
    family, run = _world()
    source = MemorySource()
    said = Toolbox(source, run, family).answer(question)
    assert source.questions == []
    assert said.startswith("error: ")
    assert said.endswith(" is too short to look for; ask for at least 3 characters")


@pytest.mark.parametrize(("hits", "cut"), [(MAX_HITS, False), (MAX_HITS + 1, True)])
def test_more_hits_than_are_shown_are_cut_with_a_note(hits: int, cut: bool) -> None:
    family, run = _world()
    found = tuple(SourceHit("serve", "a.py", line, "rope") for line in range(1, hits + 1))
    question = SearchSource(do="search_source", text="rope")
    said = Toolbox(MemorySource(hits=found), run, family).answer(question).split("\n")
    assert len([line for line in said if line.startswith("| ")]) == MAX_HITS
    assert (said[-1] == "(there are more; ask for a longer or rarer text)") == cut
