"""Results are tables: the same columns for pandas and polars, and a clear word without them."""

from __future__ import annotations

import sys

import pytest

from agent.core.rules import Label, LabelledTrace
from agent.core.vocabulary import VOCABULARY
from agent.errors import UsageError
from tests.builders import rule, ruleset, signature, stats, trace

GEMM = signature("moe_gemm1_0", op="aten::mm", input_dtypes=("c10::BFloat16", ""))
ODD = signature("odd", replayed=True)
COLUMNS = {
    "name": ["moe_gemm1_0", "odd"],
    "op": ["aten::mm", ""],
    "replayed": [False, True],
    "work": ["kernel", "kernel"],
    "input_dtypes": [["c10::BFloat16", ""], []],
    "category": ["MoEGEMM", "Unlabelled"],
    "rule": ["gemm.moe", None],
    "grade": ["vendor", None],
    "count": [2, 1],
    "time_ns": [10, 3],
    "min_ns": [5, 3],
    "max_ns": [5, 3],
}


def labelled() -> LabelledTrace:
    assert "MoEGEMM" in {identity for identity, _, _ in VOCABULARY}
    made = rule()
    labels = {
        GEMM: Label(made.category, made.id, made.grade),
        ODD: Label("Unlabelled"),  # type: ignore[arg-type]
    }
    return LabelledTrace(trace({GEMM: stats(2, 10), ODD: stats(1, 3)}), ruleset(made), labels)


def test_columns_have_one_row_for_each_signature() -> None:
    assert labelled().columns() == COLUMNS


def test_pandas_gets_the_columns() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = labelled().to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(COLUMNS)
    assert frame["time_ns"].sum() == 13
    assert str(frame["time_ns"].dtype) == "int64"


def test_polars_gets_the_columns() -> None:
    pytest.importorskip("polars", reason="polars is not installed")
    assert labelled().to_polars().to_dict(as_series=False) == COLUMNS


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_without_the_library_the_error_says_how_to_install_it(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=f"TR080 {library} is not installed") as caught:
        getattr(labelled(), f"to_{library}")()
    assert f"label-agent[{library}]" in caught.value.hint
