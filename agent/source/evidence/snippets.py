"""Compare quoted text with the file: tokens, with whitespace folded and comments told apart."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

from agent.core.proposals import Evidence, Finding
from agent.source.paths import is_python
from agent.source.snapshot import SourceFile

_PYTHON = re.compile(
    r"(?P<comment>\#[^\n]*)|(?P<string>[rRbBuUfF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''"
    r"|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'))|(?P<word>\w+)|(?P<mark>[^\s\w])",
    re.DOTALL,
)
_NATIVE = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')"
    r"|(?P<word>\w+)|(?P<mark>[^\s\w])",
    re.DOTALL,
)
_MIN_SNIPPET = 8
_MIN_TOKENS = 4
_MAX_STATEMENT = 60


def tokens(text: str, *, python: bool, comments: bool) -> tuple[str, ...]:
    """Split source text into tokens; whitespace never counts, comments only when asked for."""
    pattern = _PYTHON if python else _NATIVE
    return tuple(
        " ".join(match.group().split())
        for match in pattern.finditer(text)
        if comments or match.lastgroup != "comment"
    )


def snippet_digest(text: str, *, python: bool) -> str:
    """Give the sha256 of the token-normalised text: comments dropped, whitespace folded."""
    return digest_of(tokens(text, python=python, comments=False))


def digest_of(held: Iterable[str]) -> str:
    """Give the sha256 of tokens."""
    return hashlib.sha256(" ".join(held).encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=16_384)
def line_tokens(text: str, *, python: bool) -> tuple[str, ...]:
    """Split one line into tokens, comments dropped."""
    return tokens(text, python=python, comments=False)


def snippet_problem(file: SourceFile, evidence: Evidence, last: int = 0) -> Finding | None:
    """Say how a quoted snippet differs from the cited lines; None when it is what stands there.

    Whitespace may differ, and comments of the file may be left out. A comment that the file does
    not have is text nobody wrote there: `E_SNIPPET_RAW`. Whole cited lines may be short, a part of
    one may not. `last` is where the cited statement ends.
    """
    if not evidence.snippet:
        return None
    python = is_python(file.path)
    first, end = evidence.lines
    text = "\n".join(file.lines(first, max(end, min(last, first + _MAX_STATEMENT))))
    where = f"{file.path}:{evidence.lines[0]}"
    quoted = tokens(evidence.snippet, python=python, comments=False)
    short = len("".join(quoted)) < _MIN_SNIPPET or len(quoted) < _MIN_TOKENS
    cited = "\n".join(file.lines(first, end))
    if short and not _is_whole_lines(cited, quoted, python=python):
        message = f"the snippet {evidence.snippet[:40]!r} is too short to be evidence"
        return Finding("E_SNIPPET", message, "error", where)
    if not _holds(tokens(text, python=python, comments=False), quoted):
        message = "the snippet is not what the cited lines hold"
        hint = _hint(file, quoted, python=python)
        return Finding("E_SNIPPET", message, "error", where, hint)
    said = _comments(evidence.snippet, python=python)
    stands = _comments(text, python=python)
    if not set(said) <= set(stands):
        message = (
            "the snippet has comments that the file does not have; quote the lines as they are"
        )
        return Finding("E_SNIPPET_RAW", message, "error", where)
    return None


def find_snippet(file: SourceFile, quoted: tuple[str, ...], *, python: bool) -> tuple[int, ...]:
    """Give the lines where a run of tokens begins, the first few."""
    if not quoted:
        return ()
    found: list[int] = []
    all_lines = file.text.decode("utf-8", "replace").split("\n")
    for number, line in enumerate(all_lines, 1):
        if quoted[0] not in line:
            continue
        window = "\n".join(all_lines[number - 1 : number - 1 + 40])
        held = tokens(window, python=python, comments=False)
        if held[: len(quoted)] == quoted or _starts(held, quoted, line):
            found.append(number)
        if len(found) >= 8:
            break
    return tuple(found)


def _starts(held: tuple[str, ...], quoted: tuple[str, ...], line: str) -> bool:
    return any(
        held[offset : offset + len(quoted)] == quoted for offset in range(min(len(line), 12))
    )


def _holds(held: tuple[str, ...], quoted: tuple[str, ...]) -> bool:
    width = len(quoted)
    return any(
        held[start : start + width] == quoted for start in range(max(len(held) - width + 1, 0))
    )


def _is_whole_lines(text: str, quoted: tuple[str, ...], *, python: bool) -> bool:
    """Tell whether a quote is one or more lines of a text, each from its beginning to its end."""
    lines = [line_tokens(line, python=python) for line in text.split("\n")]
    for start, line in enumerate(lines):
        held = line
        for more in lines[start + 1 :]:
            if not line or len(held) >= len(quoted):
                break
            held += more
        if quoted and held == quoted:
            return True
    return False


def _comments(text: str, *, python: bool) -> tuple[str, ...]:
    pattern = _PYTHON if python else _NATIVE
    return tuple(
        " ".join(match.group().split())
        for match in pattern.finditer(text)
        if match.lastgroup == "comment"
    )


def _hint(file: SourceFile, quoted: tuple[str, ...], *, python: bool) -> str:
    lines = find_snippet(file, quoted, python=python)
    if not lines:
        return ""
    return f"it stands at line {', '.join(map(str, lines))} of {file.path}"
