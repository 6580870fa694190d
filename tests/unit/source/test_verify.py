"""Pinned evidence found again at another commit of the same checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.proposals import Evidence
from agent.source.evidence.items import read_item
from agent.source.evidence.pins import pinned
from agent.source.index import open_sources
from agent.source.verify import NEEDS_A_PERSON, EvidenceStatus
from tests.checkouts import BACKEND, KERNLIB, SYMBOL, UTILS, commit_tree, elf_with, line_of

PATH = "engine/backend.py"
TABLE = "hsa/gfx942/mla/mla_asm.csv"
TABLE_TEXT = str(KERNLIB[TABLE])
FILES = {PATH: BACKEND, "engine/utils.py": UTILS, TABLE: TABLE_TEXT, "hsa/a.co": elf_with("_Zk")}


def pin(folder: Path, kind: str, path: str, text: str, part: str, more: int = 0) -> Evidence:
    """Commit the files and pin the place of `part` there."""
    commit = commit_tree(folder, FILES)
    index = open_sources([("repo", folder)])
    line = line_of(text, part)
    entry = Evidence(kind, "repo", commit, path, (line, line + more))  # type: ignore[arg-type]
    bundle = index.workbench().bundle("repo", commit)
    names = ("_Zk",) if kind == "binary" else ()
    taken = pinned(read_item(entry, bundle, names))  # type: ignore[arg-type]
    assert taken.pin is not None
    return taken


def cast(folder: Path) -> Evidence:
    return pin(folder, "emission", PATH, BACKEND, "kvc = kvc.to(dtype)", 1)


def again(folder: Path, entry: Evidence, files: dict[str, str | bytes]) -> EvidenceStatus:
    """Commit a change and look for the evidence there."""
    commit_tree(folder, files)
    return open_sources([("repo", folder)]).verify(entry)


def without(text: str, part: str) -> str:
    return "\n".join(line for line in text.split("\n") if part not in line)


def test_an_unchanged_file_is_the_same(tmp_path: Path) -> None:
    entry = cast(tmp_path)
    found = again(tmp_path, entry, {"other.py": "x = 1\n"})
    assert found.status == "SAME"
    assert found.found is not None
    assert found.found.commit != entry.commit
    assert found.found.lines == entry.lines


def test_lines_that_moved_within_their_function_are_found_by_their_tokens(tmp_path: Path) -> None:
    entry = cast(tmp_path)
    moved = "# one\n# two\n" + BACKEND.replace(
        "kvc = kvc.to(dtype)", "kvc  =  kvc.to(dtype)  # why"
    )
    found = again(tmp_path, entry, {PATH: moved})
    assert found.status == "MOVED"
    assert found.found is not None
    assert found.found.lines == (entry.lines[0] + 2, entry.lines[1] + 2)
    assert found.found.pin is not None
    assert found.found.pin.snippet_sha256 == entry.pin.snippet_sha256  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("if self.kv_cache_dtype == fp8_dtype:\n                    dtype", "if True:\n                    dtype", "without"),
        ("        if self.use_mla:\n            if layer", "        if self.dcp > 1:\n            return q\n        if self.use_mla:\n            if layer", "with -self.dcp > 1"),
    ],
)  # fmt: skip
def test_other_guards_need_a_person(tmp_path: Path, before: str, after: str, says: str) -> None:
    entry = cast(tmp_path)
    assert before in BACKEND
    found = again(tmp_path, entry, {PATH: BACKEND.replace(before, after, 1)})
    assert found.status == "MOVED_GUARDS_CHANGED"
    assert says in found.message
    assert found.status in NEEDS_A_PERSON


def test_code_that_is_gone_is_stale_however_alike_its_neighbours_are(tmp_path: Path) -> None:
    entry = cast(tmp_path)
    gone = without(without(BACKEND, "kvc = kvc.to(dtype)"), "k_pe = k_pe.to(dtype)")
    found = again(tmp_path, entry, {PATH: gone})
    assert (found.status, found.found) == ("STALE", None)


def test_a_call_written_otherwise_has_changed(tmp_path: Path) -> None:
    entry = cast(tmp_path)
    changed = BACKEND.replace("kvc = kvc.to(dtype)", "kvc = kvc.to(q.dtype)")
    assert again(tmp_path, entry, {PATH: changed}).status == "CHANGED"


def test_code_in_another_file_is_relocated_and_in_two_ambiguous(tmp_path: Path) -> None:
    entry = cast(tmp_path)
    found = again(tmp_path, entry, {PATH: "x = 1\n", "engine/new_backend.py": BACKEND})
    assert found.status == "RELOCATED"
    assert found.found is not None
    assert found.found.path == "engine/new_backend.py"
    twice = again(tmp_path, entry, {"engine/third.py": BACKEND})
    assert twice.status == "AMBIGUOUS"
    assert len(twice.places) == 2


def test_the_same_tokens_twice_in_a_function_are_ambiguous(tmp_path: Path) -> None:
    entry = pin(tmp_path, "emission", PATH, BACKEND, "k_cache = k_cache.to(dtype)")
    line = "            k_cache = k_cache.to(dtype)\n"
    assert again(tmp_path, entry, {PATH: BACKEND.replace(line, line + line)}).status == "AMBIGUOUS"


def test_a_definition_follows_its_function(tmp_path: Path) -> None:
    entry = pin(tmp_path, "definition", "engine/utils.py", UTILS, "def fill_indices_kernel_wide(")
    moved = again(tmp_path, entry, {"engine/utils.py": "import os\n" + UTILS})
    assert moved.status == "MOVED"
    head = "def fill_indices_kernel_wide(out_ptr, n, BLOCK: tl.constexpr):"
    changed = UTILS.replace(head, "def fill_indices_kernel_wide(out_ptr, BLOCK: tl.constexpr):")
    assert again(tmp_path, entry, {"engine/utils.py": changed}).status == "CHANGED"
    gone = UTILS.replace("fill_indices_kernel_wide", "renamed_kernel")
    assert again(tmp_path, entry, {"engine/utils.py": gone}).status == "STALE"


def test_a_table_row_follows_its_symbol(tmp_path: Path) -> None:
    entry = pin(tmp_path, "table", TABLE, TABLE_TEXT, f"{SYMBOL},")
    head, rest = TABLE_TEXT.split("\n", 1)
    moved = again(tmp_path, entry, {TABLE: f"{head}\nfp8,1,_Zother,o.co\n{rest}"})
    assert (moved.status, moved.found.lines if moved.found else ()) == ("MOVED", (3, 3))
    changed = TABLE_TEXT.replace(f"fp8,16,{SYMBOL}", f"bf16,16,{SYMBOL}")
    assert again(tmp_path, entry, {TABLE: changed}).status == "CHANGED"
    gone = without(TABLE_TEXT, f"{SYMBOL},")
    assert again(tmp_path, entry, {TABLE: gone}).status == "STALE"
    other = again(tmp_path, entry, {"hsa/gfx942/mla_v2/asm.csv": TABLE_TEXT})
    assert other.status == "RELOCATED"


def test_a_code_object_built_again_keeps_its_symbol_or_is_stale(tmp_path: Path) -> None:
    entry = pin(tmp_path, "binary", "hsa/a.co", "x", "x")
    assert again(tmp_path, entry, {"hsa/a.co": elf_with("_Zk", "_Znew")}).status == "CHANGED"
    assert again(tmp_path, entry, {"hsa/a.co": elf_with("_Znew")}).status == "STALE"


def test_evidence_without_a_pin_or_checkout_says_so(tmp_path: Path) -> None:
    entry = cast(tmp_path)
    index = open_sources([("repo", tmp_path)])
    assert (
        index.verify(Evidence("emission", "repo", entry.commit, PATH, (1, 1))).status == "UNPINNED"
    )
    other = Evidence("emission", "elsewhere", entry.commit, PATH, (1, 1), pin=entry.pin)
    assert index.verify(other).status == "NOT_CHECKED"
