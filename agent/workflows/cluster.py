"""Read the files of a run on a Dask cluster, from any fsspec path: the same bytes as read here.

A worker reads a file and sends back its profile: the signature table, some 15 kB, never events.
Rules run here, once for each distinct signature of the whole run. Needs the extra `dask`.
"""

from __future__ import annotations

import glob
import os
import posixpath
import shutil
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import agent
from agent.core.kernels import KernelTable, RankTrace, Trace
from agent.core.rules import LabelledTrace, RuleSet
from agent.errors import CorruptTrace, TraceError, UnknownTraceFormat, UsageError
from agent.traces import run
from agent.traces.inflate import Progress, ReadProgress
from agent.traces.profile import read_profile, write_profile
from agent.traces.reader import TraceFile, find_files, read_file

_INSTALL: Final = "pip install 'label-agent[dask]', here and on every worker"
_ERRORS: Final[dict[str, type[TraceError]]] = {
    kind.__name__: kind for kind in (TraceError, UnknownTraceFormat, CorruptTrace)
}
_PATIENCE: Final = "10s"
_LOCAL: Final = ("file://", "local://")
_NO_EVENTS: Final = KernelTable(
    (), array("I"), array("q"), array("q"), array("i"), array("q"), array("q")
)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a run as a worker finds it; the rest as in `TraceFile`."""

    url: str
    source: str
    shown: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a worker sends back: a profile of the file's ranks, or the error.

    `timed` tells for each rank whether its format has events; `error` is class, code, message,
    location and hint; `size` is in bytes as stored.
    """

    version: str
    size: int = 0
    profile: bytes = b""
    timed: tuple[bool, ...] = ()
    error: tuple[str, str, str, str, str] | None = None


def label_on_cluster(
    paths: Sequence[str],
    ruleset: RuleSet,
    *,
    client: Any = None,  # noqa: ANN401 - distributed.Client, which may not be installed
    salvage: bool = False,
    progress: Progress | None = None,
) -> LabelledTrace:
    """Read a run on a cluster and label it, see `read_on_cluster`."""
    from agent.ruleset.match import label_trace

    trace = read_on_cluster(paths, client=client, salvage=salvage, progress=progress)
    return label_trace(trace, ruleset)


def read_on_cluster(
    paths: Sequence[str],
    *,
    client: Any = None,  # noqa: ANN401 - see above
    salvage: bool = False,
    progress: Progress | None = None,
) -> Trace:
    """Read one run with one task a file; equal to `read_trace` but for the events.

    A file whose worker dies is read again by another; one that kills worker after worker counts as
    unreadable. Paths without a scheme are of the local disk, which the workers must share.

    Args:
        paths: files, folders or globs, each a path or a URL that fsspec knows (`s3://…`).
        client: a `distributed.Client`, the address of a scheduler, or None for a cluster of
            processes on this machine.
        salvage: as in `read_trace`.
        progress: called for each file that is done.

    Raises:
        TraceError, UsageError: as `read_trace`; also when Dask is missing or the cluster fails.
    """
    files = _find(paths)
    with _client(client) as connected:
        outcomes = _gather(connected, files, salvage=salvage, progress=progress)
    return _assemble(paths, files, outcomes)


def read_remote(file: RemoteFile, *, salvage: bool) -> Outcome:
    """Read one file; this runs on a worker, and an error is sent back as data."""
    version = agent.__version__
    try:
        with _local_copy(file) as path:
            size = path.stat().st_size
            ranks = read_file(TraceFile(path, file.source, file.shown, file.found), salvage=salvage)
    except TraceError as err:
        error = (type(err).__name__, err.code, err.message, err.location, err.hint)
        return Outcome(version, error=error)
    except OSError as err:
        message = f"cannot be read: {err.strerror or err}"
        hint = "every worker must be able to read the file"
        return Outcome(version, error=("TraceError", "TR013", message, file.source, hint))
    timed = tuple(rank.kernels is not None for rank in ranks)
    return Outcome(version, size, write_profile(Trace("", ranks)), timed)


@contextmanager
def _local_copy(file: RemoteFile) -> Iterator[Path]:
    """Give the file itself where it is local, else a copy that is gone afterwards."""
    if "://" not in file.url:
        yield Path(file.url)
        return
    fsspec = _import("fsspec")
    with tempfile.TemporaryDirectory(prefix="label-agent-") as scratch:
        path = Path(scratch) / posixpath.basename(file.url)
        with fsspec.open(file.url, "rb") as remote, path.open("wb") as local:
            shutil.copyfileobj(remote, local, 1 << 20)
        yield path


def _gather(
    client: Any,  # noqa: ANN401 - distributed.Client
    files: Sequence[RemoteFile],
    *,
    salvage: bool,
    progress: Progress | None,
) -> list[Outcome]:
    """Give the outcomes in the order of the files."""
    distributed = _import("distributed")
    futures = client.map(read_remote, files, salvage=salvage, pure=False)
    place = {future.key: at for at, future in enumerate(futures)}
    outcomes: dict[int, Outcome] = {}
    for future in distributed.as_completed(futures, loop=client.loop):
        at = place[future.key]
        outcomes[at] = _outcome(future, files[at])
        if progress:
            size = outcomes[at].size
            progress(ReadProgress(files[at].source, size, size))
    return [outcomes[at] for at in range(len(files))]


