from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agent.errors import JournalError
from agent.review.journal import Journal, journal_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return journal_path(tmp_path)


def _written(path: Path, count: int = 3) -> bytes:
    with Journal(path) as journal:
        for number in range(count):
            journal.append("turn", {"n": number, "name": "k\x1b\ud800[/x]"})
    return path.read_bytes()


def test_reading_touches_nothing(path: Path) -> None:
    assert Journal(path).records() == ()
    assert not path.parent.exists()


def test_records_come_back_in_order_with_whatever_they_hold(path: Path) -> None:
    _written(path)
    records = Journal(path).records()
    assert [record.seq for record in records] == [1, 2, 3]
    assert records[2].kind == "turn"
    assert records[2].data == {"n": 2, "name": "k\x1b\ud800[/x]"}


def test_lines_hold_no_control_characters(path: Path) -> None:
    assert all(32 <= byte < 127 or byte == 10 for byte in _written(path))


def test_the_folder_ignores_itself_for_git(path: Path) -> None:
    _written(path)
    assert (path.parent / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("cut", [1, 2, 10, 40])
def test_a_torn_last_line_is_left_out_and_reported_then_cut_off(path: Path, cut: int) -> None:
    whole = _written(path)
    path.write_bytes(whole[:-cut])
    journal = Journal(path)
    kept = len(journal.records())
    assert kept == (3 if cut == 1 else 2)  # without its line end only, a line is whole
    assert [finding.code for finding in journal.findings] == ([] if cut == 1 else ["JR002"])
    with journal:
        journal.append("turn", {"n": 9})
    assert [record.data["n"] for record in Journal(path).records()][-1] == 9
    assert len(Journal(path).records()) == kept + 1


def test_a_tail_of_zero_bytes_after_a_power_cut_is_a_torn_line(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(_written(path) + b"\0" * 512)
    assert len(Journal(path).records()) == 3


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        pytest.param(lambda lines: [lines[0], b"{", lines[2]], "JR003", id="half a line"),
        pytest.param(lambda lines: [lines[0], b"", lines[2]], "JR003", id="an empty line"),
        pytest.param(
            lambda lines: [lines[0], lines[1].replace(b'"n":1', b'"n":7'), lines[2]],
            "JR003",
            id="one changed character",
        ),
        pytest.param(lambda lines: [lines[0], b"[" * 100_000, lines[2]], "JR003", id="nested"),
        pytest.param(lambda lines: [lines[0], b"\xff\xfe", lines[2]], "JR003", id="not UTF-8"),
        pytest.param(lambda lines: [lines[0], lines[2], lines[2]], "JR004", id="a lost line"),
        pytest.param(
            lambda lines: [lines[0], lines[1].replace(b'"schema":1', b'"schema":2'), lines[2]],
            "JR005",
            id="a newer schema",
        ),
    ],
)
def test_damage_before_the_last_line_names_the_line(path: Path, damage, code: str) -> None:
    lines = _written(path).splitlines()
    path.write_bytes(b"\n".join(damage(lines)) + b"\n")
    with pytest.raises(JournalError) as caught:
        Journal(path).records()
    assert (caught.value.code, caught.value.location) == (code, f"{path}:2")


def test_a_second_process_cannot_have_the_journal(path: Path) -> None:
    with Journal(path) as first:
        first.append("turn", {})
        with pytest.raises(JournalError, match="another label-agent") as caught:
            Journal(path).append("turn", {})
        assert caught.value.code == "JR006"
        assert len(Journal(path).records()) == 1
    Journal(path).append("turn", {})


def test_threads_share_one_journal(path: Path) -> None:
    with Journal(path) as journal:
        work = [
            threading.Thread(target=lambda: [journal.append("turn", {}) for _ in range(20)])
            for _ in range(5)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert len(Journal(path).records()) == 100


@pytest.mark.parametrize("which", ["journal.jsonl", ".label-agent"])
def test_a_planted_symbolic_link_is_not_followed(tmp_path: Path, path: Path, which: str) -> None:
    target = tmp_path / "victim"
    if which == "journal.jsonl":
        path.parent.mkdir()
        target.write_text("precious\n")
        path.symlink_to(target)
    else:
        target.mkdir()
        path.parent.symlink_to(target)
    with pytest.raises(JournalError) as caught:
        Journal(path).append("turn", {})
    assert caught.value.code == "JR001"
    assert target.is_dir() or target.read_text() == "precious\n"


def test_a_kill_at_any_moment_loses_no_reported_record(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from agent.review.journal import Journal\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for number in range(10**6):\n"
        "    journal.append('turn', {'n': number, 'text': 'x' * 5000})\n"
        "    print(number, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        for _ in range(20):
            reported = int(child.stdout.readline())
        time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        reported = max([reported, *map(int, child.stdout.read().split("\n")[:-1])])
    assert len(Journal(path).records()) > reported
    Journal(path).append("turn", {})


def test_a_full_disk_leaves_whole_lines_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _written(path)
    journal = Journal(path)
    journal.acquire()
    real = os.write

    def full(file: int, content: bytes) -> int:
        real(file, bytes(content)[:7])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError, match="No space left"):
        journal.append("turn", {"n": 3})
    assert path.read_bytes() == before


def test_a_line_is_plain_json(path: Path) -> None:
    first = json.loads(_written(path).splitlines()[0])
    assert first["schema"] == 1
    assert first["kind"] == "turn"
