"""Generated and damaged files: totals equal those of a slow reader, and nothing crashes.

`LABEL_AGENT_FUZZ` sets how many examples are tried; without it a few seconds' worth.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent.core.kernels import RankTrace
from agent.errors import TraceError
from agent.traces.collect import Collector
from agent.traces.document import read_document
from agent.traces.reader import read_trace
from agent.traces.scanned import scanned_blocks
from agent.traces.summary import FileFacts, summarise_file
from tests.unit.traces.slow import Sums, events_of, sums_of, text_of

EXAMPLES = int(os.environ.get("LABEL_AGENT_FUZZ", "150"))
BOUNDED = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

NAMES = (
    *("k", "gemm", "", "void f<int, {lambda()#3}>(a)", 'k"}, {"ph": "X", "cat": "kernel"', "]}"),
    *("\\", "tab\t", "\0", "\u00e9\u5185\U0001f680", "\ud800", '"dur": 5'),
)
WHOLE_NS = st.integers(0, 3_000_000) | st.integers(0, 10) | st.just(1_772_442_166_525_160_130)
ODD_TIMES = (
    *("0", "-5", "-0.0", "1e3", "1.5e-3", "0.0005", "0.0015", '"12.5"', '" 7 "', "null", '"NaN"'),
    *(
        "1e999999999",
        "-1e400",
        "9" * 30,
        "9" * 70,
        "true",
        "[]",
        "{}",
        '""',
        "4611686018427387.904",
    ),
)
TIMES = WHOLE_NS.map(lambda ns: f"{ns // 1000}.{ns % 1000:03d}") | st.integers(0, 90).map(str)
ANY_TIME = st.one_of(TIMES, TIMES, TIMES, st.sampled_from(ODD_TIMES))
IDS = st.sampled_from(
    ("0", "1", "7", "-1", "7.0", '"7"', "null", "2.5", str(2**40), str(2**70), "[]")
)
PLACES = st.sampled_from(
    (
        "0",
        "0",
        "1",
        '"stream 7"',
        '"[TP00] 0"',
        '"[TP01-DP00] stream 3"',
        '""',
        "null",
        "2.5",
        "1e2",
    )
)
CATEGORIES = st.sampled_from(
    (
        *("kernel", "kernel", "kernel", "Kernel", " KERNEL ", "gpu_memcpy", "Memset", "cpu_op"),
        *("python_function", "gpu_user_annotation", "cuda_runtime", ""),
    )
)
PHASES = st.sampled_from(("X",) * 8 + ("B", "E", "M", "i", ""))


def quoted(text: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda value, ascii_: json.dumps(value, ensure_ascii=ascii_), text, st.booleans()
    )


def object_of(**members: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Text of an object with some of these members, in any order."""

    def joined(chosen: dict[str, str], order: list[int], space: str) -> str:
        pairs = [f'"{key}":{space}{value}' for key, value in chosen.items()]
        pairs = [pairs[at % len(pairs)] for at in order if pairs] or pairs
        return "{" + f",{space}".join(dict.fromkeys([*pairs])) + "}"

    chosen = st.fixed_dictionaries({}, optional=members)
    orders = st.permutations(range(len(members)))
    return st.builds(joined, chosen, orders, st.sampled_from(("", " ", "\n  ")))


ARGUMENTS = object_of(device=IDS, stream=IDS, correlation=IDS, other=st.just('[{"a": 1}, {}]'))
EVENTS = object_of(
    ph=quoted(PHASES),
    cat=quoted(CATEGORIES),
    name=quoted(st.sampled_from(NAMES)),
    pid=PLACES,
    tid=PLACES,
    ts=ANY_TIME,
    dur=ANY_TIME,
    args=ARGUMENTS | st.sampled_from(("[]", '"x"', "null")),
) | st.builds(
    lambda ts, dur, stream: (
        f'{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": {stream}, "ts": {ts}, "dur": {dur}}}'
    ),
    TIMES,
    TIMES,
    st.sampled_from("07"),
)
SEPARATORS = st.sampled_from((",", ", ", ",\n", " ,\r\n\t"))


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    events = draw(st.lists(EVENTS, min_size=1, max_size=12))
    separator = draw(SEPARATORS)
    body = separator.join(events)
    head, tail = draw(
        st.sampled_from(
            (
                ("[", "]"),
                ('{"traceEvents": [', "]}"),
                ('{"a": [{}], "traceEvents":[\n', '\n],"b":1}\n'),
            )
        )
    )
    return (head + body + tail).encode("utf-8", "surrogatepass")


def sums(rank: RankTrace) -> Sums:
    by_name: Counter[tuple[str, str]] = Counter()
    times: Counter[tuple[str, str]] = Counter()
    for signature, stats in rank.stats.items():
        by_name[signature.name, signature.work] += stats.count
        times[signature.name, signature.work] += stats.time_ns
    rows = tuple(sorted((key, (count, times[key])) for key, count in by_name.items()))
    return Sums(rows, rank.busy_ns or 0, rank.span_ns or 0)


