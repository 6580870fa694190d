"""Reports do not tell whether a trace was read or recalled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import main
from agent.traces import cache as caching
from agent.traces import reader
from tests.unit.traces.spelling import STYLES, program, write


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """Two runs of two ranks, under a cache that keeps small files, too."""
    monkeypatch.chdir(tmp_path)
    real = caching.user_cache
    small = {"smallest": 0}
    monkeypatch.setattr(caching, "user_cache", lambda: caching.TraceCache(real().folder, **small))
    for name, seed in (("base", 1), ("new", 2)):
        (tmp_path / name).mkdir()
        for rank in range(2):
            path = tmp_path / name / f"TP-{rank}.json"
            path.write_bytes(write(program(10 * seed + rank, 80), STYLES["native"]))
            os.utime(path, ns=(1, 1))
    return ["base", "new"]


def kept_files():
    return sorted(caching.user_cache().folder.path.glob("*.ranks"))


FORMS = [["--format", form] for form in ("text", "md", "csv", "html", "json")]


@pytest.mark.parametrize("form", [*FORMS, ["--by", "rank"], ["--by", "stream"]])
def test_a_diff_from_the_cache_is_the_same_to_the_byte(form, pair, capsys, monkeypatch):
    assert main(["diff", *pair, *form, "--no-cache"]) == 0
    plain = capsys.readouterr()
    assert not kept_files()
    assert main(["diff", *pair, *form]) == 0
    assert capsys.readouterr() == plain
    assert len(kept_files()) == 4
    monkeypatch.setattr(reader, "read_file", _not_again)
    assert main(["diff", *pair, *form]) == 0
    assert capsys.readouterr() == plain


@pytest.mark.parametrize("form", [*FORMS, ["-o", "run.profile"]])
def test_a_label_from_the_cache_is_the_same_to_the_byte(form, pair, capsys, monkeypatch):
    command = ["label", *pair[:1], *form]
    assert main([*command, "--no-cache"]) == 0
    plain = capsys.readouterr()
    written = Path("run.profile").read_bytes() if "-o" in form else b""
    assert not kept_files()
    assert main(command) == 0
    monkeypatch.setattr(reader, "read_file", _not_again)
    assert capsys.readouterr() == plain
    assert main(command) == 0
    assert capsys.readouterr() == plain
    assert written == (Path("run.profile").read_bytes() if "-o" in form else b"")


SLOW = ("numpy", "pydantic", "multiprocessing", "rich", "tomllib")


def test_a_diff_from_the_cache_loads_nothing_that_reads(pair):
    code = (
        "import sys; from agent.traces import cache; real = cache.user_cache;"
        "cache.user_cache = lambda: cache.TraceCache(real().folder, smallest=0);"
        "from agent.cli import main; main(['diff', 'base', 'new', '-o', 'report.md']);"
        f"print(*(name for name in {SLOW!r} if name in sys.modules))"
    )
    loaded = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
        loaded.append(set(done.stdout.decode().split()))
    assert loaded[0] >= {"numpy", "pydantic", "tomllib"}
    assert loaded[1] == set()


def _not_again(*_, **__):
    raise AssertionError("this file was kept")


def test_commands_at_once_agree(pair):
    """Each finds a cache that the others are filling."""
    code = (
        "import sys; from agent.traces import cache; real = cache.user_cache;"
        "cache.user_cache = lambda: cache.TraceCache(real().folder, smallest=0);"
        "from agent.cli import main; sys.exit(main(['diff', 'base', 'new', '--json']))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)
    ]
    outputs = {process.communicate(timeout=60)[0] for process in running}
    assert [process.returncode for process in running] == [0] * 4
    assert len(outputs) == 1
