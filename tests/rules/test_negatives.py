"""Names that must not get the category they look like, and names nobody knows."""

from __future__ import annotations

import pytest

from agent.core.kernels import KernelName, Signature
from agent.ruleset.codec import load_builtin
from agent.ruleset.match import Matcher

MATCHER = Matcher(load_builtin())

COPY_BF16 = (
    "void at::native::elementwise_kernel_manual_unroll<128, {unroll}, at::native::{impl}<"
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#3}}::operator()() "
    "const::{{lambda()#12}}::operator()() const::{{lambda(c10::BFloat16)#1}}>("
    "at::TensorIteratorBase&)::{{lambda(int, bool)#1}}>(int)"
)
CAST = COPY_BF16.format(unroll=4, impl="gpu_kernel_impl")
NO_CAST = COPY_BF16.format(unroll=8, impl="gpu_kernel_impl_nocast")
BF16, FP8 = "c10::BFloat16", "c10::Float8_e4m3fnuz"


def _float8(source: str, number: int) -> str:
    return (
        "void at::native::vectorized_elementwise_kernel<4, at::native::float8_copy_kernel_cuda("
        f"at::TensorIteratorBase&)::{{lambda({source})#{number}}}, std::array<char*, 2ul> >(int)"
    )


def _label(name: str, op: str = "", dtypes: tuple[str, ...] = ()) -> str:
    return str(MATCHER.label(Signature(KernelName(name), op, dtypes)).category)


@pytest.mark.parametrize(
    ("name", "op", "dtypes", "category"),
    [
        pytest.param(CAST, "aten::copy_", (BF16, FP8), "CastFromFP8", id="dtypes say it reads FP8"),
        pytest.param(CAST, "aten::copy_", (BF16, "float"), "Elementwise", id="from float"),
        pytest.param(CAST, "", (), "Elementwise", id="no op: the direction is unresolved"),
        pytest.param(CAST, "aten::to", (BF16, FP8), "Elementwise", id="not the innermost op"),
        pytest.param(NO_CAST, "aten::copy_", (BF16, BF16), "Elementwise", id="nocast BF16 copy"),
        pytest.param(NO_CAST, "", (), "Elementwise", id="nocast under replay"),
        pytest.param(_float8(BF16, 1), "", (), "CastToFP8", id="e4m3fn by name"),
        pytest.param(_float8(BF16, 3), "", (), "CastToFP8", id="e4m3fnuz by name"),
        pytest.param(_float8(BF16, 5), "", (), "Quant", id="e8m0 is a scale"),
        pytest.param(_float8("c10::Float8_e5m2", 1), "", (), "Elementwise", id="FP8 to FP8"),
    ],
)
def test_the_direction_of_a_cast(
    name: str, op: str, dtypes: tuple[str, ...], category: str
) -> None:
    assert _label(name, op, dtypes) == category


@pytest.mark.parametrize(
    ("name", "category"),
    [
        (
            "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, unsigned char, (int)1>(int)",
            "KVCacheWrite",
        ),
        ("set_mla_kv_buffer_fp8_quant_kernel", "KVCacheWrite"),
        ("_fused_qk_rope_cat_and_cache_mla_kernel", "KVCacheWrite"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "Comm"),
        ("void aiter::cross_device_reduce_2stage<std::bfloat16_t, 8, false>(int)", "Comm"),
        ("_ZN5aiter26cross_device_reduce_2stageIDF16bLi8ELb0EEEvPNS_8RankDataE", "Comm"),
        ("void kn_mla_reduce_v1<MlaReduceKernelV1Traits<512, 128, 1>, float, float>(int)", "MLA"),
        (
            "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128>(int)",
            "Attention",
        ),
        ("moe_gemm1_0", "MoEGEMM"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi8EEEvPT0_", "RMSNorm"),
        ("void vllm::moe::topkGatingSoftmax<float, int, 8>(float const*)", "TopK"),
        ("_fused_qk_rope_reshape_and_cache_kernel", "KVCacheWrite"),
        ("void splitk_reduce_kernel<16, 64, std::bfloat16_t>(int)", "GEMM"),
        ("void wvSpltK_hf_<__half, 64, 2, 16, 8>(int)", "GEMM"),
        ("void wvSplitK_hf_<__half, 64, 2, 16, 8>(int)", "GEMM"),
    ],
)
def test_the_order_of_the_rules_decides(name: str, category: str) -> None:
    assert _label(name) == category


@pytest.mark.parametrize(
    "name",
    [
        "opaque_device_fn_q7_v3",
        "k",
        "kernel",
        "kernel.kd",
        "main_kernel",
        "my_kernel",
        "kernel0",
        "Kernel",
        "run",
        "compute",
        "void foo<int>(int)",
        "void ns::bar(float*)",
        "_kernel",
        "triton_",
        "reduce",
        "forward",
        "void cutlass::device_kernel<int>(int)",
        "_ZN3foo3barEv",
        "dummy_kernel",
        "helloworld",
        "quantum_leap",
        "attnum",
        "europe",
        "explanation_kernel",
        "",
        " ",
    ],
)
def test_a_name_nobody_knows_is_unlabelled(name: str) -> None:
    assert _label(name) == "Unlabelled"