def _outcome(future: Any, file: RemoteFile) -> Outcome:  # noqa: ANN401 - distributed.Future
    """Give what a task brought; one that never ended becomes an error of its file."""
    failure = future.exception()
    if failure is None:
        outcome: Outcome = future.result()
        if outcome.version != agent.__version__:
            raise UsageError(
                "TR081",
                f"a worker has label-agent {outcome.version}, not {agent.__version__}",
                hint="install the same version here and on every worker",
            )
        return outcome
    name = type(failure).__name__
    if isinstance(failure, ImportError):
        raise UsageError("TR081", f"a worker cannot read traces: {failure}", hint=_INSTALL)
    message = f"the cluster gave it up: {name}"
    hint = "give the workers more memory, or read the file without --engine dask"
    return Outcome(agent.__version__, error=("TraceError", "TR081", message, file.source, hint))


def _assemble(
    named: Sequence[str], files: Sequence[RemoteFile], outcomes: Sequence[Outcome]
) -> Trace:
    """Put the run together by the rules of `read_trace`."""
    brought = dict(zip(files, outcomes, strict=True))
    trace = run.read_together(_run_name(named), files, lambda file: _ranks_of(brought[file], file))
    bare = tuple(replace(rank, kernels=None) for rank in trace.ranks)
    return replace(trace, ranks=bare)


def _ranks_of(outcome: Outcome, file: RemoteFile) -> tuple[RankTrace, ...]:
    """Give the ranks; an empty table of events stands for the one that was left behind.

    Raises:
        TraceError: the worker's.
    """
    if outcome.error is not None:
        kind, code, message, location, hint = outcome.error
        raise _ERRORS.get(kind, TraceError)(code, message, location=location, hint=hint)
    ranks = read_profile(outcome.profile, file.source).ranks
    return tuple(
        replace(rank, kernels=_NO_EVENTS) if timed else rank
        for rank, timed in zip(ranks, outcome.timed, strict=True)
    )


def _run_name(named: Sequence[str]) -> str:
    """Name a run as the user did, without the folders of an absolute path."""
    paths = [_plain(os.fspath(path)) for path in named]
    return " ".join(Path(path).name if Path(path).is_absolute() else path for path in paths)


def _plain(url: str) -> str:
    """Take off the scheme of a local path."""
    for scheme in _LOCAL:
        if url.startswith(scheme):
            return url.removeprefix(scheme)
    return url


def _find(paths: Sequence[str]) -> list[RemoteFile]:
    """Give the files that paths and URLs stand for, each once."""
    urls = [_plain(os.fspath(path)) for path in paths]
    local = [url for url in urls if "://" not in url]
    files = [
        RemoteFile(str(file.path.absolute()), file.source, file.shown, file.found)
        for file in (find_files(local) if local or not urls else ())
    ]
    remote: dict[str, bool] = {}
    for url in urls:
        if "://" in url:
            for member, found in _expand(url):
                remote.setdefault(member, found)
    parent = posixpath.commonpath([posixpath.dirname(url) for url in remote]) if remote else ""
    for url, found in remote.items():
        source = posixpath.relpath(url, parent)
        files.append(RemoteFile(url, source, url, found))
    return files


def _expand(url: str) -> list[tuple[str, bool]]:
    """Give the files behind a URL, and whether they were found in a folder."""
    fsspec = _import("fsspec")
    try:
        system, path = fsspec.core.url_to_fs(url)
        if glob.has_magic(path):
            members, found = system.glob(path), True
        elif system.isdir(path):
            members, found = system.find(path, maxdepth=1) or system.find(path), True
        else:
            members, found = [path] if system.exists(path) else [], False
    except ImportError as err:
        raise UsageError("TR080", f"'{url}' cannot be opened: {err}", hint=_INSTALL) from err
    except (OSError, ValueError) as err:
        raise TraceError("TR013", f"cannot be read: {err}", location=url) from err
    visible = [name for name in members if not posixpath.basename(name).startswith(".")]
    if not visible:
        raise TraceError("TR001", "no such file or folder", location=url, hint="check the URL")
    return [(system.unstrip_protocol(name), found) for name in sorted(visible)]


@contextmanager
def _client(client: Any) -> Iterator[Any]:  # noqa: ANN401 - distributed.Client
    """Give a connected client; close what was opened here, and nothing else."""
    distributed = _import("distributed")
    if client is not None and not isinstance(client, str):
        yield client
        return
    try:
        if client:
            opened = distributed.Client(client, timeout=_PATIENCE, set_as_default=False)
        else:
            cluster = distributed.LocalCluster(
                n_workers=os.cpu_count() or 1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            )
            opened = distributed.Client(cluster, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as err:
        raise UsageError(
            "TR081",
            f"no Dask scheduler at '{client}': {err}" if client else f"no Dask cluster: {err}",
            hint="check the address, or leave it out for a cluster on this machine",
        ) from err
    try:
        yield opened
    finally:
        opened.close()
        if not client:
            cluster.close()


def _import(name: str) -> Any:  # noqa: ANN401 - a module without types
    """Import a library of the extra `dask`."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as err:
        raise UsageError(
            "TR080", f"the Dask engine needs {name}, which is not installed", hint=_INSTALL
        ) from err
