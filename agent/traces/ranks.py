"""Which rank and stage of a run a file is, from its name and its metadata; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

_COORDINATE: Final = re.compile(
    r"(?<![A-Za-z])(?P<axis>TP|DP|PP|EP|CP|SP)[-_]?(?P<number>\d{1,5})(?!\d)"
)
_RANK: Final = re.compile(r"(?<![A-Za-z])rank[-_]?(?P<number>\d{1,5})(?!\d)", re.IGNORECASE)
_TRACE: Final = re.compile(
    r"(?<![A-Za-z])trace[-_](?P<number>\d{1,4})(?=$|\.(?:pt|trace|json|gz|rpd|db|csv)\b)",
    re.IGNORECASE,
)
LARGEST_WORLD: Final = 1_000_000
_STAGE: Final = re.compile(r"(?<![A-Za-z])(?P<stage>DECODE|EXTEND|PREFILL)(?![A-Za-z])")
_MERGED: Final = re.compile(r"^merged[-_](?P<profile>.+?)(?:\.trace)?\.json(?:\.gz)?$")
_SUFFIXES: Final = re.compile(r"(?:\.pt)?(?:\.trace)?(?:\.json)?(?:\.gz)?$")


@dataclass(frozen=True, slots=True)
class RankName:
    """What a file name says: coordinates by axis (`TP` -> 3), a plain rank number, a stage."""

    coordinates: tuple[tuple[str, int], ...] = ()
    number: int | None = None
    stage: str = ""

    @property
    def label(self) -> str:
        """`TP-3-DP-1`, `3`, or "" where the name says nothing."""
        if self.coordinates:
            return "-".join(f"{axis}-{number}" for axis, number in self.coordinates)
        return "" if self.number is None else str(self.number)


def parse_file_name(name: str) -> RankName:
    """Read rank and stage from a file's name (`…-TP-0-DECODE.trace.json.gz`, `rank3.json`).

    Where it says nothing, its folder's name does (`rank3/trace.json`).
    """
    read = [_parse_part(part) for part in reversed(name.replace("\\", "/").split("/"))]
    stage = next((found.stage for found in read if found.stage), "")
    placed = (found for found in read if found.label)
    return replace(next(placed, RankName()), stage=stage)


def _parse_part(stem: str) -> RankName:
    stage = _STAGE.search(stem)
    coordinates = coordinates_in(stem)
    plain = _RANK.search(stem) or _TRACE.search(stem)
    number = int(plain["number"]) if plain else None
    if number is None and len(coordinates) == 1 and coordinates[0][0] == "TP":
        number = coordinates[0][1]
    return RankName(coordinates, number, stage["stage"] if stage else "")


def coordinates_in(text: str) -> tuple[tuple[str, int], ...]:
    """Read `TP-1-DP-0` or a merger's `TP01-DP00`."""
    return tuple((found["axis"], int(found["number"])) for found in _COORDINATE.finditer(text))


def numbers_by_axis(
    places: Mapping[str, tuple[tuple[str, int], ...]],
) -> dict[str, int]:
    """Number ranks by the one axis on which they differ; empty when several axes disagree."""
    axes: dict[str, dict[str, int]] = {}
    for key, coordinates in places.items():
        for axis, number in coordinates:
            axes.setdefault(axis, {})[key] = number
    complete = [numbers for numbers in axes.values() if len(numbers) == len(places)]
    telling = [numbers for numbers in complete if len(set(numbers.values())) > 1] or complete[:1]
    if not telling or any(numbers != telling[0] for numbers in telling):
        return {}
    return telling[0]


def merged_labels(keys: Sequence[str]) -> dict[str, str]:
    """Name the ranks of a merged file by the parts of their prefix that differ (`TP01`)."""
    parts = {key: key.split("-") for key in keys}
    width = {len(split) for split in parts.values()}
    if len(width) != 1 or not keys:
        return {key: key for key in keys}
    (n_parts,) = width
    telling = [at for at in range(n_parts) if len({split[at] for split in parts.values()}) > 1] or [
        0
    ]
    return {key: "-".join(split[at] for at in telling) for key, split in parts.items()}


def merged_profile(name: str) -> str | None:
    """Give the profile id of a merger's file (`merged-1769070226.07.trace.json.gz`), or None."""
    found = _MERGED.match(name.replace("\\", "/").rpartition("/")[2])
    return found["profile"] if found else None


def missing_numbers(numbers: Iterable[int], world_size: int) -> list[int]:
    """Give the ranks of a world that are not there; none for a world no machine has."""
    present = set(numbers)
    if world_size > LARGEST_WORLD:
        return []
    return [number for number in range(world_size) if number not in present]


def unique_labels(labels: Sequence[str]) -> list[str]:
    """Make labels unique by numbering the later ones (`0`, `0 (2)`)."""
    taken: set[str] = set()
    unique: list[str] = []
    for label in labels:
        candidate, count = label, 1
        while candidate in taken:
            count += 1
            candidate = f"{label} ({count})"
        taken.add(candidate)
        unique.append(candidate)
    return unique


def stem_of(name: str) -> str:
    """Give a file's name without its folders and trace suffixes."""
    base = name.replace("\\", "/").rpartition("/")[2]
    return _SUFFIXES.sub("", base) or base


def distributed(metadata: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Give rank and world size of `distributedInfo`, where they are numbers."""
    info = metadata.get("distributedInfo")
    if not isinstance(info, dict):
        return None, None
    return _count(info.get("rank")), _count(info.get("world_size"))


def _count(value: object) -> int | None:
    """Give a rank or a size of the world; None for what no machine has."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= LARGEST_WORLD else None
