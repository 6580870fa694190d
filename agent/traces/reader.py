"""Files, folders and globs -> one run: finds the files, sniffs, reads, and checks the ranks."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.kernels import RankTrace, Trace
from agent.core.proposals import Finding
from agent.errors import CorruptTrace, TraceError, UnknownTraceFormat
from agent.traces import run
from agent.traces.formats import HEAD_BYTES, find_format, not_json
from agent.traces.inflate import Progress, cannot_be_read, read_head

if TYPE_CHECKING:
    from agent.traces.cache import TraceCache

Named = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A file of a run.

    Attributes:
        path: where it lies.
        source: how results name it: relative to what all files of the run share.
        shown: how errors name it: as the user would type it.
        found: it was found in a folder, so it need not be a trace.
    """

    path: Path
    source: str
    shown: str
    found: bool = False


def read_trace(
    paths: Sequence[Named] | Named,
    *,
    salvage: bool = False,
    context: bool = False,
    progress: Progress | None = None,
    cache: TraceCache | None = None,
) -> Trace:
    """Read one run from files, folders or globs.

    Args:
        paths: what the user named; all files together are the ranks of one run.
        salvage: read the whole events of damaged files and mark the result incomplete.
        context: keep shapes, operator stacks and Python frames (`RankTrace.context`).
        progress: called as bytes of a file are read.
        cache: where ranks of large files are kept; what was kept is not read again.

    Raises:
        TraceError: nothing to read, or nothing that can be read.
        UsageError: a merged file stands beside its parts.
    """
    named = [
        os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)
    ]
    options = _options(salvage=salvage, context=context)

    def read(file: TraceFile) -> tuple[RankTrace, ...]:
        read_it = partial(read_file, file, salvage=salvage, context=context, progress=progress)
        return _recall_or(read_it, file, options, cache) if cache else read_it()

    files = find_files(named)
    return run.read_together(_run_name(named), files, read, _folders_beside(named))


def _folders_beside(named: Sequence[str]) -> list[Finding]:
    """Tell of folders that are not looked into, because files lie beside them."""
    return [
        Finding("TR044", "a folder beside files, passed over", severity="note", location=inner.name)
        for folder in map(Path, named)
        if folder.is_dir() and _visible(folder.iterdir())
        for inner in sorted(folder.iterdir())
        if inner.is_dir() and not inner.name.startswith(".") and _holds_files(inner)
    ]


def _holds_files(folder: Path) -> bool:
    try:
        return any(path.is_file() and not path.name.startswith(".") for path in _below(folder))
    except OSError:
        return True


def unread_bytes(named: Sequence[str], *, salvage: bool, cache: TraceCache | None) -> int:
    """Give the stored size of what `read_trace` would have to read, without what was kept of it.

    Raises:
        TraceError, OSError: a file cannot be found or seen.
    """
    options = _options(salvage=salvage, context=False)
    return sum(
        file.path.stat().st_size
        for file in find_files(named)
        if not (cache and cache.holds(cache.key_of(file.path, file.source, options, digest=False)))
    )


def _options(*, salvage: bool, context: bool) -> str:
    """Name how a file is read: kept ranks are those of one way."""
    return f"salvage={salvage} context={context}"


def _recall_or(
    read: Callable[[], tuple[RankTrace, ...]], file: TraceFile, options: str, cache: TraceCache
) -> tuple[RankTrace, ...]:
    """Give the kept ranks of a file, or read and keep them if it did not change meanwhile."""
    key = cache.key_of(file.path, file.source, options)
    ranks = cache.recall(key)
    if ranks is None:
        ranks = read()
        if cache.key_of(file.path, file.source, options) == key:
            cache.keep(key, ranks)
    return ranks


def _run_name(named: Sequence[str]) -> str:
    """Name a run as the user did, without the folders of an absolute path."""
    return " ".join(
        Path(os.path.normpath(path)).name if Path(path).is_absolute() else path for path in named
    )


def read_file(
    file: TraceFile,
    *,
    salvage: bool = False,
    context: bool = False,
    progress: Progress | None = None,
) -> tuple[RankTrace, ...]:
    """Read one file of any format; its content decides, not its suffix.

    Raises:
        TraceError: it cannot be read, or changed meanwhile; the location is `file.source`.
    """
    before = _state(file)
    ranks = _read_unwatched(file, salvage=salvage, context=context, progress=progress)
    if _state(file) != before:
        raise TraceError(
            "TR018",
            "the file changed while it was read",
            location=file.source,
            hint="try again once the profiler or the copy is done",
        )
    return tuple(map(_with_step_times, ranks))


def _with_step_times(rank: RankTrace) -> RankTrace:
    if rank.kernels is None or not rank.steps:
        return rank
    from agent.traces.kernel_table import with_step_times  # only here: numpy takes a while

    return with_step_times(rank)