def read(raw: bytes, *, salvage: bool = False) -> list[Sums] | None:
    """Give the sums of each rank as the package reads them, or None for an error with a hint."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(raw)
        try:
            ranks = read_trace(path, salvage=salvage).ranks
        except TraceError as err:
            error = err
        else:
            return sorted(map(sums, ranks))
    assert error.code.startswith("TR")
    assert error.hint
    return None


def read_in_chunks(raw: bytes, size: int, *, scan: bool = False) -> list[Sums]:
    collector = Collector()
    chunks = (raw[at : at + size] for at in range(0, len(raw), size))
    scanned = scanned_blocks(collector) if scan else None
    document = read_document(
        chunks, collector.take, skip_frames=True, take_text=scanned.take if scanned else None
    )
    collector.finish()
    return sorted(map(sums, summarise_file(collector, FileFacts("x.json", document.metadata))))


@given(documents(), st.booleans())
@BOUNDED
def test_totals_are_those_of_the_slow_reader(raw: bytes, packed: bool) -> None:
    assert read(gzip.compress(raw, 1) if packed else raw) == sums_of(raw)


@given(documents(), st.integers(1, 400))
@BOUNDED
def test_totals_do_not_depend_on_chunks(raw: bytes, size: int) -> None:
    expected = sums_of(raw)
    if expected is not None:
        assert read_in_chunks(raw, size) == expected
        assert read_in_chunks(raw, size, scan=True) == expected


SNIPPETS = st.sampled_from(
    (
        *(b'"', b",", b"}", b"{", b"[", b"]", b"\0", b"\xff", b"\x01", b"-", b"\\", b"\xc3"),
        *(b"null", b"NaN", b"N/A", b"9" * 30, b'"dur": 7, ', b"{}, ", b", {}", b"}, {", b"]}"),
        b"\xef\xbb\xbf",
    )
)
DAMAGE = st.lists(
    st.tuples(st.integers(0, 5_000), st.integers(0, 30), SNIPPETS | st.binary(max_size=3)),
    min_size=1,
    max_size=3,
)


def damaged(raw: bytes, damage: list[tuple[int, int, bytes]]) -> bytes:
    for at, dropped, put_in in damage:
        place = at % (len(raw) + 1)
        raw = raw[:place] + put_in + raw[place + dropped % 8 :]
    return raw


def forgiven(raw: bytes) -> Iterator[bytes]:
    """Give the text, and the text without one comma before a closing bracket, which is let pass."""
    yield raw
    for comma in re.finditer(rb",(?=[ \t\r\n]*[\]}])", raw):
        yield raw[: comma.start()] + raw[comma.end() :]


@given(documents(), DAMAGE)
@BOUNDED
def test_damage_is_an_error_or_the_totals_of_what_it_still_says(
    raw: bytes, damage: list[tuple[int, int, bytes]]
) -> None:
    raw = damaged(raw, damage)
    found = read(raw)
    assert found is None or found in map(sums_of, forgiven(raw))
    if found is None and sums_of(raw) is not None:
        assert is_foreign(raw)


def is_foreign(raw: bytes) -> bool:
    """Tell a list that does not hold a single phase: valid, but no trace."""
    return not any(event.get("ph") for event in events_of(raw.decode("utf-8", "surrogateescape")))


@given(documents(), DAMAGE)
@BOUNDED
@example(b'[{"ph": "X", "cat": "kernel", "name": "a"b", "ts": 1, "dur": 1}]', [(0, 0, b"")])
def test_salvage_reads_no_event_that_is_not_there(
    raw: bytes, damage: list[tuple[int, int, bytes]]
) -> None:
    raw = damaged(raw, damage)
    found = read(raw, salvage=True)
    whole = read(raw)
    if whole is not None:
        assert found == whole
    text = raw.decode("utf-8", "surrogateescape")
    possible = names_of_objects(text)
    for rank in found or ():
        for (name, _), (count, _) in rank.by_name:
            assert count <= possible[name]


def names_of_objects(text: str) -> Counter[str]:
    """Count the names of all objects in a text, wherever one begins."""
    names: Counter[str] = Counter()
    for brace in re.finditer("{", text):
        try:
            value, _ = json.JSONDecoder(strict=False).raw_decode(text, brace.start())
        except ValueError:
            continue
        names[text_of(str(value.get("name") or ""))] += 1
    return names


@given(documents(), st.integers(1, 60), st.integers(0, 255))
@BOUNDED
def test_a_damaged_gzip_is_an_error_or_the_same(raw: bytes, at: int, byte: int) -> None:
    packed = bytearray(gzip.compress(raw, 1))
    packed[at % len(packed)] = byte
    for salvage in (False, True):
        found = read(bytes(packed), salvage=salvage)
        if not salvage:
            assert found is None or found == sums_of(raw)
