"""Which of a rule's evidence is of a kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.compare.cited import evidence_of
from agent.compare.table import compare_traces
from agent.core.proposals import Evidence
from agent.render.diff_markdown import diff_markdown
from agent.render.diff_tables import diff_github
from agent.render.diff_text import diff_text
from agent.render.documents import diff_document
from agent.render.html import diff_html
from tests.builders import evidence
from tests.unit.compare.runs import rules_for, run


def defined(name: str, line: int = 1) -> Evidence:
    return evidence(symbol=name, lines=(line, line))


def launched(line: int) -> Evidence:
    return evidence(kind="emission", symbol="forward", lines=(line, line))


ONE, ITS_LAUNCH = defined("_MOE1.moe_gemm1", 10), launched(11)
TWO, THAT_LAUNCH = defined("moe_gemm2", 20), launched(21)
BOTH = (ONE, ITS_LAUNCH, TWO, THAT_LAUNCH)


@pytest.mark.parametrize(
    ("kernel", "cited"),
    [
        pytest.param("moe_gemm1_0", (ONE, ITS_LAUNCH), id="a Triton specialisation"),
        pytest.param("moe_gemm2_BLOCK_M_16", (TWO, THAT_LAUNCH), id="a configured one"),
        pytest.param("moe_gemm2_0d1d2de", (TWO, THAT_LAUNCH), id="one of Triton 2"),
        pytest.param("void ns::moe_gemm2<float, 4>(int)", (TWO, THAT_LAUNCH), id="a template"),
        pytest.param("_ZN2ns9moe_gemm2IDhDB8_EEv", (TWO, THAT_LAUNCH), id="not demangled"),
        pytest.param("void kentry<1, moe_gemm1<int> >(int)", (ONE, ITS_LAUNCH), id="wrapped"),
    ],
)
def test_a_kernel_is_sent_to_its_own_definition_and_launch(kernel: str, cited):
    assert evidence_of(BOTH, [kernel]) == (cited, False)


@pytest.mark.parametrize(
    "kernel", ["moe_gemm3_0", "moe_gemm1_reduce", "moe_gemm10", "a_moe_gemm1", "_ZN2nsmoe_gemm1E"]
)
def test_a_kernel_the_rule_does_not_define_gets_its_relatives(kernel: str):
    assert evidence_of(BOTH, [kernel]) == (BOTH, True)


def test_several_kernels_get_the_evidence_of_each():
    assert evidence_of(BOTH, ["moe_gemm1_0", "moe_gemm2_0"]) == (BOTH, False)


def test_emissions_without_a_definition_hold_for_every_kernel_of_the_rule():
    """A cast is launched as `aten::copy_`: its places name no kernel."""
    assert evidence_of((ITS_LAUNCH, THAT_LAUNCH), ["any"]) == ((ITS_LAUNCH, THAT_LAUNCH), False)
    assert evidence_of((), ["any"]) == ((), False)


def test_a_mangled_table_row_is_of_the_kernel_it_demangles_to():
    row = evidence(kind="table", symbol="_ZN5aiter17mla_a8w8_qh16_gqaE")
    other = evidence(kind="table", symbol="_ZN5aiter16mla_a16_qh16_gqaE")
    assert evidence_of((row, other), ["aiter::mla_a8w8_qh16_gqa"]) == ((row,), False)


def reports(*names: str) -> dict[str, str]:
    """Every kind of report on one more kernel of a rule that defines `moe_gemm1` only."""
    rules = rules_for({"GEMM", "RMSNorm", "RoPE", "MLA"})
    cited = tuple(
        replace(one, evidence=(ONE, ITS_LAUNCH)) if one.category == "GEMM" else one
        for one in rules.rules
    )
    rules = replace(rules, rules=cited)
    base = {f"{category}/k": (10, 900_000) for category in ("GEMM", "RMSNorm", "RoPE", "MLA")}
    new = {**base, **{f"GEMM/{name}": (10, 9_000_000) for name in names}}
    diff = compare_traces(run(base, rules=rules), run(new, rules=rules))
    return {
        "text": " ".join(diff_text(diff, width=200).split()),
        "markdown": diff_markdown(diff),
        "github": diff_github(diff),
        "html": diff_html(diff),
        "json": str(diff_document(diff)["kernel_targets"]),
    }


def test_a_target_that_its_rule_does_not_define_is_not_sent_to_another_kernel_unsaid():
    """`moe_gemm2` was sent to the definition line of `moe_gemm1`."""
    found = reports("moe_gemm2")
    said = "source lines of a relative, another kernel of the rule"
    assert [kind for kind, report in found.items() if said in report] == [
        "text",
        "markdown",
        "github",
        "html",
    ]
    assert "'evidence_is_of_relative': True" in found["json"]


def test_a_target_that_its_rule_defines_is_said_to_be_that():
    found = reports("moe_gemm1")
    for kind in ("text", "markdown", "github"):
        assert "python/kernels.py:10" in found[kind]
        assert "relative" not in found[kind]
    assert "'evidence_is_of_relative': False" in found["json"]
