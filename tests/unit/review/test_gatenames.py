"""Names that a proposal with dtypes can or cannot take."""

from __future__ import annotations

import pytest

from agent.core.proposals import Proposal
from agent.review.gatenames import taken_by
from tests.builders import ruleset

COPY = (
    "void at::native::k<4, at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)::{}>(int)"
)
SCALES = COPY.format("{lambda(float)#5}")
OLD_SCALES = COPY.format("[lambda(float) (instance 5)]")
SAME = COPY.format("{lambda(float)#3}")


@pytest.mark.parametrize(
    ("dtypes", "stolen"),
    [
        ((), {SCALES, OLD_SCALES, SAME}),
        (("c10::Float8_e4m3fnuz", "c10::BFloat16"), {SAME}),
        (("c10::Float8_e8m0fnu", "c10::BFloat16"), {SCALES, OLD_SCALES}),
    ],
)
def test_a_copy_that_writes_another_type_is_not_taken(
    dtypes: tuple[str, ...], stolen: set[str]
) -> None:
    proposal = Proposal("0" * 16, "CastToFP8", "float8_copy_kernel_cuda", (), input_dtypes=dtypes)
    names = dict.fromkeys((SCALES, OLD_SCALES, SAME), "Quant")
    taken = taken_by(proposal, ruleset(), names, None)
    assert taken is not None
    assert {name for name, _ in taken.stolen} == stolen
