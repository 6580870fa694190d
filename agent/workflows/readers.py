"""Runs read side by side, one process each; the same traces as one after the other.

Small runs are read here: a process costs more than it saves.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from agent.core.kernels import Trace
from agent.errors import TraceError
from agent.traces.inflate import Progress, ReadProgress
from agent.traces.reader import read_trace, unread_bytes

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from agent.traces.cache import TraceCache
    from agent.workflows.sending import Needed

_MadeT = TypeVar("_MadeT")

WORTHWHILE_BYTES: Final = 8_000_000
"""Size, as stored, of the second largest run from which on processes are started."""


class Readers:
    """Reads some runs at once; use as a context manager, which ends what is still running.

    Processes start on entry, so that rules can be loaded while they read.
    """

    def __init__(
        self,
        runs: Sequence[Sequence[str]],
        *,
        salvage: bool = False,
        progress: Progress | None = None,
        cache: TraceCache | None = None,
        worthwhile: int = WORTHWHILE_BYTES,
        needed: Needed = None,
    ) -> None:
        """Name the files, folders and globs of each run.

        What `cache` holds is not read again. A process sends the events of those ranks alone of
        which `needed` says so: all of them are a tenth of the time that reading takes.
        """
        self._runs = list(runs)
        self._salvage = salvage
        self._progress = progress
        self._cache = cache
        self._worthwhile = worthwhile
        self._needed = needed
        self._waiting: deque[int] = deque()
        self._reading: dict[Connection, tuple[int, BaseProcess]] = {}
        self._done: list[BaseProcess] = []

    def __enter__(self) -> Self:
        """Start as many processes as there are processors, where that is worthwhile.

        One run alone, if large, is read in a process too: what reading takes does not stay here.
        """
        n_large = sum(self._unread(run) >= self._worthwhile for run in self._runs)
        n_processes = min(_processors(), len(self._runs))
        if n_large >= min(2, len(self._runs)) and (n_processes > 1 or len(self._runs) == 1):
            self._waiting.extend(range(len(self._runs)))
            for _ in range(n_processes):
                self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the processes whose result nobody waits for any more."""
        self._waiting.clear()
        for connection, (_, process) in self._reading.items():
            process.terminate()
            process.join()
            connection.close()
        self._reading.clear()
        for process in self._done:
            process.join()

    def traces(self) -> Iterator[Trace]:
        """Give the runs in their order; see `made_of_each`."""
        return self.made_of_each(lambda trace: trace)

    def made_of_each(self, make: Callable[[Trace], _MadeT]) -> Iterator[_MadeT]:
        """Give what is made of each run, in their order; it is made as soon as a run is there.

        Raises:
            TraceError, UsageError: as `read_trace`, of the first run that has one.
        """
        made: dict[int, _MadeT | Exception] = {}
        for number, run in enumerate(self._runs):
            while number not in made and self._reading:
                for arrived, outcome in self._receive():
                    made[arrived] = outcome if isinstance(outcome, Exception) else make(outcome)
            if number not in made:
                trace = read_trace(
                    run, salvage=self._salvage, progress=self._progress, cache=self._cache
                )
                made[number] = make(trace)
            result = made.pop(number)
            if isinstance(result, Exception):
                raise result
            yield result

    def _unread(self, run: Sequence[str]) -> int:
        """Give the size of what is to be read; 0 where it cannot be told: reading says why."""
        try:
            return unread_bytes(run, salvage=self._salvage, cache=self._cache)
        except (TraceError, OSError):
            return 0

    def _start(self) -> None:
        if not self._waiting:
            return
        from agent.workflows.sending import start_reading  # only here: processes take a while

        number = self._waiting.popleft()
        watched = self._progress is not None
        connection, process = start_reading(
            self._runs[number],
            salvage=self._salvage,
            watched=watched,
            cache=self._cache,
            needed=self._needed,
        )
        self._reading[connection] = (number, process)

    def _receive(self) -> Iterator[tuple[int, Trace | Exception]]:
        """Take one message of each process that has one; give the runs that are there now."""
        from agent.workflows.sending import receive, wait_for

        for connection in wait_for(self._reading):
            number, process = self._reading[connection]
            received = receive(connection, process, self._runs[number])
            if isinstance(received, ReadProgress):
                if self._progress:
                    self._progress(received)
                continue
            del self._reading[connection]
            connection.close()
            self._done.append(process)
            self._start()
            yield number, received


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
