"""Categories told by the words of a name: what the offline proposer goes by.

Words decide only where all of them point one way. A fused kernel counts for the category that the
vocabulary gives it (`RMSNorm` is "also fused"); any other mix of categories is left undecided, and
so is a name with a word for something that its category does not do (`get_mla_kv_buffer`).
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
        (
            "MoEGEMM",
            r"_moe_(?:\w+_)?gemm\d?_|_group(?:ed)?_(?:gemm|matmul|bmm|mm)_|_fused_moe_|_moe_stage\d_",
        ),
        ("MoEGEMM", r"_matmul_ogs_"),
        ("GEMM", r"_(?:gemm|matmul|bmm|gemv|splitk|mm)_"),
        ("MLA", r"_mla_|_latent_(?:attn|attention|dec|decode|prefill|fwd)_"),
        ("Attention", r"_(?:attn|attention|fmha|mha|gqa|flash|paged)_"),
        ("LinearAttn", r"_(?:mamba2?|ssm|ssd|gdn|kda|delta_rule|gated_delta|retention|rwkv\d?)_"),
        ("LinearAttn", r"_gated_(?:\w+_)?(?:rms|rms_?norm|layer_?norm)_"),
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
        ("RoPE", r"_(?:[myd]?rope|rotary)_|_rotate_(?:half|pairs?|every_two|query|neox|gptj)_"),
        (
            "ActMul",
            r"_(?:silu|gelu|swiglu|geglu|act)_(?:\w+_)?mul_|_act_and_mul_|_swi_?glu_|_geglu_",
        ),
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
}
"""What a category takes in: both words in one name still mean the first."""

_BESIDE: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (word, frozenset(agreeing.split()))
    for words, agreeing in (
        ("copy memcpy get gather fetch load", "Memcpy Comm"),
        ("store write scatter append insert set save", "KVCacheWrite Comm"),
        ("concat cat pad unpad transpose interleave shuffle swizzle convert pack repack", ""),
        ("permute unpermute sort sorted sorting align", "MoESorting"),
        ("cast", "CastToFP8 CastFromFP8"),
        ("reduce sum mean finalize combine merge splitk seg segment segments", "Comm"),
        ("norm", "RMSNorm LayerNorm LinearAttn"),
        ("kv", "KVCacheWrite Attention MLA CastToFP8 Metadata"),
        ("cache", "KVCacheWrite CastToFP8"),
        ("topk top", "TopK Sampling"),
        ("gated", "LinearAttn ActMul TopK"),
        ("chunk", "LinearAttn Attention MLA"),
        ("stage1 stage2 stage", "Attention MLA MoEGEMM"),
        ("rank ranks peer", "Comm"),
        ("only", ""),
        ("schedule scheduler plan lut mask starts prepare precompute track", "Metadata"),
        ("compute init state states", "Metadata LinearAttn"),
        ("offset offsets indices ids counts", "Metadata MoESorting"),
    )
    for word in words.split()
)
"""Words that tell of something else than a category does, with the categories they fit."""


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


def told_by(names: Iterable[str], places: Iterable[str] = ()) -> frozenset[str]:
    """Give the categories that names and places point to; one alone is a decision.

    Words of a name that do not fit them are given too, in quotes.
    """
    names = tuple(names)
    every = frozenset().union(*map(clues, (*names, *places)))
    hidden = frozenset().union(*(_WITHIN.get(category, frozenset()) for category in every))
    found = every - hidden
    words = frozenset().union(*(words_of(name).strip("_").split("_") for name in names))
    beside = (word for word, fits in _BESIDE if word in words and found - fits)
    return found | {f'"{word}"' for word in beside}
