"""Which launch and which operator a kernel belongs to, where ids are shared, wrong or missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.core.kernels import RankTrace
from agent.traces.reader import read_trace

Event = dict[str, Any]


def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> Event:
    args = {key.replace("_", " ") if key != "correlation" else key: args[key] for key in args}
    place = {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": tid, "ts": ts, "dur": dur}
    return {**place, "args": args}


def op(name: str, ts: float, dur: float, external: int = 0, tid: int = 1, **args: Any) -> Event:
    ids = {"External_id": external} if external else {}
    return event("cpu_op", name, ts, dur, tid, **ids, **args)


def launch(
    ts: float, correlation: int, name: str = "hipLaunchKernel", tid: int = 1, cat: str = "runtime"
) -> Event:
    return event(f"cuda_{cat}", name, ts, 2, tid, correlation=correlation)


def kernel(name: str, ts: float, correlation: int, external: int | None = None) -> Event:
    ids = {} if external is None else {"External_id": external}
    return event("kernel", name, ts, 10, 7, correlation=correlation, **ids)


def read(folder: Path, events: list[Event], *, backwards: bool = False) -> RankTrace:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events[::-1] if backwards else events}))
    (rank,) = read_trace(path).ranks
    return rank


def ops(rank: RankTrace) -> dict[str, str]:
    return {signature.name: signature.op for signature in rank.stats}


@pytest.fixture(params=[False, True], ids=["in order", "backwards"])
def backwards(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_an_external_id_that_repeats_the_correlation_names_no_operator(
    tmp_path: Path, backwards: bool
) -> None:
    events = [
        op("aten::wrong", 500, 10, external=5),
        op("aten::outer", 0, 100, external=1),
        op("aten::inner", 10, 20, external=2),
        op("aten::elsewhere", 10, 20, external=3, tid=2),
        launch(15, 5),
        launch(50, 6),
        launch(200, 7),
        kernel("k5", 300, 5, external=5),
        kernel("k6", 320, 6, external=6),
        kernel("k7", 340, 7, external=7),
    ]
    rank = read(tmp_path, events, backwards=backwards)
    assert ops(rank) == {"k5": "aten::inner", "k6": "aten::outer", "k7": ""}
    assert dict(rank.info.properties)["linking"] == "enclosure"


def test_an_external_id_of_its_own_names_the_operator(tmp_path: Path, backwards: bool) -> None:
    events = [
        op("aten::outer", 0, 100, external=1),
        op("aten::inner", 10, 20, external=2),
        launch(15, 5),
        kernel("k", 300, 5, external=2),
        kernel("no launch", 400, 99, external=1),
        kernel("nothing", 500, 98),
    ]
    rank = read(tmp_path, events, backwards=backwards)
    assert ops(rank) == {"k": "aten::inner", "no launch": "aten::outer", "nothing": ""}


def test_nested_casts_count_once_with_the_innermost_dtypes(tmp_path: Path, backwards: bool) -> None:
    types = ["c10::BFloat16", "c10::Float8_e4m3fnuz"]
    events = [
        op("aten::to", 0, 100, external=4),
        op("aten::_to_copy", 5, 90, external=4),
        op("aten::copy_", 10, 80, external=4, Input_type=types),
        launch(15, 5),
        kernel("k", 300, 5, external=4),
    ]
    rank = read(tmp_path, events, backwards=backwards)
    (signature,) = rank.stats
    assert (signature.op, signature.input_dtypes) == ("aten::copy_", tuple(types))
    assert (rank.count, rank.kernel_ns) == (1, 10_000)


def test_every_kernel_of_a_replay_counts_and_has_no_operator(
    tmp_path: Path, backwards: bool
) -> None:
    events = [op("aten::outer", 0, 1_000, external=1)]
    for at, n_kernels in ((10, 4), (500, 2), (800, 0)):
        events.append(launch(at, at, name="hipGraphLaunch"))
        events += [kernel(f"k{n}", at + 20 + 12 * n, at, external=1) for n in range(n_kernels)]
    rank = read(tmp_path, events, backwards=backwards)
    assert set(ops(rank).values()) == {""}
    assert rank.replays.kernels_per_launch == (4, 2, 0)
    assert (rank.count, rank.replays.kernels, rank.replays.time_ns) == (6, 6, 60_000)


def test_a_correlation_that_comes_again_belongs_to_the_last_launch_before(
    tmp_path: Path, backwards: bool
) -> None:
    """Two captures joined in one file, or ids that started again."""
    events = [
        op("aten::first", 0, 50),
        launch(10, 5),
        kernel("a", 100, 5),
        op("aten::second", 1_000, 50),
        launch(1_010, 5),
        kernel("b", 1_100, 5),
        launch(2_000, 5, name="hipGraphLaunch"),
        kernel("c", 2_100, 5),
        kernel("d", 2_200, 5),
    ]
    rank = read(tmp_path, events, backwards=backwards)
    assert ops(rank) == {"a": "aten::first", "b": "aten::second", "c": "", "d": ""}
    assert {signature.name for signature in rank.stats if signature.replayed} == {"c", "d"}
    assert rank.replays.kernels_per_launch == (2,)


@pytest.mark.parametrize("wide", [5 << 30, -(5 << 30)])
def test_ids_of_more_than_32_bits_on_one_side_alone_are_found_or_not(
    tmp_path: Path, wide: int
) -> None:
    events = [
        op("aten::near", 0, 50, external=3),
        op("aten::far", 100, 50, external=5 << 30),
        launch(10, 5 << 30),
        launch(110, 6),
        kernel("a", 200, 6, external=3),
    ]
    assert ops(read(tmp_path, events)) == {"a": "aten::near"}
    assert ops(read(tmp_path, [*events[1:3], kernel("b", 200, 6)])) == {"b": ""}
    assert ops(read(tmp_path, [*events[:1], launch(10, 6), kernel("c", 200, wide)])) == {"c": ""}


def test_a_graph_launch_under_two_names_is_one(tmp_path: Path, backwards: bool) -> None:
    """The runtime's call and the driver's inside it share their correlation."""
    events = []
    for at in (10, 500):
        events += [
            launch(at, at, name="cudaGraphLaunch"),
            launch(at + 1, at, name="cuGraphLaunch", cat="driver"),
            kernel("k", at + 100, at),
            kernel("l", at + 200, at),
        ]
    rank = read(tmp_path, events, backwards=backwards)
    assert rank.replays.kernels_per_launch == (2, 2)
    assert not {"TR050"} & {finding.code for finding in rank.findings}


def test_thousands_of_calls_and_kernels_with_one_correlation_are_linked(tmp_path: Path) -> None:
    events = [launch(10 * at, 0) for at in range(20_000)]
    events += [kernel("k", 300_000 + 10 * at, 0) for at in range(20_000)]
    assert read(tmp_path, events).count == 20_000


def test_thousands_of_operators_and_kernels_with_one_external_id_are_linked(tmp_path: Path) -> None:
    """Each goes to the operator around its launch; trying all for each would take an hour."""
    many = 10_000
    events: list[Event] = []
    for number in range(many):
        at = 100 * number
        events += [op(f"op {number % 7}", at, 50, external=1), launch(at + 10, number + 1)]
        events.append(kernel(f"kernel {number % 7}", at + 20, number + 1, external=1))
    rank = read(tmp_path, events)
    assert ops(rank) == {f"kernel {number}": f"op {number}" for number in range(7)}


def test_of_operators_with_one_id_the_shortest_around_the_launch_counts(
    tmp_path: Path, backwards: bool
) -> None:
    events = [
        op("around both", 0, 100, external=1),
        op("around the first", 10, 20, external=1),
        op("around none", 90, 2, external=1),
        *(launch(20, 5), launch(50, 6), launch(300, 7)),
        kernel("first", 400, 5, external=1),
        kernel("second", 410, 6, external=1),
        kernel("late", 420, 7, external=1),
        kernel("without a launch", 430, 8, external=1),
    ]
    assert ops(read(tmp_path, events, backwards=backwards)) == {
        "first": "around the first",
        "second": "around both",
        "late": "around none",
        "without a launch": "around none",
    }


def test_thousands_of_operators_around_each_launch_leave_the_innermost(tmp_path: Path) -> None:
    """Operators that never end pile up: of each stack the outermost are left out."""
    many = 4_000
    events = [op("open", number / 1000, 100_000, external=number + 1) for number in range(many)]
    events += [launch(20 + number, number + 1) for number in range(many)]
    events += [kernel("kernel", 200_000 + 10 * number, number + 1) for number in range(many)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    (rank,) = read_trace(path, context=True).ranks
    assert {stack for used in rank.context.values() for stack in used.op_stacks} == {
        ("open",) * 512
    }


def test_shapes_do_not_differ_by_how_their_block_was_read(tmp_path: Path) -> None:
    """The first block is read event by event, which drops white space within shapes."""
    events: list[Event] = []
    for number in range(2_000):
        at = 100 * number
        shapes = {"Input_Dims": [[8, 16], [16]]}
        events += [op("aten::mm", at, 50, number + 1, **shapes), launch(at + 10, number + 1)]
        events.append(kernel("gemm", at + 20, number + 1))
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    (rank,) = read_trace(path, context=True).ranks
    assert [used.shapes for used in rank.context.values()] == [("[[8,16],[16]]",)]
