"""The built-in rules on the real names and traces beside the checkout."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

from agent.core.kernels import KernelName, Signature
from agent.core.rules import LabelledTrace
from agent.ruleset.codec import load_builtin
from agent.ruleset.match import Matcher, label_trace
from agent.traces.reader import read_trace

RULESET = load_builtin()
ARGUED = {
    # name or its beginning -> (category on file, ours); each is argued in a decision note
    "set_mla_kv_buffer_fp8_quant_kernel": ("CastToFP8", "KVCacheWrite"),  # 0041
    "kernel.kd": ("Misc", "Unlabelled"),  # 0042
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::float8_copy_kernel_cuda("
    "at::TensorIteratorBase &)::[lambda(c10::BFloat16) (instance 5)]": (
        "CastToFP8",
        "Quant",
    ),  # 0041
}
MAX_UNLABELLED = 0.02
TRACES = (
    "flux_aiter_mi300.json.gz",
    "flux_aiter_sage_mi300.json.gz",
    "gpu_only_mi210.json.gz",
    "lightllm_dsv3_decode_h200",
    "mixtral_mi300_rank0.rpd",
    "qwen15_h100.json.gz",
    "qwen15_mi300.json.gz",
    "resnet_act_checkpoint_mi300.json.gz",
    "rocprofv3_kernel_stats_decode_mi350.csv",
    "rocprofv3_kernel_trace_mi350.csv",
    "rocprofv3_results.json.gz",
    "sglang_dense_decode_b300.json.gz",
    "sglang_dense_decode_mi300.json.gz",
    "sglang_dsv3_decode_h200",
    "sglang_qwen3_8b_prefill_decode_mi300.json.gz",
    "vllm_gptoss_piecewise_mi300.json.gz",
)
FAMILIES = (
    # what a person says of the kernels that make up the time of the sample traces; the first
    # text found in the name decides
    ("triton_red_fused_bmm", "GEMM"),
    ("native_layer_norm", "LayerNorm"),
    ("pow_rsqrt", "RMSNorm"),
    ("triton_poi_", "Elementwise"),
    ("ncclDevKernel", "Comm"),
    ("deep_ep::", "Comm"),
    ("ShotAllReduceKernel", "Comm"),
    ("GemmType)2", "MoEGEMM"),
    ("GemmType)0", "GEMM"),
    ("_matmul_ogs_", "MoEGEMM"),
    ("mfma_moe", "MoEGEMM"),
    ("Cijk_", "GEMM"),
    ("nvjet_", "GEMM"),
    ("xmma_gemm", "GEMM"),
    ("igemm_", "GEMM"),
    ("_conv_", "GEMM"),
    ("conv_fwd", "GEMM"),
    ("bwd_weight", "GEMM"),
    ("wvSplitK", "GEMM"),
    ("gemm_", "GEMM"),
    ("_gemm", "GEMM"),
    ("splitKreduce", "GEMM"),
    ("BatchMLA", "MLA"),
    ("paged_attention", "Attention"),
    ("Fmha", "Attention"),
    ("fmha", "Attention"),
    ("flash_fwd", "Attention"),
    ("attn_fwd", "Attention"),
    ("sage_fwd", "Attention"),
    ("kernel_unified_attention", "Attention"),
    ("norm_quant_kernel", "RMSNorm"),
    ("Rmsnorm2dFwd", "RMSNorm"),
    ("RMSNorm", "RMSNorm"),
    ("_rms_norm", "RMSNorm"),
    ("batch_norm", "LayerNorm"),
    ("MoeSorting", "MoESorting"),
    ("moe_sort", "MoESorting"),
    ("topk", "TopK"),
    ("act_and_mul", "ActMul"),
    ("and_mul", "ActMul"),
    ("rotary", "RoPE"),
    ("rope_kernel", "RoPE"),
    ("reshape_and_cache", "KVCacheWrite"),
    ("store_kvcache", "KVCacheWrite"),
    ("quant", "Quant"),
    ("rocclr", "Memcpy"),
    ("CatArray", "Elementwise"),
    ("elementwise_kernel", "Elementwise"),
    ("batched_transpose", "Elementwise"),
    ("SubTensorOp", "Elementwise"),
    ("reduce_kernel", "ReduceOP"),
    ("_finalize_matmul", "ReduceOP"),
    ("max_pool", "Misc"),
)


@cache
def _labelled(path: Path) -> LabelledTrace:
    return label_trace(read_trace([path]), RULESET)


@pytest.mark.parametrize("name", TRACES)
def test_hardly_any_time_is_unlabelled(shared: Path, name: str) -> None:
    coverage = _labelled(shared / "traces" / name).coverage
    assert coverage.unlabelled <= MAX_UNLABELLED * coverage.total


@pytest.mark.parametrize("name", TRACES)
def test_the_kernels_that_matter_have_the_category_a_person_gives(shared: Path, name: str) -> None:
    labelled = _labelled(shared / "traces" / name)
    left = 0.95 * labelled.trace.kernel_ns
    wrong = {}
    for signature, stats in sorted(labelled.stats.items(), key=lambda item: -item[1].time_ns):
        if left <= 0:
            break
        left -= stats.time_ns
        expected = next((found for text, found in FAMILIES if text in signature.name), None)
        if expected is not None and labelled.labels[signature].category != expected:
            wrong[signature.name] = (expected, labelled.labels[signature].category)
    assert wrong == {}


def test_every_known_name_gets_its_category(shared: Path) -> None:
    matcher, wrong = Matcher(RULESET), {}
    with (shared / "truth" / "kernel_names.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            got = matcher.label(Signature(KernelName(row["kernel_name"]))).category
            if got != row["category"]:
                wrong[row["kernel_name"]] = (row["category"], got)
    assert {_argued(name): pair for name, pair in wrong.items()} == ARGUED


def test_every_known_source_gets_its_category(shared: Path) -> None:
    """All but the rows a later list revised: copies by the runtime, and what 0045 argues."""
    revised = {"_causal_conv1d_update_kernel.kd", "__amd_rocclr_copyBuffer.kd"}
    matcher, wrong = Matcher(RULESET), {}
    with (shared / "truth" / "kernel_to_source.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            name, expected = row["kernel name"], row["category"]
            if expected == "CastFromFP8" or name in revised or name.startswith("Memcpy "):
                continue  # a cast is told by dtypes, not by its name
            got = matcher.label(Signature(KernelName(name))).category
            if got != expected:
                wrong[name] = (expected, got)
    assert wrong == {}


def _argued(name: str) -> str:
    return next((known for known in ARGUED if name.startswith(known)), name)
