"""Compare a stated guard with the guard chain of the syntax tree."""

from __future__ import annotations

import re

from agent.core.proposals import Evidence, Finding
from agent.source.python.guards import atoms, inverted, same_guard
from agent.source.python.sites import Region
from agent.source.snapshot import SourceFile

_COMMENT = re.compile(r"(?<![\"'\w])#")


def guard_finding(evidence: Evidence, region: Region, file: SourceFile) -> Finding | None:
    """Say how a stated guard differs from what stands around every site; None when it holds."""
    if not evidence.guard:
        return None
    where = f"{file.path}:{evidence.lines[0]}"
    wanted = atoms(evidence.guard)
    if not wanted or _COMMENT.search(evidence.guard):
        message = "the stated guard is no condition, or says more than one"
        return Finding("E_GUARD_MISMATCH", message, "error", where)
    for site in region.sites:
        for atom in wanted:
            if any(same_guard(atom, known) for known in site.guards):
                continue
            if any(same_guard(inverted(atom), known) for known in site.guards):
                message = f"the guard {evidence.guard[:80]!r} stands here with the other polarity"
            else:
                chain = "; ".join(site.guards[-3:]) or "none"
                message = (
                    f"the guard {evidence.guard[:80]!r} is not around line {site.line} ({chain})"
                )
            return Finding("E_GUARD_MISMATCH", message, "error", where)
    return None
