"""Golden inputs with damaged bytes: a `TraceError` or a result, never a traceback or a hang."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agent.errors import LabelAgentError
from agent.traces.profile import write_profile
from agent.traces.reader import read_trace
from tests.unit.traces.inputs import CASES, put_input, read_one

N_DAMAGED = 60
SNIPPETS = (b'"', b",", b"}", b"[", b"\0", b"\xff", b"-", b"9" * 30, b"\n", b"null", b'""', b"\\")


def damage(content: bytes, dice: random.Random) -> bytes:
    """Change a few bytes at random places: cut, drop, put in, overwrite."""
    damaged = bytearray(content)
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(damaged) or 1)
        match dice.randrange(4):
            case 0:
                del damaged[at:]
            case 1:
                del damaged[at : at + dice.randint(1, 40)]
            case 2:
                damaged[at:at] = dice.choice(SNIPPETS)
            case _:
                damaged[at : at + 4] = dice.randbytes(4)
    return bytes(damaged)


@pytest.mark.parametrize("folder", CASES, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_damaged_input_is_an_error_or_a_result(folder: Path, tmp_path: Path) -> None:
    dice = random.Random(str(folder.relative_to(folder.parents[1])))
    whole = put_input(folder, tmp_path)
    content = whole.read_bytes()
    before = read_trace(whole)
    path = tmp_path / f"damaged-{whole.name}"
    errors: list[LabelAgentError] = []
    for _ in range(N_DAMAGED):
        path.write_bytes(damage(content, dice))
        for salvage in (False, True):
            try:
                write_profile(read_trace(path, salvage=salvage))
            except LabelAgentError as err:
                errors.append(err)
    assert [err for err in errors if not err.code.startswith("TR") or not err.hint] == []
    assert read_trace(whole) == before


def test_an_empty_file_of_each_kind_is_an_error(tmp_path: Path) -> None:
    for name in ("a.csv", "a.db", "a.rpd", "a.sqlite", "a.json", "a.profile"):
        path = tmp_path / name
        path.write_bytes(b"")
        with pytest.raises(LabelAgentError):
            read_one(path)
