"""Run git on somebody else's repository without running anything of theirs.

Only plumbing that reads objects is used. Hooks, file-system monitors, transports, pagers, filters
and prompts are switched off on the command line and in the environment, so neither the
repository's nor the user's configuration can start a program; a partial clone never fetches.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from agent.errors import SourceError

_OFF = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "core.askPass=",
    "core.sshCommand=false", "core.gitProxy=", "protocol.allow=never", "credential.helper=",
    "core.quotePath=false", "core.attributesFile=/dev/null", "gc.auto=0", "maintenance.auto=false",
)  # fmt: skip
_BATCH = 256
"""Requests written before answers are read: 256 names fit any pipe buffer."""


def git_environment() -> dict[str, str]:
    """Give the environment git runs in: no prompt, no lazy fetch, no replaced objects."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"):
        if name in os.environ:
            kept[name] = os.environ[name]
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_PROTOCOL_FROM_USER": "0",
        "LC_ALL": "C",
    }


def git_command(folder: Path, *arguments: str) -> list[str]:
    """Give the argument list of one git call in `folder`."""
    options = [part for option in _OFF for part in ("-c", option)]
    return ["git", "-C", str(folder), "--no-pager", *options, *arguments]


def run_git(folder: Path, *arguments: str) -> bytes:
    """Run one reading git command and give its output.

    Raises:
        SourceError: git is missing (`CL005`) or refused (`SC003`); the message is git's first line.
    """
    try:
        done = subprocess.run(
            git_command(folder, *arguments),
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=git_environment(),
        )
    except OSError as err:
        raise git_missing(err) from err
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise SourceError("SC003", f"git {arguments[0]}: {said[0]}")
    return done.stdout


def git_missing(err: OSError) -> SourceError:
    """Give the error for a git that cannot be started."""
    return SourceError("CL005", f"git cannot be run: {err.strerror}", hint="install git")


class ObjectReader:
    """One long-lived `git cat-file --batch`; objects are asked for by name, never by path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._local: frozenset[str] | None = None

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """Yield (name, type, bytes) for each object; type "" when the object is missing."""
        wanted = list(names)
        done = 0
        while done < len(wanted):
            batch = wanted[done : done + _BATCH]
            absent = [name for name in batch if self._local is not None and name not in self._local]
            yield from ((name, "", b"") for name in absent)
            asked = [name for name in batch if name not in absent]
            try:
                yield from zip(asked, *self._answers(asked), strict=True)
            except OSError as err:
                self.close()
                if self._local is not None:
                    raise SourceError("SC003", "git cat-file ended early") from err
                self._local = self._local_objects()
                continue
            done += len(batch)

    def _answers(self, names: list[str]) -> tuple[list[str], list[bytes]]:
        source, sink = self._pipes()
        sink.write("".join(f"{name}\n" for name in names).encode("ascii", "replace"))
        sink.flush()
        answers = [_answer(source) for _ in names]
        return [kind for kind, _ in answers], [content for _, content in answers]

    def _local_objects(self) -> frozenset[str]:
        """List what a partial clone has: git gives up when it may not fetch what it lacks."""
        options = ("--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
        return frozenset(run_git(self._folder, "cat-file", *options).decode("ascii").split())

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.terminate()
        process.wait()

    def __del__(self) -> None:
        self.close()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None or self._process.poll() is not None:
            try:
                self._process = subprocess.Popen(
                    git_command(self._folder, "cat-file", "--batch"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=git_environment(),
                )
            except OSError as err:
                raise git_missing(err) from err
        source, sink = self._process.stdout, self._process.stdin
        if source is None or sink is None:
            raise SourceError("SC003", "git cat-file has no pipes")
        return source, sink


def _answer(source: IO[bytes]) -> tuple[str, bytes]:
    header = source.readline().split()
    if not header:
        raise BrokenPipeError
    if len(header) != 3:
        return "", b""
    size = int(header[2])
    content = source.read(size + 1)
    if len(content) != size + 1:
        raise BrokenPipeError
    return header[1].decode("ascii"), content[:-1]
