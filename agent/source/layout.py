"""Where a file of a repository lies when its package is installed, and the other way round.

A wheel holds the packages that a repository keeps below a source root (`python/`, `src/`): the
same file has a path without that folder there, and whatever is not packaged is not there at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_INSTALLED = re.compile(r"[^/]+\.dist-info/")


def placed(tree: Collection[str], path: str) -> str:
    """Give the path of the same file in a tree that has one source root less or more.

    The path itself where the tree has its first folder, or no such file.
    """
    top, _, rest = path.partition("/")
    if path in tree or _has(tree, top):
        return path
    if rest in tree:
        return rest
    deeper = [one for one in tree if one.partition("/")[2] == path]
    return deeper[0] if len(deeper) == 1 else path


def is_unpackaged(tree: Collection[str], path: str) -> bool:
    """Tell whether a tree is an installed package that leaves out a path's part of the repository.

    That is its first folder, or below a source root its package.
    """
    installed = any(_INSTALLED.match(one) for one in tree)
    top, _, rest = path.partition("/")
    return installed and not _has(tree, top) and not _has(tree, rest.partition("/")[0])


def _has(tree: Collection[str], folder: str) -> bool:
    return any(one.startswith(f"{folder}/") for one in tree)
