"""Progress of reading on stderr: a bar per file, only on a terminal and only after a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from agent.traces.inflate import ReadProgress

DELAY_S = 1.0
Report = Callable[["ReadProgress"], None]


class ReadingBars:
    """Draws a bar for each file being read, once reading has taken `DELAY_S`."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def report(self, read: ReadProgress) -> None:
        """Move the bar of a file to how far it has been read."""
        if self._bars is None:
            if time.monotonic() - self._since < DELAY_S:
                return
            self._bars = _start_bars()
        if read.source not in self._tasks:
            self._tasks[read.source] = self._bars.add_task(_label(read.source), total=read.total)
        self._bars.update(self._tasks[read.source], completed=read.done)

    def stop(self) -> None:
        """Take the bars away, leaving the screen as it was."""
        if self._bars is not None:
            self._bars.stop()


@contextmanager
def reading_progress() -> Iterator[Report | None]:
    """Give a function that draws progress, or None where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bars = ReadingBars()
    try:
        yield bars.report
    finally:
        bars.stop()


def _start_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bars.start()
    return bars


def _label(source: str) -> str:
    from agent.core.text import shown

    return shown(source, limit=48)
