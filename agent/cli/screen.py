"""The two streams: results on stdout, talk on stderr. Everything foreign is escaped here."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from agent.core.proposals import Finding
from agent.core.text import shown, shown_block
from agent.errors import LabelAgentError, RuleFileError, UsageError

REPORT_SUFFIXES = frozenset({".html", ".md", ".svg"})
"""No trace found in a folder has one: an earlier report there may be written again."""
MIN_WIDTH, PIPE_WIDTH = 40, 80
EXPLAINED = "docs/findings.md, beside the README, says what each code asks for"


def print_anything() -> None:
    """Let stdout spell out what its encoding does not have, where Python would fail."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def write_result(text: str, output: Path | None = None) -> None:
    """Write a result to stdout, or whole to a file: never half of it."""
    whole = text if text.endswith("\n") else text + "\n"
    if output is None or str(output) == "-":
        sys.stdout.write(whole)
        sys.stdout.flush()
        return
    write_file(output, whole.encode("utf-8"))
    talk(f"wrote {output}")


def refuse_inputs(output: Path | None, traces: Iterable[str], *files: Path) -> None:
    """Refuse to write a result over a trace it is made of, or over another file it needs.

    Raises:
        UsageError: CL006 the output is one of them.
    """
    if output is None or not output.is_file():
        return
    from agent.traces.reader import find_files

    local = [name for name in traces if Path(name).exists()]
    read = [
        file.path
        for file in (find_files(local) if local else ())
        if not (file.found and file.path.suffix in REPORT_SUFFIXES)
    ]
    if any(path.exists() and path.samefile(output) for path in (*read, *files)):
        raise UsageError(
            "CL006",
            "the result would replace a file it is made of",
            location=str(output),
            hint="give -o a file that is not read",
        )


def write_file(path: Path, content: bytes) -> None:
    """Replace a file by its new content in one step; a pipe, device or link is written through."""
    from agent.review.replace import replace_file

    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_bytes(content)
        else:
            replace_file(path, content)
    except OSError as err:
        raise UsageError(
            "CL003",
            f"cannot write the result: {err.strerror}",
            location=str(path),
            hint="free some space"
            if err.errno == errno.ENOSPC
            else "give -o a file in a folder that exists and can be written",
        ) from err


def talk(text: str) -> None:
    """Say something to the person: one line on stderr."""
    _say(shown(text))


def _say(text: str) -> None:
    """Write to stderr; where nothing can be written, the exit code is all there is to say."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        sys.stderr = nowhere()


def nowhere() -> TextIO:
    """Give a stream that takes everything and keeps nothing."""
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123


def talk_findings(findings: Iterable[Finding]) -> None:
    """Say findings beside a result that has no place for them, such as CSV."""
    for finding in findings:
        talk(f"! {finding.code} {finding.message}")


def show_error(err: LabelAgentError) -> None:
    """Show an error in one line and its hint in the next; a rule file shows all of its findings."""
    if isinstance(err, RuleFileError) and err.findings:
        for finding in err.findings:
            where = f"{finding.location}: " if finding.location else ""
            talk(f"{where}{finding.code} {finding.message}")
            if finding.hint:
                talk(f"hint: {finding.hint}")
        if not any(finding.hint for finding in err.findings):
            talk(f"hint: {err.hint or EXPLAINED}")
        return
    talk(str(err))
    _talk_lines(f"hint: {err.hint or EXPLAINED}")


def _talk_lines(text: str) -> None:
    """Say something that may have several lines, such as an expression with a caret below."""
    _say(shown_block(text))


def show_traceback() -> None:
    """Show the traceback of the error being handled."""
    import traceback

    _say(traceback.format_exc())


def result_width() -> int:
    """Give the columns for text on stdout: the terminal's, or 80 in a pipe; COLUMNS wins."""
    fallback = (PIPE_WIDTH, 24)
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        import shutil

        return max(MIN_WIDTH, shutil.get_terminal_size(fallback).columns)
    return PIPE_WIDTH
