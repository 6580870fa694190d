"""A folder that is shared, bounded, and may be lost at any time."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent.kept import KeptFolder, digest_of_files, user_folder


@pytest.fixture
def folder(tmp_path):
    return KeptFolder(tmp_path / "kept", limit=100)


def names(folder):
    return sorted(path.name for path in folder.path.iterdir())


def age(folder, **seconds):
    for name, when in seconds.items():
        os.utime(folder.path / name, (when, when))


def test_what_is_put_is_got_and_the_last_one_counts(folder):
    assert folder.get("a") is None
    assert not folder.holds("a")
    folder.put("a", b"old")
    folder.put("a", b"new")
    assert folder.get("a") == b"new"
    assert folder.holds("a")
    assert names(folder) == ["a"]


def test_what_was_used_longest_ago_goes_first(folder):
    for name in "abc":
        folder.put(name, bytes(30))
    age(folder, a=1, b=2, c=3)
    folder.get("a")
    folder.put("d", bytes(30))
    assert names(folder) == ["a", "c", "d"]


def test_one_that_is_larger_than_the_folder_does_not_stay(folder):
    folder.put("a", bytes(101))
    assert names(folder) == []


def test_what_a_killed_process_left_behind_ages_like_the_rest(folder):
    folder.put("a", bytes(30))
    (folder.path / "tmp1.part").write_bytes(bytes(60))
    age(folder, **{"tmp1.part": 1})
    folder.put("b", bytes(30))
    assert names(folder) == ["a", "b"]


def test_folders_and_foreign_links_inside_are_left_alone(folder):
    (folder.path / "more").mkdir(parents=True)
    folder.put("a", bytes(101))
    assert names(folder) == ["more"]


def _refuse(*_, **__):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("what", ["mkdir", "replace", "iterdir", "read_bytes"])
def test_what_cannot_be_read_or_written_is_no_error(what, folder, monkeypatch):
    monkeypatch.setattr(Path, what, _refuse)
    folder.put("a", b"x")
    folder.get("a")
    assert not list(os.scandir(folder.path) if folder.path.exists() else ()) or what != "replace"


def test_it_is_closed_to_others(folder):
    folder.put("a", b"x")
    assert [path.stat().st_mode & 0o077 for path in (folder.path, folder.path / "a")] == [0, 0]


def test_the_folder_is_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert user_folder().path == tmp_path / "xdg" / "label-agent"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_folder().path.is_relative_to(Path.home())


def test_without_a_home_there_is_none(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert user_folder() is None


def test_a_digest_tells_where_files_end(tmp_path):
    def digest(*texts):
        paths = [tmp_path / str(number) for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return digest_of_files(paths)

    assert digest("ab", "c") == digest("ab", "c")
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", "")}) == 4


def test_a_smaller_limit_holds_from_the_next_file_on(folder):
    folder.put("a", bytes(60))
    age(folder, a=1)
    replace(folder, limit=50).put("b", bytes(40))
    assert names(folder) == ["b"]
