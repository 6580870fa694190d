"""Categories told by the words of a name: what the offline proposer goes by.

Words decide only where all of them point one way. A fused kernel counts for the category that the
vocabulary gives it (`RMSNorm` is "also fused"); any other mix of categories is left undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")

_CLUES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (category, re.compile(pattern))
    for category, pattern in (
        ("MoESorting", r"_(?:moe|expert)s?_(?:\w+_)?(?:sort|sorting|align|permute|unpermute)_"),
        ("MoESorting", r"_(?:moe_align_block_size|expert_offsets?|sorted_token_ids)_"),
        (
            "TopK",
            r"_top_?k_(?:gat|softmax|sigmoid|rout|select|weight)|_(?:expert|moe)_gat(?:e|ing)_",
        ),
        ("TopK", r"_(?:grouped|biased|moe|expert|fused|hash)_top_?k_|_moe_fused_gate_|_router_"),
        ("MoESorting", r"_routing_(?:\w+_)?(?:indices|offsets|histogram)_"),
        ("MoEGEMM", r"_moe_(?:\w+_)?gemm\d?_|_(?:grouped|group)_gemm_|_fused_moe_|_moe_stage\d_"),
        ("MoEGEMM", r"_matmul_ogs_"),
        ("GEMM", r"_(?:gemm|matmul|bmm|gemv|splitk|mm)_"),
        ("MLA", r"_mla_|_latent_(?:attn|attention|dec|decode|prefill|fwd)_"),
        ("Attention", r"_(?:attn|attention|fmha|mha|gqa|flash|paged)_"),
        ("LinearAttn", r"_(?:mamba2?|ssm|ssd|gdn|kda|delta_rule|gated_delta|retention|rwkv\d?)_"),
        (
            "LinearAttn",
            r"_norm_gated_|_(?:linear_attn|linear_attention|lightning_attn|causal_conv1d)_",
        ),
        ("KVCacheWrite", r"_(?:reshape_and_cache|store_kv_?cache|set_kv_?buffer|set_mla_kv)_"),
        ("KVCacheWrite", r"_(?:write|store|set|scatter|append|insert|save)_(?:\w+_)?kv_?_?cache_"),
        ("KVCacheWrite", r"_(?:k|v|kv)_?cache_"),
        ("Quant", r"_(?:quant|quantize|quantise|dequant|dequantize|requant)_"),
        ("RMSNorm", r"_(?:rms_norm|rmsnorm|rms|add_rmsnorm)_"),
        ("LayerNorm", r"_(?:layer_norm|layernorm|group_norm|groupnorm|batch_norm)_"),
        ("RoPE", r"_(?:[myd]?rope|rotary|rotary_emb|rotary_embedding)_"),
        (
            "ActMul",
            r"_(?:silu|gelu|swiglu|geglu|act)_(?:\w+_)?mul_|_act_and_mul_|_swi_?glu_|_geglu_",
        ),
        ("ReduceOP", r"(?<!all)_reduce_(?!scatter)"),
        ("CastToFP8", r"_(?:mx)?fp8_(?:\w+_)?cache_"),
        (
            "Comm",
            r"_cross_device_|_(?:all_?reduce|all_?gather|reduce_scatter|all_?to_?all|all2all|broadcast)_",
        ),
        ("Sampling", r"_(?:sampling|sample|sampler|top_p|min_p|penalty|penalties|logits_proc\w*)_"),
        ("Metadata", r"_(?:metadata|kv_indices|kv_indptr|req_to_token|page_table|block_table)_"),
        ("Metadata", r"_(?:seq_?lens?|positions?|last_loc|out_cache_loc|cu_seqlens?|indptr)_"),
    )
)
_WITHIN = {
    "RMSNorm": frozenset({"Quant", "GEMM"}),
    "MoEGEMM": frozenset({"GEMM", "Quant"}),
    "MLA": frozenset({"Attention"}),
    "LinearAttn": frozenset({"Attention"}),
    "Comm": frozenset({"ReduceOP"}),
}
"""What a category takes in: both words in one name still mean the first."""


def words_of(text: str) -> str:
    """Give the words of a name in lower case, each between underscores."""
    parts = _NOT_WORD.sub("_", _CAMEL.sub("_", text)).strip("_").lower()
    return f"_{parts}_"


def clues(text: str) -> frozenset[str]:
    """Give every category that the words of one text point to."""
    words = words_of(text)
    found = {category for category, pattern in _CLUES if pattern.search(words)}
    for whole, parts in _WITHIN.items():
        if whole in found:
            found -= parts
    return frozenset(found)


def told_by(texts: Iterable[str]) -> frozenset[str]:
    """Give the categories that any of several texts point to; one alone is a decision."""
    found = frozenset().union(*map(clues, texts))
    hidden = frozenset().union(*(_WITHIN.get(category, frozenset()) for category in found))
    return found - hidden
