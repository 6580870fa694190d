"""Reasons not to compare, said first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.compare.table import compare_traces
from agent.core.kernels import Step, TraceInfo
from tests.builders import rule, signature
from tests.unit.compare.runs import rank, rules_for, run

KERNELS = {"A/a": (4, 400), "B/b": (2, 100)}


def info(**fields: object) -> TraceInfo:
    return TraceInfo("trace.json", "kineto", **fields)  # type: ignore[arg-type]


def one(**fields: object):
    return run(rank(KERNELS, info=info(**fields), linked_ns=1))


@pytest.mark.parametrize(
    ("base", "new", "code", "said"),
    [
        pytest.param(
            one(vendor="rocm"), one(vendor="cuda"), "DF101", "rocm against cuda", id="vendors"
        ),
        pytest.param(
            one(device_names=("MI300X",)),
            one(device_names=("MI355X",)),
            "DF101",
            "MI300X against MI355X",
            id="devices",
        ),
        pytest.param(run(KERNELS), run(KERNELS, KERNELS), "DF102", "1 rank against 2", id="ranks"),
        pytest.param(
            run(rank(KERNELS, rank=0)),
            run(rank(KERNELS, rank=3)),
            "DF102",
            "0 against 3",
            id="which",
        ),
        pytest.param(
            run(rank(KERNELS, stage="DECODE")),
            run(rank(KERNELS, stage="EXTEND")),
            "DF103",
            "DECODE against EXTEND",
            id="stages",
        ),
        pytest.param(
            run(rank(KERNELS, steps=(Step("step[EXTEND bs=15 toks=15360]", 0, 9),))),
            run(rank(KERNELS, steps=(Step("step[DECODE bs=16]", 0, 9),))),
            "DF103",
            "EXTEND against DECODE",
            id="annotated stages",
        ),
        pytest.param(
            one(has_shapes=True),
            one(has_shapes=False),
            "DF104",
            "new was recorded without",
            id="shapes",
        ),
        pytest.param(
            run({"A/a": (1, 1)}), run({"B/b": (1, 1)}), "DF105", "share no category", id="nothing"
        ),
        pytest.param(
            run({"A/a": (10, 1), "B/b": (10, 1), "C/c": (10, 1)}),
            run({"A/a": (9, 1), "B/b": (7, 1), "C/c": (4, 1)}),
            "DF105",
            "no common ratio",
            id="work",
        ),
    ],
)
def test_a_reason_not_to_compare_stands_first(base, new, code, said):
    diff = compare_traces(base, new)
    assert not diff.comparable
    assert not diff.conclusive
    assert diff.findings[0].code == code
    assert "not comparable" in diff.findings[0].message
    assert said in diff.findings[0].message


@pytest.mark.parametrize(
    ("base", "new"),
    [
        pytest.param(one(vendor="rocm"), one(vendor="unknown"), id="an unknown vendor"),
        pytest.param(
            one(device_names=("AMD Radeon Graphics",)),
            one(device_names=("MI300X",)),
            id="ROCm's generic device name",
        ),
        pytest.param(one(device_names=("",)), one(device_names=("MI300X",)), id="an empty name"),
        pytest.param(run(rank(KERNELS, stage="DECODE")), run(rank(KERNELS)), id="an unknown stage"),
        pytest.param(
            run(rank(KERNELS, steps=(Step("step[EXTEND]", 0, 4), Step("step[DECODE]", 5, 9)))),
            run(rank(KERNELS, steps=(Step("step[DECODE]", 0, 4), Step("step[DECODE]", 5, 9)))),
            id="a stage of two in common",
        ),
    ],
)
def test_what_is_not_known_is_no_reason(base, new):
    assert compare_traces(base, new).comparable


@pytest.mark.parametrize(
    ("n_ranks", "listed"), [(4, "0, 1, 2, 3 against"), (5, "0, 1, 2, 3, ... against")]
)
def test_of_many_ranks_the_first_four_are_named(n_ranks, listed):
    base, new = (
        run(*[rank(KERNELS, label=str(at), rank=first + at) for at in range(n_ranks)])
        for first in (0, 100)
    )
    assert listed in compare_traces(base, new).findings[0].message


CAST = signature("Cast/k", op="aten::copy_", input_dtypes=("c10::BFloat16", "c10::Float8_e4m3fn"))
RULES = replace(
    rules_for({"A", "Cast"}),
    rules=(
        rule("rule.A", "A", "A"),
        rule("rule.Cast", "Cast", "Cast", op="copy_", input_dtypes=CAST.input_dtypes),
    ),
)


def shaped(kernels, *, shapes: bool):
    return run(rank(kernels, info=info(has_shapes=shapes)), rules=RULES)


def test_a_window_without_ops_misses_no_dtypes():
    diff = compare_traces(
        shaped({"A/a": (4, 9)}, shapes=False), shaped({"A/a": (4, 9), CAST: (1, 1)}, shapes=True)
    )
    assert diff.comparable


def test_a_window_without_ops_but_with_the_casts_kernel_misses_them():
    bare = shaped({"A/a": (4, 9), "Cast/k": (1, 1)}, shapes=False)
    diff = compare_traces(bare, shaped({"A/a": (4, 9), CAST: (1, 1)}, shapes=True))
    assert diff.findings[0].code == "DF104"


def test_a_cast_that_was_replayed_on_one_side_is_unresolved():
    replayed = signature("Cast/k", replayed=True)
    base = shaped({"A/a": (4, 9), CAST: (1, 1)}, shapes=True)
    diff = compare_traces(base, shaped({"A/a": (4, 9), replayed: (1, 3)}, shapes=True))
    [said] = [finding.message for finding in diff.findings if finding.code == "DF132"]
    assert said.startswith("0.000003 ms of side new")
