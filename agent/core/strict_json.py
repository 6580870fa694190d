"""JSON as foreigners write it, read without repair: no key twice, no NaN, one value."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from agent.core.text import shown


class _DuplicateKeyError(ValueError):
    """An object names one key twice."""


def read_json(text: str) -> Any:  # noqa: ANN401 - a JSON value
    """Read one JSON value.

    Raises:
        ValueError: not one JSON value, nested too deeply, or an object names a key twice; the
            message says which and is fit to be shown.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except _DuplicateKeyError:
        raise
    except (ValueError, RecursionError) as err:
        message = f"not one JSON value: {err}"
        raise ValueError(message) from err


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            message = f'duplicate key "{shown(key, limit=60)}"'
            raise _DuplicateKeyError(message)
        seen[key] = value
    return seen


def _no_constant(name: str) -> NoReturn:
    message = f"{name} is not JSON"
    raise ValueError(message)
