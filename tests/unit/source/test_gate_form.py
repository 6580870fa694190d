"""What the gate says of a proposal before, or whatever, its source shows."""

from __future__ import annotations

import pytest

from tests.unit.source.conftest import Serving, codes
from tests.unit.source.test_gate import UTILS, triton

KERNEL = "fill_indices_kernel"


@pytest.mark.parametrize("repeated", [0, 1], ids=["definition", "emission"])
def test_one_place_cited_twice_is_refused(serving: Serving, repeated: int) -> None:
    given = triton(serving)
    evidence = (*given, given[repeated])
    verdict = serving.judge("Metadata", f"^{KERNEL}$", *evidence, kernels=(KERNEL,))
    assert codes(verdict) == ["E_SCHEMA"]
    assert verdict.errors[0].message.endswith(f"is cited twice as {given[repeated].kind}")


def test_a_place_within_another_is_the_same_place(serving: Serving) -> None:
    line = serving.line(UTILS, f"def {KERNEL}(")
    whole = serving.at("definition", UTILS, lines=(line, line + 1))
    verdict = serving.judge("Metadata", f"^{KERNEL}$", *triton(serving), whole, kernels=(KERNEL,))
    assert codes(verdict) == ["E_SCHEMA"]


@pytest.mark.parametrize("pattern", ["^xyzzy$", "^nccl_xyzzy$", "^Cijk_xyzzy$"])
def test_a_pattern_for_nothing_is_not_said_to_be_of_a_vendor(
    serving: Serving, pattern: str
) -> None:
    verdict = serving.judge("GEMM", pattern, *triton(serving))
    assert "E_NO_KERNEL_MATCHED" in codes(verdict)
    assert "E_EXTERNAL" not in codes(verdict)
    assert verdict.end_state == ""


def test_a_vendor_kernel_is_said_to_be_one(serving: Serving) -> None:
    name = "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32"
    verdict = serving.judge("GEMM", "^Cijk_Ailk", *triton(serving), kernels=(name,))
    assert "E_EXTERNAL" in codes(verdict)
    assert verdict.end_state == "EXTERNAL"
