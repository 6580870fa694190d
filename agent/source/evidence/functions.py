"""The function around an emission, as a profiler's stack names it."""

from __future__ import annotations

from itertools import pairwise

from agent.core.source import EnclosingFunction, RepoInfo
from agent.source.parse import first_line
from agent.source.python.sites import Site


def enclosing_function(info: RepoInfo, path: str, site: Site) -> EnclosingFunction:
    """Give the function around a site with the lines that a profiler may call its first."""
    around = [node for node in site.chain[:-1] if node.type == "function_definition"]
    lines = {first_line(around[-1])} if around else set()
    for outer, inner in pairwise(site.chain):
        if around and inner == around[-1] and outer.type == "decorated_definition":
            lines.add(first_line(outer))
    return EnclosingFunction(info.name, info.commit, path, site.qualname, tuple(sorted(lines)))
