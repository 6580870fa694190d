"""A run read in a process of its own, which sends back its `Trace` or its error.

In between it says how far it has read.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Final

from agent.core.kernels import KernelTable, RankTrace, Signature, Trace
from agent.errors import TraceError
from agent.traces.inflate import ReadProgress
from agent.traces.reader import read_trace

if TYPE_CHECKING:
    from agent.traces.cache import TraceCache

Needed = Callable[[RankTrace], bool] | None
"""Tells of which ranks the events are sent back, too; None: of all."""

_REPORT_BYTES: Final = 1_000_000
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _LARGE_BYTES = 1 << 22, 1 << 20

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


def start_reading(
    run: Sequence[str], *, salvage: bool, watched: bool, cache: TraceCache | None, needed: Needed
) -> tuple[Connection, BaseProcess]:
    """Start a process that reads a run; `watched`: it also sends its progress."""
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(  # type: ignore[attr-defined] # of every context but the base
        target=read_and_send,
        args=(theirs, run, salvage, watched),
        kwargs={"cache": cache, "needed": needed},
        daemon=True,
    )
    process.start()
    theirs.close()
    return ours, process


def read_and_send(
    connection: Connection,
    run: Sequence[str],
    salvage: bool,  # noqa: FBT001
    watched: bool,  # noqa: FBT001
    *,
    cache: TraceCache | None = None,
    needed: Needed = None,
) -> None:
    """Read one run and send it back; this is the whole life of a process.

    An interrupt is for the process that waits: it ends this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _keep_columns_out_of_the_heap()
    with suppress(BrokenPipeError):  # nobody waits any more
        try:
            report = _Reports(connection, run).report if watched else None
            read = partial(read_trace, run, salvage=salvage, progress=report, cache=cache)
            bare, tables = _split(read(), needed)
        except BrokenPipeError:
            raise
        except Exception as err:  # noqa: BLE001 - raised again where the result is waited for
            connection.send(err)
        else:
            _send(connection, bare, tables)


def _end_with_parent() -> None:
    """Wait for the process that waits: where it is killed, nobody else ends this one."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _keep_columns_out_of_the_heap() -> None:
    """Have large columns mapped one by one, so that their memory goes back when they go.

    glibc stops mapping what is smaller than a block that was freed, unless it is told a threshold:
    see mallopt(3).
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
            library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def _split(trace: Trace, needed: Needed) -> tuple[_Bare, list[KernelTable]]:
    """Take the events that are sent from a trace; the others need not outlive this."""
    tables = [rank.kernels if not needed or needed(rank) else None for rank in trace.ranks]
    ranks = tuple(replace(rank, kernels=None) for rank in trace.ranks)
    forms = tuple(
        None
        if table is None
        else (table.signatures, "".join(each.typecode for each in _columns(table)), len(table))
        for table in tables
    )
    bare = _Bare(replace(trace, ranks=ranks), forms)
    return bare, [table for table in tables if table is not None]


def _send(connection: Connection, bare: _Bare, tables: Iterable[KernelTable]) -> None:
    connection.send(bare)
    for table in tables:
        for column in _columns(table):
            connection.send_bytes(memoryview(column).cast("B") if column else b"")


def wait_for(connections: Iterable[Connection]) -> list[Connection]:
    """Wait until there is something to take from some connections, or the other side ended."""
    return [one for one in wait(list(connections)) if isinstance(one, Connection)]


def receive(
    connection: Connection, process: BaseProcess, run: Sequence[str]
) -> ReadProgress | Trace | Exception:
    """Take one message; an error where the process ended without one."""
    try:
        return _receive(connection)
    except (EOFError, OSError):  # at a message's start, or inside it
        process.join()
        return _ended(run, process.exitcode)


def _receive(connection: Connection) -> ReadProgress | Trace | Exception:
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


def _context() -> BaseContext:
    """Choose how processes start: a fork is at once there, but safe on Linux alone."""
    return multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
