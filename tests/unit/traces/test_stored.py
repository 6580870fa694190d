"""Kept ranks come back whole, or not at all."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace

import msgspec
import pytest
from isal import isal_zlib

from agent.core.kernels import Step
from agent.traces import stored as storing
from agent.traces.kernel_table import with_step_times
from agent.traces.reader import read_trace
from agent.traces.stored import DamagedEntryError, read_ranks, write_ranks
from tests.unit.traces.inputs import CASES, put_input
from tests.unit.traces.spelling import STYLES, program, read, write
from tests.unit.traces.test_profile import full_rank


def a_rank(seed=1):
    rank, _ = read(write(program(seed, 60), STYLES["oneline"]), 4_096)
    return rank


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_ranks_of_every_format_come_back(case, tmp_path):
    try:
        ranks = read_trace([put_input(case, tmp_path)], salvage=True, context=True).ranks
    except Exception:  # noqa: BLE001 - a golden folder of an error
        pytest.skip("this input has no ranks")
    assert read_ranks(write_ranks(ranks)) == ranks


def test_several_ranks_with_and_without_events_come_back():
    ranks = (a_rank(1), full_rank(), replace(a_rank(2), label="x"))
    again = read_ranks(write_ranks(ranks))
    assert again == ranks
    for rank, known in zip(again, ranks, strict=True):
        assert list(rank.stats) == list(known.stats)
        if known.kernels is not None:
            for name in ("start_ns", "stream", "correlation"):
                column = getattr(known.kernels, name)
                assert getattr(rank.kernels, name).typecode == column.typecode


def a_stepped_rank(tmp_path):
    """A rank with times by step, as reading a file gives it."""
    path = tmp_path / "stepped.json"
    path.write_bytes(write(program(2, 60), STYLES["oneline"]))
    (rank,) = read_trace([path]).ranks
    if not rank.steps:
        rank = with_step_times(replace(rank, steps=(Step("a", 0, 300), Step("b", 300, 900))))
    return rank


def test_times_by_step_come_back(tmp_path):
    rank = a_stepped_rank(tmp_path)
    assert rank.step_times is not None
    (again,) = read_ranks(write_ranks((rank,)))
    assert again.step_times == rank.step_times


def test_a_kept_table_unpacks_its_columns_when_asked(tmp_path, monkeypatch):
    rank = a_stepped_rank(tmp_path)
    content = write_ranks((rank,))
    unpacked = []
    real = storing._columns
    monkeypatch.setattr(storing, "_columns", lambda *table: unpacked.append(1) or real(*table))
    (again,) = read_ranks(content)
    assert (again.stats, again.steps, unpacked) == (rank.stats, rank.steps, [])
    assert again.kernels == rank.kernels
    assert rank.kernels == again.kernels
    assert len(again.kernels) == len(rank.kernels)
    assert unpacked == [1]
    with pytest.raises(AttributeError):
        again.kernels.no_such_column  # noqa: B018 - asked for


def test_a_kept_table_can_be_sent_to_another_process(tmp_path):
    rank = a_stepped_rank(tmp_path)
    (again,) = read_ranks(write_ranks((rank,)))
    sent = pickle.loads(pickle.dumps(again))
    assert sent == rank
    assert sent.step_times == rank.step_times


def test_the_same_ranks_give_the_same_bytes():
    assert write_ranks((a_rank(),)) == write_ranks((a_rank(),))


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_a_cut_and_a_tail_are_damage(seed):
    rng = random.Random(seed)
    stored = write_ranks((a_rank(),))
    for at in rng.sample(range(len(stored)), 200):
        flipped = bytearray(stored)
        flipped[at] ^= 1 << rng.randrange(8)
        for damaged in (bytes(flipped), stored[:at], stored + flipped[at:]):
            with pytest.raises(DamagedEntryError):
                read_ranks(damaged)


def forged(entry):
    """Bytes with a good checksum over anything."""
    content = msgspec.msgpack.encode(entry)
    return isal_zlib.crc32(content).to_bytes(4, "little") + content


def parts(stored):
    return msgspec.msgpack.decode(stored[4:])


PACK = storing._pack
ONE = {
    "signature_id": b"\0" * 4,
    "start_ns": b"\0" * 8,
    "duration_ns": b"\0" * 8,
    "device": b"\0" * 4,
    "stream": b"\0" * 8,
    "correlation": b"\0" * 8,
}


TYPES = dict(zip(ONE, "Iqqiqq", strict=True))


def events(width=0, step_times=b"", types=(), **columns):
    known = {**TYPES, **dict(types)}
    packed = {
        name: (known.get(name, "q"), PACK(column)) for name, column in {**ONE, **columns}.items()
    }
    return {"columns": packed, "width": width, "step_times": step_times}


GOOD = events()


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(None, id="nothing"),
        pytest.param({"events": [None]}, id="no profile"),
        pytest.param({"profile": {}, "events": []}, id="no profile but a map"),
        pytest.param({"profile": ..., "events": [GOOD, GOOD]}, id="more tables than ranks"),
        pytest.param({"profile": ..., "events": []}, id="fewer tables than ranks"),
        pytest.param({"profile": ..., "events": [{**GOOD, "columns": {}}]}, id="no columns"),
        pytest.param({"profile": ..., "events": [events(more=b"")]}, id="a column more"),
        pytest.param({"profile": ..., "events": [events(types={"device": "q"})]}, id="wide"),
        pytest.param({"profile": ..., "events": [events(types={"stream": "iq"})]}, id="two types"),
        pytest.param({"profile": ..., "events": [events(types={"stream": ""})]}, id="no type"),
        pytest.param({"profile": ..., "events": [{**GOOD, "width": 3}]}, id="no times by step"),
        pytest.param({"profile": ..., "events": [events(3, PACK(b"123"))]}, id="times of no step"),
    ],
)
def test_bytes_of_another_shape_are_damage(entry):
    if entry and entry.get("profile") is ...:
        entry = {**entry, "profile": parts(write_ranks((a_rank(),)))["profile"]}
    with pytest.raises(DamagedEntryError):
        read_ranks(forged(entry))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"stream": b"\0" * 16}, id="a longer column"),
        pytest.param({"stream": b"\0" * 7}, id="part of a number"),
        pytest.param({"signature_id": b"\xff" * 4}, id="an event of no signature"),
    ],
)
def test_columns_that_are_no_table_are_never_taken_for_one(changed):
    profile = parts(write_ranks((a_rank(),)))["profile"]
    (rank,) = read_ranks(forged({"profile": profile, "events": [events(**changed)]}))
    with pytest.raises(DamagedEntryError):
        len(rank.kernels)


def test_the_shape_those_tests_break_is_read_when_it_is_whole():
    profile = parts(write_ranks((a_rank(),)))["profile"]
    (rank,) = read_ranks(forged({"profile": profile, "events": [events()]}))
    assert list(rank.kernels.start_ns) == [0]
