"""Damaged zip archives: an error, or what was unpacked before the damage."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path

import pytest

from agent.errors import CorruptTrace, TraceError
from agent.traces.reader import read_trace

EVENTS = [
    {"ph": "X", "cat": "kernel", "name": f"k{at * 7919 % 9973}", "ts": 20 * at, "dur": 10}
    for at in range(1, 6_000)
]
METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflate": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}


def zipped(method: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("t.json", json.dumps({"traceEvents": EVENTS}))
    return packed.getvalue()


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_byte_that_is_wrong_inside_an_archive_is_an_error(tmp_path: Path, method: int) -> None:
    raw = bytearray(zipped(method))
    at = len(raw) * 3 // 4
    raw[at : at + 40] = bytes(40)
    path = tmp_path / "trace.zip"
    path.write_bytes(raw)
    with pytest.raises(CorruptTrace) as caught:
        read_trace(path)
    assert caught.value.hint
    if method == zipfile.ZIP_DEFLATED:
        assert "the zip archive is damaged" in caught.value.message
        trace = read_trace(path, salvage=True)
        assert 1_000 < trace.count < len(EVENTS)
        assert trace.kernel_ns == 10_000 * trace.count
        assert not trace.complete


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_any_damage_to_an_archive_is_an_error_with_a_hint(tmp_path: Path, method: int) -> None:
    whole, dice, path = zipped(method), random.Random(method), tmp_path / "trace.zip"
    for _ in range(40):
        raw = bytearray(whole)
        at = dice.choice((dice.randrange(64), len(raw) - 1 - dice.randrange(120)))
        raw[at] ^= dice.randrange(1, 256)
        path.write_bytes(raw[: dice.choice((len(raw), len(raw), dice.randrange(4, len(raw))))])
        for salvage in (False, True):
            error = None
            try:
                trace = read_trace(path, salvage=salvage)
            except TraceError as err:
                error = err
            else:
                assert trace.count == len(EVENTS) or (salvage and not trace.complete)
            assert error is None or error.hint
