"""Inputs of the format tests: the golden folders, and reading a file of one rank."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agent.core.kernels import RankTrace
from agent.traces.reader import read_trace

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "formats"
CASES = sorted(path.parent for path in GOLDEN.glob("*/*/expected.json"))


def put_input(folder: Path, scratch: Path) -> Path:
    """Give the input of a golden folder; SQL is run into a database file first."""
    (source,) = [path for path in folder.iterdir() if path.name != "expected.json"]
    if source.suffix != ".sql":
        return source
    database = scratch / source.stem
    with sqlite3.connect(database) as connection:
        connection.executescript(source.read_text(encoding="utf-8"))
    connection.close()
    return database


def read_one(path: Path, *, salvage: bool = False) -> RankTrace:
    """Read a file that holds one rank."""
    (rank,) = read_trace(path, salvage=salvage).ranks
    return rank
