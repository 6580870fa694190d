"""Whole words in patterns, and names that are names."""

from __future__ import annotations

import pytest

from agent.review.gatewords import cut_findings, prose_findings

NAME = "void aiter::grouped_gemm_kernelA16<__hip_bfloat16, 256>(int*)"


@pytest.mark.parametrize(
    "pattern",
    [
        "grouped_gemm", "_gemm_", "gemm_kernel", "kernelA16", "kernel", "A16", "A", "aiter::grouped",
        "^void aiter::", "grouped_gemm.*", "gemm_kernel[A-Z]", "16<", r"\bgrouped_gemm_",
        "grouped_[a-z]", "grouped_g?", "^.*grouped_gemm.*$", "grouped_.*", r"bfloat16.*\(", "(?:_gemm|_kernel)", "_gemm_kernel[A-Z]",
    ],
)  # fmt: skip
def test_a_pattern_of_whole_words_cuts_none(pattern: str) -> None:
    assert cut_findings(pattern, [NAME]) == ()


@pytest.mark.parametrize(
    "pattern",
    [
        "ouped_gemm",
        "grouped_ge",
        "_gem",
        "rnelA16",
        "A1",
        "iter::",
        "(?:_gem|_ker)",
        "(?:_ge)+",
        "grouped_ge.*",
        ".*ouped_gemm",
        "^.*ouped_gemm.+$",
    ],
)
def test_a_piece_of_a_word_is_no_pattern(pattern: str) -> None:
    (finding,) = cut_findings(pattern, [NAME])
    assert finding.code == "E_CUTS_WORD"


def test_a_pattern_may_cut_a_word_of_one_name_and_be_whole_in_another() -> None:
    assert cut_findings("norm_kernel", ["rmsnorm_kernel", "layer_norm_kernel"]) == ()
    assert cut_findings("norm_kernel", ["no_match"]) == ()
    assert cut_findings("(", [NAME]) == ()


@pytest.mark.parametrize(
    "name",
    [
        NAME, "_fwd_kernel", "_fwd_kernel.kd", "_ZN5aiter3mlaE.kd", "void f<...>",
        "void at::native::k<at::native::f(int&)::{lambda(c10::BFloat16)#1}>(int) [clone .kd]",
        "std::enable_if<(((8)>(0))), void>::type vllm::norm_kernel<c10::BFloat16, 8>(int*)",
        "void (anonymous namespace)::clamp_kernel<long>(long const*, unsigned long)",
        "Memcpy DtoD (Device -> Device)", "unsigned int* pkg::k(int) const",
    ],
)  # fmt: skip
def test_a_name_as_a_profiler_writes_it_is_kept(name: str) -> None:
    assert prose_findings([name]) == ()


@pytest.mark.parametrize(
    "name",
    [
        "the kernel void aiter::k<int>(int*)", "void aiter::k<int>(int*) which is slow",
        "please label aiter::k", "kernel aiter::k<int>(int)", "_fwd_kernel and others",
    ],
)  # fmt: skip
def test_a_sentence_around_a_name_is_no_kernel(name: str) -> None:
    (finding,) = prose_findings([NAME, name])
    assert (finding.code, finding.severity) == ("E_NO_KERNEL_MATCHED", "error")
