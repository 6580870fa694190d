"""The terminal of a review: lines and questions on stderr, answers from stdin, an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from agent.cli.screen import talk
from agent.review.display import Style

_ANSI: dict[Style, str] = {
    "heading": "1",
    "dim": "2",
    "added": "32",
    "removed": "31",
    "marked": "1;36",
    "warning": "33",
}


class TerminalConsole:
    """Implements `agent.review.session.Console`; text given to it is fit to be shown."""

    def __init__(self) -> None:
        self._colour = (
            sys.stderr.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    @property
    def interactive(self) -> bool:
        """Tell whether somebody can see the questions and answer them."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    def line(self, text: str, style: Style = "plain") -> None:
        """Show one line."""
        code = _ANSI.get(style) if self._colour else None
        sys.stderr.write(f"\x1b[{code}m{text}\x1b[0m\n" if code else f"{text}\n")

    def ask(self, prompt: str) -> str | None:
        """Ask for one line; a line that the end of the input cuts off is no answer."""
        sys.stderr.write(prompt)
        sys.stderr.flush()
        try:
            answer = sys.stdin.readline()
        except UnicodeDecodeError:
            return "\ufffd"
        if not answer.endswith("\n"):
            sys.stderr.write("\n")
            return None
        return answer[:-1]

    def edit(self, text: str) -> str | None:
        """Open $VISUAL or $EDITOR; None without one, "" when it failed: nothing is changed."""
        command = _editor()
        if not command:
            return None
        with tempfile.TemporaryDirectory(prefix="label-agent-") as folder:
            path = Path(folder) / "rule.toml"
            path.write_text(text, encoding="utf-8")
            try:
                done = subprocess.run([*command, str(path)], check=False)
                changed = path.read_bytes()
            except OSError as err:
                talk(f"cannot run {command[0]}: {err.strerror}")
                return None
        if done.returncode:
            talk(f"{command[0]} ended with status {done.returncode}")
            return ""
        return changed.decode("utf-8", "replace")


def _editor() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        if chosen := os.environ.get(name, "").strip():
            try:
                return shlex.split(chosen)
            except ValueError:
                talk(f"${name} cannot be read: {chosen}")
    return []
