from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from agent.core.proposals import Decision, Finding, Origin, Pin, Verdict
from agent.errors import JournalError
from agent.review.journal import Journal, Record, journal_path
from agent.review.records import (
    Intent,
    KeptRun,
    kept_in,
    run_record,
    verdict_from,
    verdict_record,
)
from tests.builders import evidence, proposal


def _pin() -> Pin:
    return Pin("0" * 40, "100644", "1" * 40, "call", "f.g", ("+a == b",), "2" * 64, "python 0.25")


def _verdict(proposal_id: str = "a", *, admitted: bool = True, **fields: object) -> Verdict:
    wanted = proposal(
        id=proposal_id,
        input_dtypes=("c10::BFloat16", ""),
        overrides=("elementwise.aten",),
        origin=Origin("openai", "gpt", date="2026-01-01"),
        evidence=(evidence(kind="emission", guard="x"),),
    )
    pinned = (replace(wanted.evidence[0], pin=_pin()),)
    findings = (Finding("E_X", "why", "warning" if admitted else "error", "p:1", "hint"),)
    values = {"findings": findings, "evidence": pinned, "matched": ("k\ud800",)}
    return Verdict(wanted, admitted, "L3" if admitted else "L1", **{**values, **fields})  # type: ignore[arg-type]


def _decision(proposal_id: str, action: str) -> dict[str, object]:
    return asdict(Decision(proposal_id, action, "Ada <a@b>", "why"))  # type: ignore[arg-type]


def _records(*written: tuple[str, dict[str, object]]) -> list[Record]:
    return [Record(seq, kind, data) for seq, (kind, data) in enumerate(written, 1)]


@pytest.mark.parametrize("admitted", [True, False])
def test_a_verdict_survives_the_journal_whole(tmp_path: Path, *, admitted: bool) -> None:
    verdict = _verdict(admitted=admitted)
    with Journal(journal_path(tmp_path)) as journal:
        journal.append("verdict", verdict_record(verdict))
    (record,) = Journal(journal_path(tmp_path)).records()
    assert verdict_from(record.data["verdict"]) == verdict


def test_admitted_and_undecided_proposals_are_pending_in_their_order() -> None:
    kept = kept_in(
        _records(
            ("verdict", verdict_record(_verdict("b"))),
            ("turn", {"whatever": 1}),
            ("verdict", verdict_record(_verdict("a"))),
            ("verdict", verdict_record(_verdict("c", admitted=False))),
            ("verdict", verdict_record(_verdict("d"))),
            ("decision", _decision("d", "reject")),
            ("verdict", verdict_record(_verdict("e"))),
            ("decision", _decision("e", "skip")),
            ("verdict", verdict_record(_verdict("f"))),
            ("decision", _decision("f", "edit")),
        )
    )
    assert [verdict.proposal.id for verdict in kept.pending] == ["b", "a", "e"]
    assert kept.decisions["d"].reason == "why"


def test_an_accepted_proposal_is_settled_only_by_its_commit() -> None:
    intent = asdict(Intent("a", "mla.x", "label-rules.toml", "", "text", "message", "Ada"))
    begun = [
        ("verdict", verdict_record(_verdict("a"))),
        ("intent", intent),
    ]
    kept = kept_in(_records(*begun))
    assert [verdict.proposal.id for verdict in kept.pending] == ["a"]
    assert [entry.rule_id for entry in kept.unfinished] == ["mla.x"]
    kept = kept_in(_records(*begun, ("commit", {"proposal_id": "a", "commit": "0" * 40})))
    assert kept.pending == ()
    assert kept.unfinished == ()


def test_a_commit_that_failed_is_asked_about_again() -> None:
    intent = asdict(Intent("a", "mla.x", "label-rules.toml", "", "text", "message", "Ada"))
    kept = kept_in(
        _records(
            ("verdict", verdict_record(_verdict("a"))),
            ("intent", intent),
            ("decision", _decision("a", "skip")),
        )
    )
    assert [verdict.proposal.id for verdict in kept.pending] == ["a"]
    assert kept.unfinished == ()


def test_runs_come_back_with_the_proposals_they_judged() -> None:
    run = KeptRun("r1", ("t/*.json",), repos=(("sglang", "../sglang", "0" * 40),))
    kept = kept_in(
        _records(("run", run_record(run)), ("verdict", verdict_record(_verdict("a"), "r1")))
    )
    assert kept.runs == {"r1": run}
    assert kept.run_of == {"a": "r1"}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("verdict", {"verdict": {}}),
        ("verdict", {"verdict": None}),
        ("decision", {"proposal_id": "a", "colour": "red"}),
        ("intent", {}),
        ("commit", {"proposal_id": []}),
    ],
)
def test_a_record_of_ours_that_cannot_be_read_names_its_line(kind: str, data) -> None:
    with pytest.raises(JournalError) as caught:
        kept_in(_records(("turn", {}), (kind, data)), "j")
    assert (caught.value.code, caught.value.location) == ("JR007", "j:2")


def test_records_are_json() -> None:
    assert json.loads(json.dumps(verdict_record(_verdict()))) is not None
