"""A profile holds all of a trace but its events, byte for byte the same, and knows its damage."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.kernels import (
    ClippedTotal,
    FrameUse,
    GraphReplays,
    LaunchContext,
    RankTrace,
    SignatureStats,
    Step,
    Trace,
    TraceInfo,
)
from agent.core.proposals import Finding
from agent.errors import CorruptTrace
from agent.traces.profile import read_profile, write_profile
from agent.traces.reader import read_trace
from tests.builders import rank_trace, signature, stats

CAST = signature("cast", op="aten::copy_", input_dtypes=("c10::BFloat16", ""))
REPLAYED = signature("moe_gemm1_0", replayed=True)
COPY = signature("Memcpy DtoH", work="memcpy")


def full_rank(label: str = "TP-3", rank: int | None = 3) -> RankTrace:
    """A rank with a value of its own in every field."""
    return RankTrace(
        label=label,
        info=TraceInfo(
            source=f"run/{label}.json",
            format="kineto",
            vendor="rocm",
            device_names=("AMD Instinct MI300X",),
            world_size=8,
            digest="ab" * 32,
            complete=False,
            skipped_events=2,
            has_shapes=True,
            has_stacks=True,
            properties=(("a", "1"), ("b", "2")),
        ),
        stats={CAST: stats(3, 10), REPLAYED: stats(2, 7), COPY: stats()},
        rank=rank,
        stage="DECODE",
        busy_ns=11,
        span_ns=12,
        origin_ns=1 << 62,
        launches=4,
        linked_ns=5,
        replays=GraphReplays((3, 0, 3), 6, 7),
        clipped=ClippedTotal(1, 2),
        steps=(Step("ProfilerStep#1", 0, 9),),
        context={
            CAST: LaunchContext(
                frames=(FrameUse("a.py", 7, "forward", 0, 3),),
                shapes=("[[1, 2], []]",),
                op_stacks=(("aten::to", "aten::copy_"),),
            )
        },
        fingerprint=frozenset({("b.py", 2, "g"), ("a.py", 7, "forward")}),
        findings=(Finding("TR030", "odd", "warning", "a.json:3", "look"),),
    )


def full_trace() -> Trace:
    finding = Finding("TR042", "unreadable", "error", "r5.json")
    return Trace("run [x]", (full_rank(), full_rank("0", None)), (finding,), ("r5.json",))


def test_every_field_of_a_rank_but_its_events_comes_back() -> None:
    trace = full_trace()
    assert read_profile(write_profile(trace), "p") == trace
    assert write_profile(read_profile(write_profile(trace), "p")) == write_profile(trace)


def test_the_full_rank_of_these_tests_leaves_no_field_at_its_default() -> None:
    rank = full_rank()
    plain = rank_trace({})
    for field in dataclasses.fields(RankTrace):
        if field.name not in {"kernels", "label", "summed"}:
            assert getattr(rank, field.name) != getattr(plain, field.name), field.name
    for field in dataclasses.fields(TraceInfo):
        if field.name != "format":
            assert getattr(rank.info, field.name) != getattr(plain.info, field.name), field.name


names = st.text() | st.sampled_from(["\udcff", "\ud800x", "\x00", "a" * 5000, "}{,\"'\\"])


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.builds(
            signature,
            names,
            op=names,
            input_dtypes=st.lists(names, max_size=3).map(tuple),
            replayed=st.booleans(),
            work=st.sampled_from(["kernel", "memcpy", "memset"]),
        ),
        st.lists(st.integers(0, 1 << 62), min_size=1, max_size=4).map(
            lambda times: SignatureStats(len(times), sum(times), min(times), max(times))
        ),
        max_size=8,
    )
)
def test_any_table_comes_back_under_any_name(table: dict[Any, Any]) -> None:
    trace = Trace("run", (rank_trace(table),))
    text = write_profile(trace)
    assert text.isascii()
    assert read_profile(text, "p") == trace


def test_the_bytes_do_not_depend_on_the_order_of_sets() -> None:
    frames = [(f"{i}.py", i, "f") for i in range(50)]
    one = dataclasses.replace(full_rank(), fingerprint=frozenset(frames))
    two = dataclasses.replace(full_rank(), fingerprint=frozenset(reversed(frames)))
    assert write_profile(Trace("r", (one,))) == write_profile(Trace("r", (two,)))


def edited(change: Callable[[dict[str, Any]], None]) -> bytes:
    """Change the content of a profile and give it the digest that fits."""
    content = json.loads(write_profile(full_trace()))
    change(content["run"])
    run = json.dumps(content["run"], sort_keys=True, separators=(",", ":"))
    content["digest"] = hashlib.sha256(run.encode()).hexdigest()
    return json.dumps(content).encode()


DAMAGED = {
    "not JSON": b'{"label_agent_profile":1,',
    "no content": b'{"label_agent_profile":1}',
    "a list": b"[]",
    "deeply nested": b'{"label_agent_profile":' + b"[" * 100_000,
    "of a later schema": write_profile(full_trace()).replace(b'profile":1', b'profile":2'),
    "changed by a digit": write_profile(full_trace()).replace(b'"launches":4', b'"launches":5', 1),
    "cut off": write_profile(full_trace())[:-40],
    "with a field too many": edited(lambda run: run.update(extra=1)),
    "without a field": edited(lambda run: run.pop("ranks")),
    "with a text that is not there": edited(lambda run: run["texts"].clear()),
    "with a negative position": edited(
        lambda run: run["ranks"][0]["stats"][0][0].__setitem__(0, -1)
    ),
    "with sums that cannot be": edited(
        lambda run: run["ranks"][0]["stats"][0][1].__setitem__(1, 0)
    ),
    "with a float": edited(lambda run: run["ranks"][0].update(launches=1.5)),
    "with another kind of work": edited(
        lambda run: run["ranks"][0]["stats"][0][0].__setitem__(4, "dance")
    ),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_profile_that_is_not_as_written_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptTrace) as caught:
        read_profile(content, "run.profile")
    assert caught.value.code == "TR066"
    assert caught.value.location == "run.profile"
    assert caught.value.hint


def test_a_later_schema_names_the_way_out() -> None:
    with pytest.raises(CorruptTrace, match="schema '2'") as caught:
        read_profile(DAMAGED["of a later schema"], "p")
    assert "version of label-agent" in caught.value.hint


def write(folder: Path, name: str, trace: Trace) -> Path:
    path = folder / name
    path.write_bytes(write_profile(trace))
    return path


def test_a_run_of_one_profile_is_the_run_it_was_written_from(tmp_path: Path, shared: Path) -> None:
    folder = shared / "traces" / "sglang_dsv3_decode_h200"
    trace = read_trace(folder)
    again = read_trace(write(tmp_path, "run.profile", trace))
    bare = tuple(dataclasses.replace(rank, kernels=None) for rank in trace.ranks)
    assert again.ranks == bare
    assert again.findings == trace.findings


def test_profiles_of_single_ranks_are_a_run_together(tmp_path: Path, shared: Path) -> None:
    files = sorted((shared / "traces" / "sglang_dsv3_decode_h200").glob("*.json"))
    for file in files:
        write(tmp_path, f"{file.stem}.profile", read_trace(file))
    together = read_trace(tmp_path)
    whole = read_trace([str(file) for file in files])
    assert together.stats == whole.stats
    assert [rank.rank for rank in together.ranks] == [rank.rank for rank in whole.ranks]


def test_a_stage_in_a_label_is_not_doubled(tmp_path: Path) -> None:
    ranks = [
        dataclasses.replace(full_rank(f"3 {stage}"), stage=stage, findings=())
        for stage in ("DECODE", "EXTEND")
    ]
    again = read_trace(write(tmp_path, "p", Trace("run", tuple(ranks))))
    assert [rank.label for rank in again.ranks] == ["3 DECODE", "3 EXTEND"]


def test_a_rank_that_was_lost_stays_lost(tmp_path: Path) -> None:
    complete = dataclasses.replace(full_rank(), info=TraceInfo("a", "kineto"), findings=())
    lost = Finding("TR042", "unreadable", "error", "r5.json")
    again = read_trace(write(tmp_path, "p", Trace("run", (complete,), (lost,), ("r5.json",))))
    assert not again.complete
    assert lost in (*again.findings, *again.ranks[0].findings)
