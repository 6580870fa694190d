"""Results as data frames, where pandas or polars is installed; neither is needed otherwise."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from agent.errors import UsageError


class Tabular:
    """A result that is also a table: equally long columns by name, in a stable order."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Give the columns; times are integer nanoseconds, unknown is None or empty."""

    def to_pandas(self) -> Any:  # noqa: ANN401 - a library that may not be installed
        """Give a `pandas.DataFrame`.

        Raises:
            UsageError: pandas is not installed.
        """
        return _frame("pandas", self.columns())

    def to_polars(self) -> Any:  # noqa: ANN401 - a library that may not be installed
        """Give a `polars.DataFrame`.

        Raises:
            UsageError: polars is not installed.
        """
        return _frame("polars", self.columns())


def _frame(library: str, columns: Mapping[str, Sequence[Any]]) -> Any:  # noqa: ANN401 - as above
    try:
        module = importlib.import_module(library)
    except ImportError as err:
        raise UsageError(
            "TR080",
            f"{library} is not installed",
            hint=f"pip install 'label-agent[{library}]'",
        ) from err
    return module.DataFrame(dict(columns))
