"""Kept ranks come back whole, or not at all."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from isal import igzip_lib

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
            assert rank.kernels.start_ns.typecode == known.kernels.start_ns.typecode


def test_the_same_ranks_give_the_same_bytes():
    assert write_ranks((a_rank(),)) == write_ranks((a_rank(),))


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_a_cut_and_a_tail_are_damage(seed):
    rng = random.Random(seed)
    stored = write_ranks((a_rank(),))
    for at in rng.sample(range(len(stored)), 200):
        flipped = bytearray(stored)
        flipped[at] ^= 1 << rng.randrange(8)
        _is_damage_or_unharmed(bytes(flipped), stored)
        _is_damage_or_unharmed(stored[:at], stored)
    with pytest.raises(DamagedEntryError):
        read_ranks(stored + igzip_lib.compress(b"more", 1, igzip_lib.COMP_GZIP))
    with pytest.raises(DamagedEntryError):
        read_ranks(stored + b"more")


def _is_damage_or_unharmed(stored, good):
    """A header's flags and time say nothing of the content."""
    try:
        found = read_ranks(stored)
    except DamagedEntryError:
        return
    assert found == read_ranks(good)


def entry(*members):
    return b"".join(igzip_lib.compress(member, 1, igzip_lib.COMP_GZIP) for member in members)


def _profile(rank):
    stored = write_ranks((replace(rank, kernels=None),))
    _, profile = _parts(stored)
    return profile


def _parts(stored):
    parts = []
    while stored:
        member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        parts.append(member.decompress(stored))
        stored = member.unused_data
    return parts


WHOLE = b"\0" * 4, b"\0" * 8, b"\0" * 8, b"\0" * 4, b"\0" * 8, b"\0" * 8


@pytest.mark.parametrize(
    "members",
    [
        pytest.param((), id="nothing"),
        pytest.param((b"[]",), id="no profile"),
        pytest.param((b"[true]", b"{}"), id="no profile but JSON"),
        pytest.param((b"[true]", None), id="no columns"),
        pytest.param((b"[true, true]", None, *WHOLE, *WHOLE), id="more tables than ranks"),
        pytest.param((b"[]", None), id="fewer tables than ranks"),
        pytest.param((b"[true]", None, *WHOLE[:-1]), id="a column less"),
        pytest.param((b"[true]", None, *WHOLE, b""), id="a column more"),
        pytest.param((b"[true]", None, *WHOLE[:-1], b"\0" * 16), id="a longer column"),
        pytest.param((b"[true]", None, *WHOLE[:-1], b"\0" * 7), id="part of a number"),
        pytest.param((b"[true]", None, b"\xff" * 4, *WHOLE[1:]), id="an event of no signature"),
        pytest.param((b"\x80\x04N.", None), id="a pickle"),
    ],
)
def test_bytes_of_another_shape_are_damage(members):
    profile = _profile(a_rank())
    made = entry(*(profile if member is None else member for member in members))
    with pytest.raises(DamagedEntryError):
        read_ranks(made)


def test_the_shape_those_tests_break_is_read_when_it_is_whole():
    (rank,) = read_ranks(entry(b"[true]", _profile(a_rank()), *WHOLE))
    assert list(rank.kernels.start_ns) == [0]
