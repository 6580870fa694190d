from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.vocabulary import VOCABULARY
from agent.review.naming import kebab, new_rule_id


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CastFromFP8", "cast-from-fp8"),
        ("MoEGEMM", "moe-gemm"),
        ("MoESorting", "moe-sorting"),
        ("KVCacheWrite", "kv-cache-write"),
        ("RMSNorm", "rms-norm"),
        ("LinearAttn", "linear-attn"),
        ("RoPE", "rope"),
        ("MLA", "mla"),
        ("TopK", "topk"),
        ("ReduceOP", "reduce-op"),
        ("ActMul", "act-mul"),
        ("GEMM", "gemm"),
    ],
)
def test_categories_become_kebab_case(name: str, expected: str) -> None:
    assert kebab(name) == expected


def test_every_category_of_the_vocabulary_stays_apart() -> None:
    names = [kebab(category) for category, _, _ in VOCABULARY]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param("^_fwd_kernel_stage2$", "attention.fwd-kernel-stage2", id="anchors"),
        pytest.param(r"aiter::mla_a8w8_qh\d+_x", "attention.mla-a8w8-qh", id="namespace, class"),
        pytest.param(r"paged_attention[_a-z]*\(int\)", "attention.paged-attention", id="brackets"),
        pytest.param(r"\bncclKernel\b", "attention.ncclkernel", id="word boundaries"),
        pytest.param(r".*", "attention.kernel", id="nothing literal"),
        pytest.param("", "attention.kernel", id="empty"),
        pytest.param("x" * 400, "attention." + "x" * 48, id="long"),
    ],
)
def test_the_stem_is_the_longest_literal_name(pattern: str, expected: str) -> None:
    assert new_rule_id("Attention", pattern, ()) == expected


def test_a_taken_id_gets_the_next_free_number() -> None:
    taken = {"gemm.gemm-a", "gemm.gemm-a-2"}
    assert new_rule_id("GEMM", "gemm_a", taken) == "gemm.gemm-a-3"


@given(st.text(max_size=60), st.text(max_size=200))
def test_any_id_fits_the_rule_file(category: str, pattern: str) -> None:
    found = new_rule_id(category, pattern, ())
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", found)
