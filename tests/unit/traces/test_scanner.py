"""The compiled scanner: what it takes equals what Python reads, and it refuses all the rest.

Where the package was built without a C compiler there is nothing to test, and these tests skip.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.traces import kineto, scanner
from agent.traces.collect import Collector
from agent.traces.events import KINDS
from agent.traces.kineto import read_kineto
from agent.traces.scanned import ScannedBlocks, scanned_blocks
from tests.unit.traces.spelling import HOSTILE, STYLES, program, write

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "agent" / "traces" / "scan"

KERNEL = (
    '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5.250, "dur": 1.5,'
    ' "args": {"External id": 3, "device": 0, "stream": 7, "correlation": 9, "grid": [1, 2]}}'
)
OPERATOR = (
    '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 1, "dur": 2,'
    ' "args": {"External id": 3, "Input type": ["float", ""]}}'
)


@pytest.fixture
def collector() -> Collector:
    return Collector()


@pytest.fixture
def scanned(collector: Collector) -> ScannedBlocks:
    blocks = scanned_blocks(collector)
    if blocks is None:
        pytest.skip("the package was built without a C compiler: there is no scanner to test")
    return blocks


def refused(scanned: ScannedBlocks, text: str | bytes) -> bool:
    return scanned.take(text if isinstance(text, bytes) else text.encode()) is None


def test_a_plain_kernel_becomes_a_row(scanned: ScannedBlocks, collector: Collector) -> None:
    assert scanned.take(f"[{KERNEL}]".encode()) == 1
    kernels = collector.rank("").kernels
    assert [column[0] for column in (kernels.start_ns, kernels.duration_ns)] == [5_250, 1_500]
    assert (kernels.device[0], kernels.stream[0], kernels.correlation[0]) == (0, 7, 9)
    assert kernels.external_id[0] == 3
    assert list(collector.names.ids) == ["k"]


def test_an_operator_keeps_its_types_as_they_stand(
    scanned: ScannedBlocks, collector: Collector
) -> None:
    assert scanned.take(f"[{OPERATOR}, {OPERATOR}]".encode()) == 2
    assert list(collector.operators.ids) == [("aten::mm", b'["float", ""]', b"")]
    assert list(collector.rank("").operators.end_ns.unpacked()) == [3_000, 3_000]


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ('"k"', '"k\x01"'),
        ('"k"', '"\u00e9"'),
        ('"k"', '"\\x"'),
        ('"k"', '"\\ud800"'),
        ('"k"', '"\\u12g4"'),
        ('"k"', "7"),
        ('"name"', '"n\\u0061me"'),
        ('"X"', '"\\u0058"'),
        ('"X"', '"XX"'),
        ('"kernel"', '"kern\\u0065l"'),
        ('"kernel"', "null"),
        ('"pid": 0', '"pid": "[TP00] 0"'),
        ('"pid": 0', '"pid": 0.5'),
        ('"tid": 7', '"tid": null'),
        ("5.250", "5.2505"),
        ("5.250", '"5.250"'),
        ("5.250", "NaN"),
        ("5.250", "05.250"),
        ("5.250", "5."),
        ("5.250", "5e2"),
        ("5.250", "null"),
        ("5.250", "1234567890123456.5"),
        ("1.5", "+1.5"),
        ('"ts": 5.250,', '"ts": 5.250, "ts": 6,'),
        ('"ts": 5.250, ', ""),
        ('"dur": 1.5,', ""),
        ('"name": "k", ', ""),
        ('"args": {', '"args": [], "args": {'),
        ('"External id": 3', '"External id": 3.0'),
        ('"External id": 3', '"External id": "3"'),
        ('"External id": 3', '"External id": null'),
        ('"External id": 3', '"External id": 3, "External id": 4'),
        ('"External id": 3', '"External id": 1234567890123456789'),
        ('"device": 0', '"device": 4294967296'),
        ("[1, 2]", "[1, 2"),
        ("[1, 2]", "[1, 2,]"),
        ("[1, 2]", "[1 2]"),
        ("[1, 2]", '{"a" 1}'),
        ("[1, 2]", "truE"),
        ("[1, 2]", "-"),
        ("[1, 2]", "1.e4"),
        ("[1, 2]", "1e"),
        ("[1, 2]", "[" * 40 + "]" * 40),
        ("}}", "},}"),
        ("}}", "}"),
    ],
)
def test_a_block_with_something_odd_is_left_to_python(
    scanned: ScannedBlocks, collector: Collector, what: str, instead: str
) -> None:
    assert KERNEL.count(what) == 1
    odd = KERNEL.replace(what, instead)
    assert refused(scanned, f"[{OPERATOR}, {odd}, {KERNEL}]")
    assert not collector.ranks
    assert not collector.names.ids
    assert scanned.take(f"[{KERNEL}]".encode()) == 1


@pytest.mark.parametrize("text", ["", "[", "[]", "[{}", "{}", "[{}] x", "[{}],", "[{},]", "[1]"])
def test_what_is_no_list_of_events_is_left_to_python(scanned: ScannedBlocks, text: str) -> None:
    assert refused(scanned, text)


def test_a_text_with_a_nul_inside_is_left_to_python(scanned: ScannedBlocks) -> None:
    assert refused(scanned, f"[{KERNEL}]".encode() + b"\0")
    assert refused(scanned, b"[{}\0, {}]")


def test_more_events_than_there_are_rows_are_left_to_python(scanned: ScannedBlocks) -> None:
    assert scanned.take(f"[{', '.join([KERNEL] * 8_192)}]".encode()) == 8_192
    assert refused(scanned, f"[{', '.join([KERNEL] * 8_193)}]")


def test_more_new_texts_than_there_is_room_for_are_left_to_python(scanned: ScannedBlocks) -> None:
    launch = OPERATOR.replace('"cpu_op"', '"cuda_runtime"')
    events = [
        event.replace('"name": "', f'"name": "{at} ').replace('"tid": 2', f'"tid": "{kind} {at}"')
        for at in range(8_192)
        for kind, event in enumerate((KERNEL, OPERATOR, launch))
    ]
    assert refused(scanned, f"[{', '.join(events)}]")
    assert scanned.take(f"[{', '.join(events[:16_384])}]".encode()) == 16_384


def test_more_names_than_the_tables_hold_at_first_keep_their_own(
    scanned: ScannedBlocks, collector: Collector
) -> None:
    names = [f"kernel_{at:x}_{'y' * (at % 23)}" for at in range(6_000)]
    events = [KERNEL.replace('"k"', json.dumps(name)) for name in names + names[::-1]]
    for at in range(0, len(events), 1_000):
        assert scanned.take(f"[{', '.join(events[at : at + 1_000])}]".encode()) == 1_000
    ids = list(collector.names.ids)
    assert [ids[number] for number in collector.rank("").kernels.name] == names + names[::-1]


def test_categories_in_any_case_and_their_kinds_are_known(
    scanned: ScannedBlocks, collector: Collector
) -> None:
    spelled = [f" {name.upper()} " for name in KINDS]
    events = [KERNEL.replace('"kernel"', json.dumps(name)) for name in spelled]
    assert scanned.take(f"[{', '.join(events)}]".encode()) == len(KINDS)
    plain = Collector()
    plain.take(kineto_events(events))
    assert list(collector.rank("").kernels.work) == list(plain.rank("").kernels.work)
    assert len(collector.rank("").operators.what) == len(plain.rank("").operators.what)
    assert collector.n_frames == plain.n_frames == 1


def kineto_events(texts: list[str]):
    from agent.traces.document import _EVENTS

    return _EVENTS.decode(f"[{', '.join(texts)}]".encode())


def test_a_file_reads_the_same_without_a_scanner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(write(program(3, 400), STYLES["native"]))
    ranks = read_kineto(path, "trace.json")
    monkeypatch.setattr(kineto, "scanned_blocks", lambda _: None)
    assert read_kineto(path, "trace.json") == ranks


def test_a_faulty_frame_is_judged_alike_whoever_took_the_block_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = KERNEL.replace('"kernel"', '"python_function"')
    twice = frame.replace('"name": "k"', '"name": 3, "name": "k"')
    path = tmp_path / "trace.json"
    path.write_text(f"[{', '.join([KERNEL, *[frame] * 6_000, twice, frame])}]")
    ranks = read_kineto(path, "trace.json")
    monkeypatch.setattr(kineto, "scanned_blocks", lambda _: None)
    assert read_kineto(path, "trace.json") == ranks


def test_a_library_of_another_version_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not scanner.LIBRARY.is_file():
        pytest.skip("the package was built without a C compiler: there is no scanner to test")
    for library in (tmp_path / "absent.so", tmp_path / "broken.so"):
        monkeypatch.setattr(scanner, "LIBRARY", library)
        assert scanner.load_library.__wrapped__() is None
        (tmp_path / "broken.so").write_bytes(b"\x7fELF nothing")
    monkeypatch.undo()
    monkeypatch.setattr(scanner, "_VERSION", -1)
    assert scanner.load_library.__wrapped__() is None


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_more_categories_than_there_is_room_for_are_an_error_and_no_more() -> None:
    library = scanner.load_library()
    if library is None:
        pytest.skip("the package was built without a C compiler: there is no scanner to test")
    with pytest.raises(MemoryError):
        scanner.Scanner(library, {f"category {at}": 1 for at in range(33)})
    with pytest.raises(MemoryError):
        scanner.Scanner(library, {"c" * 32: 1})


def test_python_alone_reads_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABEL_AGENT_READER", "python")
    assert scanner.load_library.__wrapped__() is None


def _mutated(rng: random.Random, text: bytes) -> bytes:
    """Change, drop or repeat a few bytes, or cut the text off."""
    changed = bytearray(text)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] = rng.choice(b'"\\{}[],:0-.eE\0\x01\x80\xffnu ')
            case 1:
                del changed[at : at + rng.randrange(1, 40)]
            case 2:
                changed[at:at] = changed[at : at + rng.randrange(1, 40)]
            case _:
                del changed[at:]
        if not changed:
            return b"["
    return bytes(changed)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scanner under the compiler's own sanitizers, on blocks that stand alone in memory."""
    driver = tmp_path_factory.mktemp("scan") / "driver"
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = Path(__file__).with_name("scan_driver.c")
    command = [compiler, *flags, f"-I{SOURCE}", "-o", str(driver), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and "asan" in built.stderr + built.stdout:
        pytest.skip("the compiler has no sanitizers")
    assert built.returncode == 0, built.stderr
    return driver


def drive(driver: Path, blocks: list[bytes]) -> tuple[int, int, int]:
    """Scan blocks; give how many were taken, of how many, and the longest search for a text."""
    packed = b"".join(len(block).to_bytes(8, sys.byteorder) + block for block in blocks)
    ran = subprocess.run([str(driver)], input=packed, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    taken, total, longest = map(int, ran.stdout.split())
    return taken, total, longest


def test_no_text_makes_the_scanner_read_or_write_where_it_must_not(driver: Path) -> None:
    rng = random.Random(5)
    blocks = []
    for at in range(3_000):
        style = rng.choice(list(STYLES.values()))
        names = rng.sample(HOSTILE, 3)
        events = program(at, 8)
        for event in events:
            event["name"] = rng.choice([*names, event.get("name", "")])
        raw = write(events[: rng.randrange(1, 8)], style)
        block = raw[raw.index(b"[") : raw.rindex(b"]") + 1]
        blocks.append(_mutated(rng, block))
    taken, total, _ = drive(driver, blocks)
    assert total == len(blocks)
    assert 0 < taken < total


@pytest.mark.parametrize("types", ['"op {}"', '["{}"]', '"op"'])
def test_operators_cannot_be_named_so_that_their_search_is_long(driver: Path, types: str) -> None:
    events = [
        OPERATOR.replace('"aten::mm"', f'"op {at}"').replace('["float", ""]', types.format(at))
        for at in range(4_000)
    ]
    taken, _, longest = drive(driver, [f"[{', '.join(events)}]".encode()])
    assert taken == 1
    assert longest < 200
