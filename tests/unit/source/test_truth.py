"""Held truths over the real checkouts of SGLang and aiter, where they are at hand.

`LABEL_AGENT_SGLANG` and `LABEL_AGENT_AITER` name git checkouts that hold the pinned commits.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent.core.proposals import RunContext
from agent.core.rules import RuleSet
from agent.ruleset.codec import load_builtin
from agent.source.index import GitSourceIndex, open_sources
from agent.workflows.inputs import OpenInputs
from agent.workflows.judge import Judged, judge_line
from tests.mutations import mutations

HERE = all(name in os.environ for name in ("LABEL_AGENT_SGLANG", "LABEL_AGENT_AITER"))
pytestmark = pytest.mark.skipif(
    not HERE, reason="LABEL_AGENT_SGLANG and LABEL_AGENT_AITER are unset"
)
AITER = {"417de6df4392120b766537efd50c7725cfa0d5af", "e4048607a535ace3a2b51ded31b1c8c2d45c0879"}
SGLANG = "21c4fc6334d13cbc075504353b9abc3716cc069e"
NOT_HERE = {"ROCm/composable_kernel", "torch-2.9.1-pypi-wheel-headers", "(external)"}


@pytest.fixture(scope="module")
def sources() -> Iterator[GitSourceIndex]:
    """Both checkouts at the commits of the truths."""
    repos = [
        (name, Path(os.environ[f"LABEL_AGENT_{name.upper()}"])) for name in ("sglang", "aiter")
    ]
    index = open_sources(repos, commits={"sglang": SGLANG, "aiter": min(AITER)})
    yield index
    index.close()


@pytest.fixture(scope="module")
def opened(sources: GitSourceIndex, shared: Path) -> OpenInputs:
    """What `judge` works with: no trace, the list of names that may not be stolen."""
    with (shared / "truth" / "kernel_names.tsv").open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        names = {row["kernel_name"]: row["category"] for row in rows}
    return OpenInputs(None, None, sources, names, RunContext())


@cache
def shipped_rules() -> RuleSet:
    return load_builtin()


def judged(opened: OpenInputs, line: object) -> Judged:
    return judge_line(1, json.dumps(line), opened, shipped_rules())


def lines(shared: Path, name: str) -> list[dict[str, Any]]:
    text = (shared / "truth" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def test_every_wrong_proposal_is_rejected_for_its_reason_first(
    opened: OpenInputs, shared: Path
) -> None:
    wrong = lines(shared, "wrong_proposals.jsonl")
    assert len(wrong) == 62
    for line in wrong:
        verdict = judged(opened, line)
        assert not verdict.admitted, line["kind"]
        assert verdict.findings[0].code == line["expected_reject"], line["kind"]


def test_right_proposals_are_admitted_but_for_one_whose_label_is_disputed(
    opened: OpenInputs, shared: Path
) -> None:
    right = lines(shared, "right_proposals.jsonl")
    refused = [line for line in right if not judged(opened, line).admitted]
    assert [line["proposal"]["kernel"] for line in refused] == ["_causal_conv1d_update_kernel"]
    findings = judged(opened, refused[0]).findings
    assert {one.code for one in findings if one.severity == "error"} == {"E_STEALS"}


def test_no_mutation_of_a_right_proposal_is_admitted(opened: OpenInputs, shared: Path) -> None:
    right = [
        line for line in lines(shared, "right_proposals.jsonl") if judged(opened, line).admitted
    ]
    wrong = list(mutations(right))
    assert len(wrong) > 2_500
    admitted = [kind for kind, line in wrong if judged(opened, line).admitted]
    assert admitted == []


def test_the_definition_of_every_kernel_of_the_truth_is_found(shared: Path) -> None:
    with (shared / "truth" / "kernel_to_source.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    asked = 0
    for row in rows:
        repo, _, commit = row["repo"].partition("@")
        if repo in NOT_HERE:
            continue
        name = repo.rpartition("/")[2]
        folder = Path(os.environ[f"LABEL_AGENT_{name.upper()}"])
        index = open_sources([(name, folder)], commits={name: commit})
        found = [f"{one.path}:{one.lines[0]}" for one in index.find_definition(row["kernel name"])]
        wanted = row["file:line of definition"]
        assert (wanted in found) if wanted != "-" else (found == []), row["kernel name"]
        asked += 1
        index.close()
    assert asked >= 30


def test_nearly_all_rows_of_the_assembly_tables_have_their_symbol(sources: GitSourceIndex) -> None:
    from agent.source.evidence.items import read_item
    from agent.source.native.tables import table_rows

    bundle = sources.workbench().bundle("aiter", "417de6df4392120b766537efd50c7725cfa0d5af")
    rows, dangling = 0, 0
    for path, file in bundle.tables().items():  # type: ignore[union-attr]
        table = table_rows(file.text)
        for row in table.rows if table is not None else ():
            from agent.core.proposals import Evidence

            entry = Evidence("table", "aiter", bundle.snapshot.info.commit, path, (row.line,) * 2)  # type: ignore[union-attr]
            rows += 1
            dangling += not read_item(entry, bundle, ()).binary_symbol  # type: ignore[arg-type]
    assert (rows, dangling) == (1885, 3)
