"""A shell in which the capture commands of the pages run, without a GPU or a model.

`python -m sglang.profiler` is SGLang's own module, from its wheel; its server and its load are
stand-ins that take the options SGLang declares. `curl` is the real one. A command that serves is
left running, and ends when the next one starts.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.capture.pages import ROOT

HERE = Path(__file__).resolve().parent
SERVES = re.compile(r"^(?:python -m sglang\.launch_server|vllm serve)\b")
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
PROGRAMS = {
    "python": shlex.quote(sys.executable),
    "label-agent": f"{shlex.quote(sys.executable)} -m agent",
    **{
        name: f"{shlex.quote(sys.executable)} -m tests.capture.tools {name}"
        for name in ("nsys", "rocprofv3", "vllm")
    },
}


class Workplace:
    """A folder with the programs of the pages, and `captures` in it for `/captures`."""

    def __init__(self, root: Path, sources: dict[str, bytes]) -> None:
        self.captures, self.folder = root / "captures", root / "here"
        for folder in (self.captures, self.folder, root / "bin"):
            folder.mkdir()
        for name, program in PROGRAMS.items():
            path = root / "bin" / name
            path.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
            path.chmod(0o755)
        (root / ".curlrc").write_text("fail\nsilent\nshow-error\n")
        shutil.copytree(HERE / "site", root / "site")
        for name, text in sources.items():
            path = root / "sources" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        shutil.copy(root / "sources" / "profiler.py", root / "site" / "sglang" / "profiler.py")
        self._port = free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self._world = {
            **os.environ,
            "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{root / 'site'}{os.pathsep}{ROOT}",
            "CURL_HOME": str(root),
            "STAND_IN_PORT": str(self._port),
            "STAND_IN_SOURCES": str(root / "sources"),
        }

    def play(self, command: str, *, code: int = 0) -> str:
        """Run a command of a page as it stands there, but for its placeholders; give its stdout."""
        command = command.replace("/captures", str(self.captures))
        command = ADDRESS.sub(f"http://127.0.0.1:{self._port}", command)
        if SERVES.match(command):
            self._serve(command)
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._world,
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _serve(self, command: str) -> None:
        self.close()
        self._server = subprocess.Popen(["bash", "-c", f"exec {command}"], env=self._world)
        while self._server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(f"it did not start: {command}")

    def close(self) -> None:
        """End the server that was started last."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None

    def files(self, folder: str) -> list[str]:
        """Name the files of a capture."""
        found = (self.captures / folder).rglob("*")
        return sorted(str(path.relative_to(self.captures / folder)) for path in found)


def free_port() -> int:
    """Give a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
