"""Damaged copies of a right trace are read or refused, never a crash."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path

import pytest

from agent.errors import TraceError
from agent.traces.reader import read_trace

EVENTS = [
    {
        "ph": "X",
        "cat": "kernel",
        "name": 'k "{[\\"]}" ' + str(index),
        "pid": 0,
        "tid": 7,
        "ts": 100.125 * index,
        "dur": 5.5,
        "args": {"device": 0, "stream": 7, "correlation": index, "External id": index},
    }
    for index in range(1, 6)
]
TOKENS = (
    b"null",
    b"-1",
    b"1e400",
    b'"x"',
    b"[]",
    b"{}",
    b"NaN",
    b"-Infinity",
    b"N/A",
    b"\x00",
    b"\xff",
    b'"',
    b"\\",
    b"}",
    b",",
    b"9" * 30,
)


def _damaged(rng: random.Random) -> bytes:
    text = bytearray(json.dumps({"traceEvents": EVENTS}).encode())
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        match rng.randrange(4):
            case 0:
                text[at : at + rng.randint(0, 6)] = rng.choice(TOKENS)
            case 1:
                colon = text.find(b":", at)
                end = text.find(b",", colon)
                text[colon + 1 : end] = rng.choice(TOKENS)
            case 2:
                text[at] = rng.randrange(256)
            case _:
                copied = rng.randrange(len(text))
                text[at:at] = text[copied : copied + rng.randint(1, 120)]
    return bytes(text)


@pytest.mark.parametrize("seed", range(8))
def test_damaged_bytes_never_crash_the_reader(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "trace.json"
    for _ in range(60):
        path.write_bytes(_damaged(rng))
        for salvage in (False, True):
            with contextlib.suppress(TraceError):
                assert read_trace([path], salvage=salvage).kernel_ns >= 0


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "N/A", "nan", "undefined"])
def test_a_bare_word_is_named_with_its_place(tmp_path: Path, word: str) -> None:
    path = tmp_path / "trace.json"
    text = json.dumps({"traceEvents": EVENTS}).replace('"correlation": 3', f'"correlation": {word}')
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_trace([path])
    assert str(path) in str(caught.value)
    assert "--salvage" in caught.value.hint
