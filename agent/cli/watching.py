"""How asking goes, on stderr: one moving line on a terminal, a line a family elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from agent.cli.screen import talk
from agent.core.text import shown
from agent.proposing.results import Asked, Step

_NAME = 60


@contextmanager
def asking_lines() -> Iterator[AskingLines]:
    """Show how asking goes; whatever ends it, nothing is left of the moving line."""
    lines = AskingLines()
    try:
        yield lines
    finally:
        lines.clear()


class AskingLines:
    """Implements `agent.workflows.asking.Watcher`."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._moving = False
        self._counts: dict[str, int] = {}
        self._tokens = 0

    def step(self, step: Step) -> None:
        """Show what is being done, in place."""
        self._tokens = step.tokens
        if not self._terminal:
            return
        text = f"[{step.number}/{step.total}] {shown(step.family.stem, limit=_NAME)}: {step.doing}"
        width = shutil.get_terminal_size().columns - 1
        self._moving = True  # first: an interrupt may come as soon as the line is seen
        self._write(f"\r\x1b[K{f'{text}{self._so_far()}'[:width]}")

    def settled(self, asked: Asked) -> None:
        """Say what a family came to."""
        self._counts[asked.answer] = self._counts.get(asked.answer, 0) + 1
        self.clear()
        share = f"{100 * asked.family.share:.2f} %"
        family = shown(asked.family.stem, limit=_NAME)
        family += f" ({asked.family.why_open})" if asked.family.why_open else ""
        why = f": {shown(asked.reason, limit=200)}" if asked.reason else ""
        talk(f"{asked.answer:<9} {share:>8}  {family}{why}")

    def clear(self) -> None:
        """Take the moving line away."""
        if self._moving:
            self._write("\r\x1b[K")
            self._moving = False

    def _so_far(self) -> str:
        counts = ", ".join(f"{number} {answer}" for answer, number in self._counts.items())
        tokens = f"{self._tokens:,} tokens" if self._tokens else ""
        return "".join(f"  {part}" for part in (tokens, counts) if part)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
