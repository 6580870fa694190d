"""A program on a real terminal (a pty), typed at like a person does."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROMPT = b"[a]ccept [r]eject [e]dit [s]kip [q]uit [?] "
EOF_KEY = "\x04"


class Terminal:
    """A child on a pty: stdin and stderr are the terminal, stdout is a pipe."""

    def __init__(self, argv: Sequence[str], cwd: Path = ROOT, **environment: str) -> None:
        self._master, slave = pty.openpty()
        kept = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "TERM": "xterm"}
        kept |= {name: os.environ[name] for name in os.environ if name.startswith("GIT_CONFIG")}
        self._child = subprocess.Popen(
            [sys.executable, *argv],
            stdin=slave,
            stderr=slave,
            stdout=subprocess.PIPE,
            cwd=cwd,
            env={**kept, **environment},
            start_new_session=True,
        )
        os.close(slave)
        self.seen = b""

    def answer(self, *keys: str, prompt: bytes = PROMPT) -> None:
        for key in keys:
            self.wait_for(prompt)
            os.write(self._master, key.encode())

    def interrupt(self) -> None:
        """Send Ctrl-C, as a terminal does to the program in front."""
        self._child.send_signal(signal.SIGINT)

    def end(self, code: int = 0) -> str:
        """Wait for the program; give what it wrote to stdout."""
        assert self._child.stdout is not None
        out = self._child.stdout.read().decode()
        self._drain()
        os.close(self._master)
        assert self._child.wait(10) == code, self.seen
        return out

    def wait_for(self, prompt: bytes) -> None:
        deadline, start = time.monotonic() + 30, len(self.seen)
        while prompt not in self.seen[start:]:
            assert time.monotonic() < deadline, self.seen
            self._drain(1)
        self.seen += b"\0"

    def _drain(self, seconds: float = 0) -> None:
        while select.select([self._master], [], [], seconds)[0]:
            try:
                read = os.read(self._master, 65536)
            except OSError:
                return
            if not read:
                return
            self.seen += read
            seconds = 0
