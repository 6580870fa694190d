"""Blocks that the scanner read -> columns of a collector, as `Collector.take` would fill them."""

from __future__ import annotations

from array import array
from typing import Final

import msgspec
import numpy as np

from agent.traces.collect import Collector
from agent.traces.columns import UNKNOWN, FileRank, append, append_narrow
from agent.traces.events import KINDS, Event
from agent.traces.scanner import (
    CALLS,
    KERNEL_NAMES,
    OPERATORS,
    THREADS,
    Fresh,
    Scan,
    Scanner,
    load_library,
)
from agent.traces.vectors import Vector, as_vector

_RARE: Final = msgspec.json.Decoder(list[Event])
_TEXT: Final = msgspec.json.Decoder(str)
_PLACE: Final = msgspec.json.Decoder(int | str)
_NO_PLACE: Final = Event().tid


class ScannedBlocks:
    """Fills a collector from the text of blocks.

    The scanner numbers texts on its own; `_ids` has the collector's id of each of them.
    """

    def __init__(self, collector: Collector, scanner: Scanner) -> None:
        """Name both; the collector may take other blocks in between."""
        self._collector = collector
        self._scanner = scanner
        self._ids: list[array[int]] = [array("q") for _ in range(4)]
        self._typed = array("B")

    def take(self, text: bytes) -> int | None:
        """Add a block and give the number of its events; None, and nothing, where it is refused."""
        scan = self._scanner.scan(text)
        if scan is None:
            return None
        collector = self._collector
        self._learn(scan.fresh)
        try:
            rare = _RARE.decode(b"[" + b",".join(scan.rare) + b"]")
        except msgspec.DecodeError:
            return None
        collector.take(rare)
        collector.phased |= scan.phased
        collector.n_frames += scan.n_frames
        rank = collector.rank("")
        if scan.kernels.size:
            self._add_kernels(rank, scan.kernels)
        if scan.operators.size:
            self._add_operators(rank, scan)
        if scan.launches.size:
            self._add_launches(rank, scan.launches)
        return scan.n_events

    def _learn(self, fresh: list[Fresh]) -> None:
        for text in fresh:
            self._ids[text.table].append(self._id(text))
            if text.table == OPERATORS:
                self._typed.append(bool(text.types))

    def _of(self, table: int, numbers: Vector) -> Vector:
        """Give the collector's ids for the scanner's numbers."""
        return as_vector(self._ids[table])[numbers]

    def _id(self, fresh: Fresh) -> int:
        """Give what the collector calls it; of a runtime call, its flags."""
        collector = self._collector
        if fresh.table == THREADS:
            place = _PLACE.decode(fresh.text) if fresh.text else _NO_PLACE
            return collector.threads.id(place)
        name = _TEXT.decode(fresh.text)
        if fresh.table == KERNEL_NAMES:
            return collector.names.id(name)
        if fresh.table == CALLS:
            return collector.flags_of(name)
        return collector.operators.id((name, fresh.types, b""))

    def _add_kernels(self, rank: FileRank, scanned: Vector) -> None:
        start, duration, name, work, device, stream, correlation, external_id = scanned
        columns = rank.kernels
        rank.negative += int(np.count_nonzero(duration < 0))
        columns.names.append(self._of(KERNEL_NAMES, name))
        append(columns.work, work)
        append(columns.start_ns, start)
        append_narrow(columns, "duration_ns", np.maximum(duration, 0))
        columns.devices.append(device)
        columns.streams.append(stream)
        columns.correlations.append(correlation)
        columns.external_ids.append(external_id)

    def _add_operators(self, rank: FileRank, scan: Scan) -> None:
        start, duration, what, external_id, thread = scan.operators
        columns = rank.operators
        ids = self._of(OPERATORS, what)
        rank.shapes += int(np.count_nonzero(as_vector(self._typed)[what]))
        columns.what.append(ids)
        columns.external_id.append(external_id)
        columns.start_ns.append(start)
        columns.end_ns.append(start + np.maximum(duration, 0))
        columns.thread.append(self._of(THREADS, thread))

    def _add_launches(self, rank: FileRank, scanned: Vector) -> None:
        flags = self._of(CALLS, scanned[1])
        kept = flags != UNKNOWN
        start, _, correlation, external_id, thread = scanned[:, kept]
        columns = rank.launches
        append(columns.start_ns, start)
        append_narrow(columns, "correlation", correlation)
        append_narrow(columns, "external_id", external_id)
        append(columns.thread, self._of(THREADS, thread))
        append(columns.flags, flags[kept])


def scanned_blocks(collector: Collector) -> ScannedBlocks | None:
    """Give what fills a collector quickly; None where nothing compiled is at hand."""
    library = load_library()
    return ScannedBlocks(collector, Scanner(library, KINDS)) if library else None
