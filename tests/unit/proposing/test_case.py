"""What a family's case says is nearest to be done agrees with the task, origin by origin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.core.proposals import Evidence
from agent.core.source import Candidate
from agent.core.vocabulary import VOCABULARY
from agent.proposing.case import case_text
from agent.proposing.dossier import Dossier, dossier_of
from agent.proposing.families import rank_families
from agent.proposing.loop import first_request
from agent.proposing.prompts import load_prompt
from agent.ruleset.match import label_trace
from tests.builders import rule, ruleset, signature, stats, trace
from tests.unit.proposing.fakes import MemorySource, ScriptedModel, asking, candidate, dossiers

CATEGORIES = frozenset(name for name, _, _ in VOCABULARY)
COPY = (
    "void at::native::elementwise_kernel<512, 1, at::native::gpu_kernel_impl<at::native::"
    "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"
    "{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&)>(int)"
)
READS = ("c10::BFloat16", "c10::Float8_e4m3fnuz")
CAST = Candidate(
    "aten-cast", "", (Evidence("emission", "serve", "1" * 40, "a.py", (4, 4), "read"),), 70,
    "converts from FP8 in read",
)  # fmt: skip


def _dossier(name: str, *found: Candidate, dtypes: tuple[str, ...] = ()) -> Dossier:
    rules = ruleset(rule("elementwise.aten", "Elementwise", "at::native"))
    ran = signature(name, op="aten::copy_", input_dtypes=dtypes)
    run = label_trace(trace({ran: stats()}), rules)
    [family] = rank_families(run, [])
    return dossier_of(family, run.trace, lambda *_: found, dossiers(MemorySource())[0].context)


def _said(dossier: Dossier, categories: frozenset[str] = CATEGORIES) -> str:
    return case_text(load_prompt("family"), dossier, None, categories)


def test_what_the_words_point_to_is_said_where_they_agree() -> None:
    [dossier] = dossiers(MemorySource())
    assert "They point to RMSNorm." in _said(dossier)
    assert "They point to" not in _said(dossier, CATEGORIES - {"RMSNorm"})
    mixed = tuple(
        replace(one, path="layers/rope.py") if one.kind == "definition" else one
        for one in candidate().evidence
    )
    undecided = replace(dossier, candidates=(candidate(), candidate(evidence=mixed)))
    assert "They point to" not in _said(undecided)


def test_a_cast_of_known_dtypes_is_proposed_with_them() -> None:
    said = _said(_dossier(COPY, CAST, dtypes=READS))
    assert "They point to CastFromFP8." in said
    assert (
        '"op": "^aten::copy_$", "input_dtypes": ["c10::BFloat16", "c10::Float8_e4m3fnuz"]' in said
    )


def test_a_cast_of_unknown_dtypes_is_proposed_without_conditions() -> None:
    said = _said(_dossier(COPY, CAST))
    assert "They point to CastFromFP8." in said
    assert '"candidates": [1], "op": "", "input_dtypes": [] and "kernel": ""' in said


def test_a_kernel_of_its_own_has_no_conditions() -> None:
    """A small model filled `op` with a Python function."""
    assert '"candidates": [1], "op": "", "input_dtypes": []' in _said(dossiers(MemorySource())[0])


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("_own_kernel_of_a_model", "the definition and its launch"),
        ("void serve::scale_rows<float>(float*)", "the definition and its launch"),
        ("void ck::kernel_gemm<int>(int)", "a line that uses its type and the call"),
        (COPY, "the line that converts, with its guard"),
        ("triton_poi_fused_add_mul_0", "the @torch.compile function with the operators"),
    ],
    ids=["triton", "hip", "ck", "cast", "inductor"],
)
def test_without_candidates_it_says_what_its_origin_needs(name: str, look: str) -> None:
    assert f"Without evidence it cannot be proposed: look for {look}" in _said(_dossier(name))


def test_what_a_family_is_labelled_already_is_no_answer() -> None:
    """A small model proposed the catch-all's own category for a cast that hides in it."""
    shared = asking(ScriptedModel([]), MemorySource())
    request = first_request(_dossier(COPY, CAST), shared)
    submit = next(
        one for one in request.schema["properties"]["action"]["anyOf"]
        if one["properties"]["do"]["enum"] == ["submit_proposal"]
    )  # fmt: skip
    offered = submit["properties"]["category"]["enum"]
    declared = [str(one.id) for one in shared.labelled.ruleset.categories]
    assert offered == [one for one in declared if one != "Elementwise"]
