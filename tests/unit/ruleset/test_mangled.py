"""A mangled name that a tool cut short: read as far as it goes, in time linear in its length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.ruleset.codec import load_builtin
from agent.ruleset.mangled import read_cut
from agent.ruleset.match import Matcher, Pattern
from tests.builders import signature

CUT = {
    "_ZN7ck_tile6kentryILi1ENS_14Layernorm2dFwdINS_29Layernorm2dFwdPipelineOnePassINS_29Layern": (
        "LayerNorm",
        "ck_tile::kentry<ck_tile::Layernorm2dFwd<ck_tile::Layernorm2dFwdPipelineOnePass<ck_tile::Layern",
    ),
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0EL": (
        "RMSNorm",
        "aiter::add_rmsnorm_quant_kernel<",
    ),
    "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupl...": (
        "GEMM",
        "cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute",
    ),
    "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3": (
        "ActMul",
        "sgl_hip::activation::act_and_mul_kernel<__hip_bfloat16, silu<",
    ),
    "_ZN2ck12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_34Gridwise": (
        "GEMM",
        "ck::(anonymous namespace)::kernel_grouped_conv_fwd_xdl_cshuffle_v3<ck::Gridwise",
    ),
}


@pytest.mark.parametrize("name", CUT)
def test_a_cut_name_is_read_as_far_as_it_goes_and_labelled(name: str) -> None:
    label, written = CUT[name]
    assert read_cut(name) == written
    assert Matcher(load_builtin()).label(signature(name)).category == label


@pytest.mark.parametrize("name", ["", "_Z", "_Z9", "_Z0", "_Z99999a", "_ZN5aiter", "_Z3a b", "x"])
def test_where_nothing_reads_the_name_stands_as_it_is(name: str) -> None:
    assert "<" not in read_cut(name)
    assert Pattern("^" + name + "$").found_in(name)


def test_a_whole_mangled_name_is_demangled_and_not_read() -> None:
    assert Pattern(r"^void ns::kernel<float>\(float\)$").found_in("_ZN2ns6kernelIfEEvT_")
    assert not Pattern("^ns::kernel<").found_in("_ZN2ns6kernelIfEEvT_")


@given(st.text(alphabet="_ZNIESLKPR0123456789abi", max_size=2_000))
def test_what_is_read_stays_small(rest: str) -> None:
    assert len(read_cut("_Z" + rest)) <= 10_000
