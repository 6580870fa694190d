"""`label-agent propose`."""

from __future__ import annotations


def propose() -> int:
    """Propose rules for kernels without a label."""
    raise NotImplementedError
