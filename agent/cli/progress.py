"""Progress of reading on stderr: a bar per file, only on a terminal and only after a second."""

from __future__ import annotations
