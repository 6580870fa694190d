"""Runs read side by side, one process each; the same traces as one after the other.

A process sends back its `Trace` or its error, and how far it has read in between. Small runs are
read here: a process costs more than it saves.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Final, Self

from agent.core.kernels import KernelTable, Signature, Trace
from agent.errors import TraceError
from agent.traces.cache import TraceCache
from agent.traces.inflate import Progress, ReadProgress
from agent.traces.reader import read_trace, unread_bytes

WORTHWHILE_BYTES: Final = 8_000_000
"""Size, as stored, of the second largest run from which on processes are started."""

_REPORT_BYTES: Final = 1_000_000

_COLUMNS: Final = tuple(
    column.name for column in fields(KernelTable) if column.name != "signatures"
)


@dataclass(frozen=True, slots=True)
class _Bare:
    """A trace whose events follow, column by column: no copy of all of them is ever needed.

    `tables` has, for each rank, the signatures of its events, the type of each column and how many
    events there are, or None.
    """

    trace: Trace
    tables: tuple[tuple[tuple[Signature, ...], str, int] | None, ...]


_Message = ReadProgress | _Bare | Exception


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
    ) -> None:
        """Name the files, folders and globs of each run; what `cache` holds is not read again."""
        self._runs = list(runs)
        self._salvage = salvage
        self._progress = progress
        self._cache = cache
        self._worthwhile = worthwhile
        self._waiting: deque[int] = deque()
        self._reading: dict[Connection, tuple[int, BaseProcess]] = {}
        self._outcomes: dict[int, Trace | Exception] = {}

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

    def traces(self) -> Iterator[Trace]:
        """Give the runs in their order.

        Raises:
            TraceError, UsageError: as `read_trace`, of the first run that has one.
        """
        for number, run in enumerate(self._runs):
            while number not in self._outcomes and self._reading:
                self._receive()
            if number not in self._outcomes:
                yield read_trace(
                    run, salvage=self._salvage, progress=self._progress, cache=self._cache
                )
                continue
            outcome = self._outcomes.pop(number)
            if isinstance(outcome, Exception):
                raise outcome
            yield outcome

    def _unread(self, run: Sequence[str]) -> int:
        """Give the size of what is to be read; 0 where it cannot be told: reading says why."""
        try:
            return unread_bytes(run, salvage=self._salvage, cache=self._cache)
        except (TraceError, OSError):
            return 0

    def _start(self) -> None:
        if not self._waiting:
            return
        number = self._waiting.popleft()
        context = _context()
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(  # type: ignore[attr-defined] # of every context but the base
            target=read_and_send,
            args=(theirs, self._runs[number], self._salvage, self._progress is not None),
            kwargs={"cache": self._cache},
            daemon=True,
        )
        process.start()
        theirs.close()
        self._reading[ours] = (number, process)

    def _receive(self) -> None:
        """Take one message of each process that has one."""
        for connection in wait(list(self._reading)):
            assert isinstance(connection, Connection)  # noqa: S101 - nothing else is waited for
            number, process = self._reading[connection]
            try:
                received = _receive(connection)
            except (EOFError, OSError):  # at a message's start, or inside it
                process.join()
                received = _ended(self._runs[number], process.exitcode)
            if isinstance(received, ReadProgress):
                if self._progress:
                    self._progress(received)
                continue
            self._outcomes[number] = received
            del self._reading[connection]
            connection.close()
            process.join()
            self._start()


def read_and_send(
    connection: Connection,
    run: Sequence[str],
    salvage: bool,  # noqa: FBT001
    watched: bool,  # noqa: FBT001
    *,
    cache: TraceCache | None = None,
) -> None:
    """Read one run and send it back; this is the whole life of a process.

    An interrupt is for the process that waits: it ends this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError):  # nobody waits any more
        try:
            report = _Reports(connection, run).report if watched else None
            trace = read_trace(run, salvage=salvage, progress=report, cache=cache)
        except BrokenPipeError:
            raise
        except Exception as err:  # noqa: BLE001 - raised again where the result is waited for
            connection.send(err)
        else:
            _send(connection, trace)


def _send(connection: Connection, trace: Trace) -> None:
    tables = [rank.kernels for rank in trace.ranks]
    ranks = tuple(replace(rank, kernels=None) for rank in trace.ranks)
    forms = tuple(
        None
        if table is None
        else (table.signatures, "".join(each.typecode for each in _columns(table)), len(table))
        for table in tables
    )
    connection.send(_Bare(replace(trace, ranks=ranks), forms))
    for table in tables:
        for column in _columns(table) if table is not None else ():
            connection.send_bytes(memoryview(column).cast("B") if column else b"")


def _receive(connection: Connection) -> ReadProgress | Trace | Exception:
    """Take one message.

    Raises:
        EOFError, OSError: the other process ended.
    """
    message: _Message = connection.recv()
    if not isinstance(message, _Bare):
        return message
    ranks = []
    for rank, form in zip(message.trace.ranks, message.tables, strict=True):
        if form is not None:
            signatures, types, n_events = form
            columns = [_receive_column(connection, code, n_events) for code in types]
            rank = replace(rank, kernels=KernelTable(signatures, *columns))  # noqa: PLW2901
        ranks.append(rank)
    return replace(message.trace, ranks=tuple(ranks))


def _receive_column(connection: Connection, typecode: str, n_events: int) -> array[int]:
    column: array[int] = array(typecode, [0]) * n_events
    if n_events:
        connection.recv_bytes_into(column)
    else:
        connection.recv_bytes()
    return column


def _columns(table: KernelTable) -> list[array[int]]:
    return [getattr(table, name) for name in _COLUMNS]


class _Reports:
    """Sends progress now and then, under a name that tells the runs apart."""

    def __init__(self, connection: Connection, run: Sequence[str]) -> None:
        self._connection = connection
        self._run = run
        self._sent: dict[str, int] = {}

    def report(self, read: ReadProgress) -> None:
        sent = self._sent.get(read.source, 0)
        if read.done - sent < _REPORT_BYTES and read.done < read.total:
            return
        self._sent[read.source] = read.done
        name = _name(self._run)
        alone = os.path.basename(name) == read.source  # noqa: PTH119 - it may be a glob
        source = name if alone else f"{name}: {read.source}"
        self._connection.send(replace(read, source=source))


def _name(run: Sequence[str]) -> str:
    return " ".join(run)


def _ended(run: Sequence[str], code: int | None) -> TraceError:
    how = f"by signal {-code}" if code and code < 0 else f"with code {code}"
    return TraceError(
        "TR017",
        f"the process that read it was ended {how}",
        location=_name(run),
        hint="see whether the machine ran out of memory, and try again",
    )


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _context() -> BaseContext:
    """Choose how processes start: a fork is at once there, but safe on Linux alone."""
    return multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
