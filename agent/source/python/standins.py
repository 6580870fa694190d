"""Functions that only stand in for a real one and run nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FAKES = re.compile(
    r"^@\s*(?:[\w.]+\.)?(?:register_fake|impl_abstract|register_meta|abstractmethod|overload)\b"
)
_FAKE_NAME = re.compile(r"(?:^|_)(?:fake|abstract|meta|stub|mock)(?:_impl|_fn|_func|_tensor)?$")


def is_fake(name: str, decorators: Sequence[str]) -> bool:
    """Tell whether a function stands in for a real one: shape inference, abstract, overload."""
    marked = any(_FAKES.match(f"@{one.lstrip('@')}") for one in decorators)
    return marked or _FAKE_NAME.search(name) is not None
