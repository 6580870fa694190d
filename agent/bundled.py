"""Find the files that ship with the package: rules, prompts and the demo.

In a wheel they lie in `agent/_bundled/`; in a checkout they lie at its root.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def bundled_folder(name: str) -> Path:
    """Give the folder of shipped files called `name` (`rules`, `prompts`, `demo`)."""
    package = Path(__file__).resolve().parent
    shipped = package / "_bundled" / name
    return shipped if shipped.is_dir() else package.parent / name
