"""How much a question to a checkout reads, counted in files that are parsed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import SourceError
from agent.source.index import MAX_LOOKED, GitSourceIndex, open_sources
from tests.checkouts import commit_tree

JIT = "import triton\n\n\n@triton.jit\ndef other_kernel(k_ptr, mm):\n    return scale_rows(mm)\n"
OWN = "import triton\n\n\n@triton.jit\ndef scale_rows(x):\n    pass\n"


def _index(folder: Path, files: dict[str, str]) -> GitSourceIndex:
    commit_tree(folder / "serve", files)
    return open_sources([("serve", folder / "serve")])


def test_only_files_that_name_a_kernel_are_parsed_to_find_its_definition(tmp_path: Path) -> None:
    others = {f"ops/other_{number}.py": JIT for number in range(60)}
    index = _index(tmp_path, {**others, "ops/own.py": OWN})
    assert [one.path for one in index.find_definition("scale_rows")] == ["ops/own.py"]
    assert len(index.workbench().trees) == 1


@pytest.mark.parametrize("name", ["k", "mm", "ptr", "rows"])
def test_a_piece_of_a_word_is_no_reason_to_parse(tmp_path: Path, name: str) -> None:
    index = _index(tmp_path, {f"ops/other_{number}.py": JIT for number in range(60)})
    assert index.find_definition(name) == ()
    assert len(index.workbench().trees) == 0


@pytest.mark.parametrize("files", [MAX_LOOKED, MAX_LOOKED + 1])
def test_a_word_that_many_files_hold_and_none_calls_is_too_common(
    tmp_path: Path, files: int
) -> None:
    texts = {f"ops/f{number}.py": f"name = {number}\n" for number in range(files)}
    index = _index(tmp_path, texts)
    if files == MAX_LOOKED:
        assert index.find_call_sites("name") == ()
        return
    with pytest.raises(SourceError, match=f"stands in more than {MAX_LOOKED} files") as raised:
        index.find_call_sites("name")
    assert raised.value.code == "SC007"


def test_a_common_word_that_is_called_is_found_before_the_limit(tmp_path: Path) -> None:
    texts = {f"ops/f{number:03}.py": "def f():\n    name()\n" for number in range(MAX_LOOKED + 1)}
    assert len(_index(tmp_path, texts).find_call_sites("name", limit=5)) == 5