def _read_unwatched(
    file: TraceFile, *, salvage: bool, context: bool, progress: Progress | None
) -> tuple[RankTrace, ...]:
    size, _ = _state(file)
    if not size:
        raise UnknownTraceFormat(
            "TR002", "empty file", location=file.source, hint="capture or copy it again"
        )
    head = read_head(file.path, file.source, HEAD_BYTES)
    if not head:
        raise CorruptTrace(
            "TR010",
            "the compressed file holds nothing that can be read",
            location=file.source,
            hint="copy or capture it again",
        )
    known = find_format(head, file.path)
    if known and known.reader:
        return known.load_reader()(file.path, file.source, salvage=salvage)
    if known:
        raise UnknownTraceFormat(
            "TR004",
            f"a {known.name} file, which is not read",
            location=file.source,
            hint=f"export it first: {known.export}",
        )
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:2]:
        raise UnknownTraceFormat(
            "TR003",
            "not JSON: UTF-16 text, or binary",
            location=file.source,
            hint="convert text with: iconv -f UTF-16 -t UTF-8",
        )
    if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        raise not_json(file.source)
    from agent.traces.kineto import read_kineto  # only here: it takes a while, numpy above all

    return read_kineto(file.path, file.source, salvage=salvage, context=context, progress=progress)


def _state(file: TraceFile) -> tuple[int, int]:
    """Give the size of a file, and when it was written."""
    try:
        seen = file.path.stat()
    except OSError as err:
        raise cannot_be_read(err, file.source) from err
    return seen.st_size, seen.st_mtime_ns


def find_files(named: Sequence[str]) -> list[TraceFile]:
    """Give the files that some files, folders and globs stand for, each once, in order.

    Raises:
        TraceError: a name stands for nothing.
    """
    if not named:
        raise TraceError("TR001", "no trace is named", hint="name files, a folder or a glob")
    entries: dict[str, tuple[Path, str, bool]] = {}
    for name in named:
        for path, found in _expand(name):
            entries.setdefault(os.path.realpath(path), (path, os.fspath(path), found))
    parent = _shared_folder([path for path, _, _ in entries.values()])
    return [
        TraceFile(path, _relative(path, parent), shown, found)
        for path, shown, found in entries.values()
    ]


def _shared_folder(paths: Sequence[Path]) -> str:
    folders = {str(path.parent.absolute()) for path in paths}
    return os.path.commonpath(folders)


def _relative(path: Path, parent: str) -> str:
    return Path(os.path.relpath(path.absolute(), parent)).as_posix()


def _expand(name: str) -> Iterator[tuple[Path, bool]]:
    if not name:
        raise TraceError(
            "TR001", "the name of a trace is empty", hint="a variable of your script may be unset"
        )
    path = Path(name)
    if path.is_dir():
        yield from _in_folder(path)
    elif path.is_file():
        yield path, False
    elif path.exists():
        raise _no_file(name)
    elif glob.has_magic(name):
        yield from _in_glob(name)
    else:
        raise TraceError(
            "TR001", "no such file or folder", location=name, hint="check the name of the trace"
        )


def _in_folder(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Give the files of a folder, or of the folders in it where it holds none itself."""
    try:
        files = _visible(folder.iterdir()) or _visible(_below(folder))
    except OSError as err:
        raise cannot_be_read(err, str(folder)) from err
    if not files:
        raise TraceError(
            "TR014",
            "no traces in this folder",
            location=str(folder),
            hint="name the folder that holds the files of all ranks",
        )
    yield from ((path, True) for path in files)


def _below(folder: Path) -> Iterator[Path]:
    """Give all files below a folder; a link to a folder is followed, a folder is entered once."""
    entered: set[str] = set()
    for parent, folders, names in os.walk(folder, followlinks=True, onerror=_refuse):
        real = os.path.realpath(parent)
        folders[:] = sorted(name for name in folders if real not in entered and name[0] != ".")
        yield from (Path(parent, name) for name in names if real not in entered)
        entered.add(real)


def _refuse(err: OSError) -> None:
    raise err


def _visible(paths: Iterator[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file() and not path.name.startswith("."))


def _in_glob(pattern: str) -> Iterator[tuple[Path, bool]]:
    matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - absolute patterns too
    if not matches:
        raise TraceError(
            "TR001", "the pattern matches nothing", location=pattern, hint="check the pattern"
        )
    for match in matches:
        path = Path(match)
        if path.is_dir():
            yield from _in_folder(path)
        elif path.exists() and not path.is_file():
            raise _no_file(match)
        else:
            yield path, True


def _no_file(name: str) -> TraceError:
    return TraceError("TR013", "not a regular file", location=name, hint="name a trace file")
