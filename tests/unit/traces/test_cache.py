"""What is kept of a trace changes no result, and never outlives the trace it was read from."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent.kept import KeptFolder
from agent.traces import cache as caching
from agent.traces import reader
from agent.traces.cache import TraceCache, user_cache
from agent.traces.reader import read_trace
from tests.unit.traces.spelling import STYLES, program, write

LONG_AGO = 1_000_000_000


def put_trace(path: Path, seed: int = 1, *, age: int = LONG_AGO) -> Path:
    """Write a trace whose file looks old enough for a stamp."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(write(program(seed, 60), STYLES["oneline"]))
    os.utime(path, ns=(age, age))
    return path


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A cache that keeps the smallest files and believes that every file has settled."""
    monkeypatch.setattr(caching, "_SETTLED_NS", -(1 << 62))
    return TraceCache(KeptFolder(tmp_path / "cache"), smallest=0)


@pytest.fixture
def reads(monkeypatch):
    """The names of the files that were really read."""
    read: list[str] = []
    real = reader.read_file

    def counting(file, **options):
        read.append(file.source)
        return real(file, **options)

    monkeypatch.setattr(reader, "read_file", counting)
    return read


@pytest.fixture
def digested(monkeypatch):
    """The paths that were digested."""
    paths: list[Path] = []
    real = caching._digest_file

    def counting(path):
        paths.append(path)
        return real(path)

    monkeypatch.setattr(caching, "_digest_file", counting)
    return paths


def test_the_second_read_gives_the_same_trace_without_reading(tmp_path, kept, reads, digested):
    trace = put_trace(tmp_path / "TP-3.json")
    plain = read_trace([trace])
    reads.clear()
    assert read_trace([trace], cache=kept) == plain
    assert (reads, digested) == (["TP-3.json"], [trace])
    assert read_trace([trace], cache=kept) == plain
    assert (reads, digested) == (["TP-3.json"], [trace])


def test_a_run_of_ranks_is_recalled_file_by_file(tmp_path, kept, reads):
    for rank in range(3):
        put_trace(tmp_path / "run" / f"TP-{rank}.json", rank)
    run = [tmp_path / "run"]
    plain = read_trace(run)
    read_trace(run, cache=kept)
    put_trace(tmp_path / "run" / "TP-1.json", 7)
    reads.clear()
    assert read_trace(run, cache=kept) != plain
    assert reads == ["TP-1.json"]


def test_a_copy_is_recognised_by_its_content_but_keeps_its_own_name(tmp_path, kept, reads):
    first = put_trace(tmp_path / "a" / "TP-0.json")
    read_trace([first], cache=kept)
    (tmp_path / "b").mkdir()
    same_name = shutil.copy(first, tmp_path / "b" / "TP-0.json")
    other_name = shutil.copy(first, tmp_path / "b" / "TP-5.json")
    reads.clear()
    read_trace([same_name], cache=kept)
    assert reads == []
    (rank,) = read_trace([other_name], cache=kept).ranks
    assert (rank.label, rank.info.source) == ("5", "TP-5.json")


def test_ways_of_reading_are_kept_apart(tmp_path, kept, reads):
    trace = put_trace(tmp_path / "a.json")
    read_trace([trace], cache=kept)
    read_trace([trace], cache=kept, salvage=True)
    with_context = read_trace([trace], cache=kept, context=True)
    assert len(reads) == 3
    assert read_trace([trace], cache=kept, context=True) == with_context
    assert with_context.ranks[0].context
    assert len(reads) == 3


def test_entries_of_another_reader_are_never_met(tmp_path, kept, reads, monkeypatch):
    trace = put_trace(tmp_path / "a.json")
    read_trace([trace], cache=kept)
    monkeypatch.setattr(caching, "reader_version", lambda: "another")
    read_trace([trace], cache=kept)
    assert len(reads) == 2


def test_a_damaged_file_is_an_error_each_time(tmp_path, kept):
    cut = put_trace(tmp_path / "a.json")
    cut.write_bytes(cut.read_bytes()[:900])
    texts = []
    for _ in range(2):
        with pytest.raises(reader.CorruptTrace) as raised:
            read_trace([cut], cache=kept)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]
    assert not list(kept.folder.path.glob("*.ranks"))


@pytest.mark.parametrize("where", ["size", "head", "tail", "middle and time"])
def test_a_changed_file_is_read_again(where, tmp_path, kept, reads):
    trace = put_trace(tmp_path / "a.json")
    text = trace.read_bytes()
    read_trace([trace], cache=kept)
    changed = {
        "size": text + b" ",
        "head": text.replace(b'"schemaVersion": 1', b'"schemaVersion": 2'),
        "tail": text.replace(b'"traceName": "x"', b'"traceName": "y"'),
        "middle and time": text.replace(b"plain_kernel", b"other_kernel"),
    }[where]
    assert changed != text
    trace.write_bytes(changed)
    later = LONG_AGO + 1 if where == "middle and time" else LONG_AGO
    os.utime(trace, ns=(later, later))
    assert read_trace([trace], cache=kept) == read_trace([trace])
    assert len(reads) == 3


def test_a_file_that_is_still_warm_gets_no_stamp(tmp_path, digested):
    cache = TraceCache(KeptFolder(tmp_path / "cache"), smallest=0)
    trace = put_trace(tmp_path / "a.json")
    trace.touch()
    in_an_hour = trace.stat().st_mtime_ns + 3_600_000_000_000
    os.utime(trace, ns=(in_an_hour, in_an_hour))
    for _ in range(2):
        read_trace([trace], cache=cache)
    assert len(digested) > 2
    assert not list(cache.folder.path.glob("*.stamp"))
    assert list(cache.folder.path.glob("*.ranks"))


def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path, kept, monkeypatch):
    trace = put_trace(tmp_path / "a.json")
    real = reader.read_file

    def changing(file, **options):
        ranks = real(file, **options)
        put_trace(trace, 2, age=LONG_AGO + 5)
        return ranks

    monkeypatch.setattr(reader, "read_file", changing)
    read_trace([trace], cache=kept)
    assert not list(kept.folder.path.glob("*.ranks"))


DAMAGE = {
    "empty": lambda content: b"",
    "cut": lambda content: content[:-7],
    "flipped": lambda content: content[:-30] + bytes([content[-30] ^ 8]) + content[-29:],
    "pickle": lambda content: b"cos\nsystem\n(S'exit 1'\ntR.",
    "text": lambda content: b"hello",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_entry_is_ignored_and_written_again(how, tmp_path, kept, reads):
    trace = put_trace(tmp_path / "a.json")
    plain = read_trace([trace], cache=kept)
    (entry,) = kept.folder.path.glob("*.ranks")
    good = entry.read_bytes()
    entry.write_bytes(DAMAGE[how](good))
    assert read_trace([trace], cache=kept) == plain
    assert entry.read_bytes() == good
    assert len(reads) == 2
    read_trace([trace], cache=kept)
    assert len(reads) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"\xff", b'{"size": 1}', b"[" * 5000])
def test_a_damaged_stamp_is_ignored_and_written_again(content, tmp_path, kept, digested):
    trace = put_trace(tmp_path / "a.json")
    read_trace([trace], cache=kept)
    (stamp,) = kept.folder.path.glob("*.stamp")
    good = stamp.read_bytes()
    stamp.write_bytes(content)
    read_trace([trace], cache=kept)
    assert stamp.read_bytes() == good
    assert len(digested) == 2


def test_what_was_used_longest_ago_goes_first(tmp_path, kept):
    traces = [put_trace(tmp_path / f"{number}.json", number) for number in range(3)]
    alone = replace(kept, folder=KeptFolder(tmp_path / "alone"))
    read_trace([traces[2]], cache=alone)
    for trace in traces[:2]:
        read_trace([trace], cache=kept)
    for path in kept.folder.path.iterdir():
        os.utime(path, ns=(LONG_AGO, LONG_AGO))
    read_trace([traces[0]], cache=kept)
    used = {path for path in kept.folder.path.iterdir() if path.stat().st_mtime_ns > LONG_AGO}
    assert len(used) == 2
    limit = sum(path.stat().st_size for path in [*used, *alone.folder.path.iterdir()])
    read_trace([traces[2]], cache=replace(kept, folder=replace(kept.folder, limit=limit)))
    names = {path.name for path in [*used, *alone.folder.path.iterdir()]}
    assert {path.name for path in kept.folder.path.iterdir()} == names


def test_nothing_is_kept_that_is_larger_than_the_cache(tmp_path, kept):
    trace = put_trace(tmp_path / "a.json")
    plain = read_trace([trace])
    assert read_trace([trace], cache=replace(kept, folder=replace(kept.folder, limit=10))) == plain
    assert list(kept.folder.path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_a_file_whose_name_is_no_text_is_read_each_time(tmp_path, kept, reads):
    trace = put_trace(tmp_path / os.fsdecode(b"a\xff.json"))
    assert read_trace([trace], cache=kept) == read_trace([trace], cache=kept)
    assert len(reads) == 2
    assert not list(kept.folder.path.glob("*.ranks"))


def test_small_files_are_not_kept(tmp_path):
    cache = TraceCache(KeptFolder(tmp_path / "cache"))
    read_trace([put_trace(tmp_path / "a.json")], cache=cache)
    assert not cache.folder.path.exists()


def test_a_database_with_a_journal_is_not_kept(tmp_path, kept):
    trace = put_trace(tmp_path / "a.json")
    (tmp_path / "a.json-wal").write_bytes(b"x")
    read_trace([trace], cache=kept)
    assert not kept.folder.path.exists()


@pytest.mark.parametrize("obstacle", ["a file", "no rights"])
def test_a_cache_that_cannot_be_written_is_no_error(obstacle, tmp_path, monkeypatch):
    trace = put_trace(tmp_path / "a.json")
    folder = tmp_path / "cache"
    if obstacle == "a file":
        folder.write_text("")
    else:
        monkeypatch.setattr(Path, "mkdir", _refuse)
    assert read_trace([trace], cache=TraceCache(KeptFolder(folder), smallest=0)) == read_trace(
        [trace]
    )


def _refuse(*_, **__):
    raise PermissionError(13, "Permission denied")


def test_a_full_disk_leaves_nothing_half_written(tmp_path, kept, monkeypatch):
    trace = put_trace(tmp_path / "a.json")
    plain = read_trace([trace])

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert read_trace([trace], cache=kept) == plain
    assert list(kept.folder.path.iterdir()) == []


def _read_often(folder, trace, results):
    cache = TraceCache(KeptFolder(folder, limit=20_000), smallest=0)
    results.put([read_trace([trace], cache=cache).kernel_ns for _ in range(15)])


def test_several_processes_share_it(tmp_path):
    """Each keeps, recalls and makes room at once; all see the same figures."""
    traces = [put_trace(tmp_path / f"{number}.json", number) for number in range(4)]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=_read_often, args=(tmp_path / "cache", trace, results))
        for trace in traces
    ]
    for process in processes:
        process.start()
    found = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    expected = [[read_trace([trace]).kernel_ns] * 15 for trace in traces]
    assert sorted(found) == sorted(expected)
    assert not list((tmp_path / "cache").glob("*.part"))


def test_the_folder_is_the_users_and_closed_to_others(tmp_path, monkeypatch, kept):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert user_cache().folder.path == tmp_path / "xdg" / "label-agent"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_cache().folder.path.is_relative_to(Path.home())
    read_trace([put_trace(tmp_path / "a.json")], cache=kept)
    assert kept.folder.path.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept.folder.path.iterdir())


def test_without_a_home_nothing_is_kept(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert user_cache() is None
