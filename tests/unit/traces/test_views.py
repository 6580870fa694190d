"""One capture in several files counts once; ranks that are merely alike count each."""

from __future__ import annotations

import dataclasses
from array import array
from pathlib import Path

import pytest

from agent.core.kernels import KernelTable, RankTrace, TraceInfo
from agent.traces.reader import read_trace
from agent.traces.views import drop_other_views
from tests.builders import rank_trace, signature, stats
from tests.unit.traces.inputs import GOLDEN, put_input

EVENTS = KernelTable((), array("I"), array("q"), array("q"), array("i"), array("q"), array("q"))
TABLE = {signature("gemm"): stats(2, 10), signature("norm"): stats(1, 3)}


def view(source: str, form: str, *, timed: bool = True, table: object = None) -> RankTrace:
    info = TraceInfo(source=source, format=form)
    kernels = EVENTS if timed else None
    return rank_trace(table or TABLE, info=info, kernels=kernels)  # type: ignore[arg-type]


def sources(ranks: list[RankTrace]) -> list[str]:
    return [rank.info.source for rank in ranks]


def test_statistics_beside_their_trace_are_left_out() -> None:
    ranks = [view("1_kernel_stats.csv", "rocprofv3-stats", timed=False), view("t", "rocprofv3-csv")]
    kept, found = drop_other_views(ranks)
    assert sources(kept) == ["t"]
    assert [(finding.code, finding.location) for finding in found] == [
        ("TR072", "1_kernel_stats.csv")
    ]


def test_the_fullest_of_several_formats_stays_whatever_it_calls_the_kernels() -> None:
    other = {signature("gemm.kd"): stats(2, 10), signature("_Z4normv.kd"): stats(1, 3)}
    ranks = [
        view("a.csv", "rocprofv3-csv"),
        view("a.json", "rocprofv3-json", table=other),
        view("a.db", "rocpd"),
    ]
    assert sources(drop_other_views(ranks)[0]) == ["a.db"]


def test_a_profile_beside_its_trace_is_left_out() -> None:
    ranks = [view("run.profile", "kineto", timed=False), view("trace.json", "kineto")]
    assert sources(drop_other_views(ranks)[0]) == ["trace.json"]


def test_copies_do_not_tell_views_apart() -> None:
    more = {**TABLE, signature("copy", work="memcpy"): stats()}
    ranks = [view("a.csv", "rocprofv3-csv"), view("a.db", "rocpd", table=more)]
    assert sources(drop_other_views(ranks)[0]) == ["a.db"]


@pytest.mark.parametrize(
    "second",
    [
        view("b", "rocprofv3-csv"),
        view("b", "rocpd", table={signature("gemm"): stats(2, 10), signature("norm"): stats(1, 4)}),
        view("b", "rocpd", table={signature("gemm"): stats(3, 13)}),
        dataclasses.replace(view("b", "rocpd"), stage="DECODE"),
    ],
    ids=["the same format", "other times", "other kernels", "another stage"],
)
def test_ranks_that_are_merely_alike_stay(second: RankTrace) -> None:
    ranks = [view("a", "rocprofv3-csv"), second]
    assert drop_other_views(ranks) == (ranks, [])


def test_the_golden_captures_are_views_of_one_another(tmp_path: Path) -> None:
    folders = [
        "rocprofv3-csv/rocm-7.0",
        "rocprofv3-stats/rocprofv3",
        "rocprofv3-json/compact",
        "rocpd/one-process",
    ]
    ranks = [
        rank
        for folder in folders
        for rank in read_trace(put_input(GOLDEN / folder, tmp_path)).ranks
    ]
    kept, found = drop_other_views(ranks)
    assert [rank.info.format for rank in kept] == ["rocpd"]
    assert len(found) == 3
