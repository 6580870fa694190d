"""What `propose` says at its end."""

from __future__ import annotations

from fractions import Fraction

import pytest

from agent.cli.proposals import proposals_text
from agent.core.rules import Label
from agent.proposing.families import Family, Member
from agent.proposing.providers.base import Usage
from agent.proposing.results import Answer, Asked
from agent.workflows.propose import ProposeResult
from agent.workflows.review import ReviewResult
from tests.builders import signature, stats

OPEN = Label("Unlabelled")  # type: ignore[arg-type]
HELD = Label("Elementwise", "elementwise.aten", "vendor")  # type: ignore[arg-type]


def asked(
    name: str, answer: Answer = "abstained", *, label: Label = OPEN, **fields: object
) -> Asked:
    vendor = bool(fields.pop("vendor", False))
    family = Family(name, (Member(signature(name), stats(2, 50), label),), 1_000, vendor=vendor)
    return Asked(family, answer, reason="why", **fields)  # type: ignore[arg-type]


def said(*families: Asked, unlabelled: Fraction = Fraction(0)) -> list[str]:
    result = ProposeResult(families, ReviewResult((), "label-rules.toml"), unlabelled, 0.001)
    return proposals_text(result)


@pytest.mark.parametrize(
    ("unlabelled", "expected"),
    [
        (Fraction(0), "nothing to ask about: nothing is unlabelled"),
        (
            Fraction(1, 500),
            "nothing to ask about: 0.20 % of kernel time is unlabelled, in families below --min-share 0.001",
        ),
    ],
)
def test_why_nothing_is_asked(unlabelled: Fraction, expected: str) -> None:
    assert said(unlabelled=unlabelled)[0] == expected


def test_a_family_that_has_a_label_says_why_it_is_asked_about() -> None:
    (_, line, _) = said(asked("copy_kernel", label=HELD))
    assert line == "abstained   5.00 %  copy_kernel (labelled Elementwise by a catch-all): why"
    assert said(asked("copy_kernel"))[1] == "abstained   5.00 %  copy_kernel: why"


def test_the_end_is_a_table_of_all_families_with_what_asking_cost() -> None:
    lines = said(
        asked("one_kernel", "admitted", turns=2, usage=Usage(2_000, 345)), asked("two_kernel")
    )
    assert lines[:3] == [
        "answer       share  turns     tokens  family",
        "admitted    5.00 %      2      2,345  one_kernel: why",
        "abstained   5.00 %      0          0  two_kernel: why",
    ]


def test_kernels_without_any_source_end_in_one_hint_about_checkouts() -> None:
    lines = said(
        asked("void deep_ep::internode::dispatch<1>(int)", sourced=False),
        asked("void deep_ep::intranode::combine<1>(int)", sourced=False),
        asked("void flashinfer::BatchDecode<1>(int)", sourced=False),
    )
    assert [line for line in lines if line.startswith("hint:")] == [
        "hint: the checkouts given hold no source of deep_ep, flashinfer; if the trace ran another one, add it: --repo DIR"
    ]


@pytest.mark.parametrize(
    "one",
    [
        asked("void deep_ep::dispatch<1>(int)", sourced=True),
        asked("void at::native::some_kernel<1>(int)", sourced=False),
        asked("Cijk_Alik_Bljk_MT1", sourced=False, vendor=True),
        asked("triton_poi_fused_add_0", sourced=False),
    ],
    ids=["a candidate was found", "PyTorch", "a vendor library", "Inductor"],
)
def test_no_checkout_is_asked_for_where_none_would_help(one: Asked) -> None:
    assert not any(line.startswith("hint:") for line in said(one))


def test_many_libraries_are_counted() -> None:
    lines = said(*(asked(f"void lib{n}::k<1>(int)", sourced=False) for n in range(6)))
    assert "lib0, lib1, lib2, lib3 and 2 more;" in lines[-1]
