"""A file that misses the fast path is read slower, never differently."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest

from tests.unit.traces.reference import rows
from tests.unit.traces.spelling import STYLES, columns, program, read, write

SIZES = (1, 7, 100, 1_000, 4_096, 262_144)


@pytest.fixture(scope="module")
def expected():
    """The reference reader's rows, from one plain spelling."""
    raw = write(program(1, 120), STYLES["oneline"])
    return rows(json.loads(raw, parse_float=Decimal, parse_int=Decimal)["traceEvents"])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("style", STYLES)
def test_columns_do_not_depend_on_spelling_or_chunks(style, size, expected):
    if size == 1:
        events, wanted = program(1, 120)[:40], None
    else:
        events, wanted = program(1, 120), expected
    raw = write(events, STYLES[style])
    if wanted is None:
        document = json.loads(raw, parse_float=Decimal, parse_int=Decimal)
        wanted = rows(document if isinstance(document, list) else document["traceEvents"])
    rank, document = read(raw, size)
    assert columns(rank) == wanted
    assert document.events == len(events)
    assert document.ended
    assert not document.broken


@pytest.mark.parametrize("seed", range(12))
def test_columns_equal_the_reference_for_any_mixture_of_separators(seed):
    """Separators that change within a file, as where files were joined by hand."""
    rng = random.Random(seed)
    events = program(seed, 60)
    texts = [write([event], rng.choice(list(STYLES.values()))).decode() for event in events]
    bodies = [text[text.index("[") + 1 : text.rindex("]", 0, _tail(text))] for text in texts]
    raw = (
        "[" + "".join(body + rng.choice([",", ", ", ",\n", " ,\n  "]) for body in bodies)
    ).rstrip()
    raw = raw.rstrip(",") + "]"
    wanted = rows(json.loads(raw, parse_float=Decimal, parse_int=Decimal))
    rank, document = read(raw.encode(), rng.choice([50, 333, 5_000, 262_144]))
    assert columns(rank) == wanted
    assert document.events == len(events)


def _tail(text: str) -> int:
    """Give where the list's own `]` is searched from."""
    for style in STYLES.values():
        if text.endswith(style.tail) and text.startswith(style.head):
            return len(text) - len(style.tail) + style.tail.index("]") + 1
    raise AssertionError(text)


@pytest.mark.parametrize("between", ["frames", "no frames"])
def test_a_kernel_between_thousands_of_frames_is_found(between):
    """Blocks of nothing but frames are passed over; one foreign event in them is not."""
    frame = {"ph": "X", "cat": "python_function", "name": "f.py(1): g"}
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 1}
    events = [dict(frame, ts=at, dur=1, pid=1, tid=1) for at in range(4_000)]
    if between == "frames":
        events.insert(3_333, kernel)
        odd = json.dumps(dict(kernel, ts=9)).replace('"cat"', '"c\\u0061t"')
    else:
        odd = json.dumps(kernel)
    raw = json.dumps(events)[:-1] + ", " + odd + "]"
    rank, document = read(raw.encode(), 8_192)
    assert rank.count == (2 if between == "frames" else 1)
    assert document.frames > 3_000
    assert document.events == len(events) + 1


def test_begin_and_end_without_category_between_frames_are_paired():
    frame = {"ph": "X", "cat": "python_function", "name": "f.py(1): g", "pid": 1, "tid": 1}
    begin = {"ph": "B", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5}
    end = {"ph": "E", "pid": 0, "tid": 7, "ts": 8.25}
    events = [frame] * 500 + [begin] + [frame] * 500 + [end] + [frame] * 500
    rank, _ = read(json.dumps(events).encode(), 4_096)
    assert [(row.start_ns, row.duration_ns) for row in columns(rank)] == [(5_000, 3_250)]
