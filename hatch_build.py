"""Compile the quick half of the trace reader, where there is a C compiler.

Without one the package reads in Python alone: slower, with the same result.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "agent/traces/scan/scan.c"
LIBRARY = "agent/traces/_scan.so"
FLAGS = ("-O3", "-std=c11", "-fPIC", "-shared")


class ScannerBuildHook(BuildHookInterface[Any]):
    """Put the compiled scanner into the wheel, which then fits one platform."""

    folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files of the wheel are collected; `version` may be `editable`."""
        root = Path(self.root)
        if version == "editable":
            compile_scanner(root, root / LIBRARY)
            return
        self.folder = tempfile.TemporaryDirectory()
        library = Path(self.folder.name, "scan.so")
        if compile_scanner(root, library):
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
            build_data["force_include"][os.fspath(library)] = LIBRARY

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled, once it is in the wheel."""
        del version, build_data, artifact_path
        if self.folder:
            self.folder.cleanup()


def compile_scanner(root: Path, library: Path) -> bool:
    """Compile the scanner at once or not at all, and tell whether it is there."""
    library.unlink(missing_ok=True)
    if sys.platform == "win32":
        return False
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder, library.name)
        command = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS, "-o", os.fspath(made)]
        try:
            subprocess.run([*command, os.fspath(root / SOURCE)], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as err:
            print(f"traces will be read in Python alone, for want of a C compiler: {err}")
            return False
        made.replace(library)
    return True
