"""The vocabulary a rule file begins with; a rule file may declare more, in review."""

from __future__ import annotations

VOCABULARY: tuple[tuple[str, str, str], ...] = (
    # id, title, row it folds into with --rollup
    ("MoEGEMM", "Grouped GEMM of the experts", "MoEGEMM"),
    ("MoESorting", "Sorting and aligning tokens by expert", "MoESorting"),
    ("TopK", "Expert routing: gating and top-k", "TopK"),
    ("GEMM", "Dense matrix multiplication", "GEMM"),
    ("MLA", "Multi-head latent attention", "MLA"),
    ("Attention", "Attention other than MLA", "Others"),
    ("LinearAttn", "Linear attention and state-space models", "Others"),
    ("KVCacheWrite", "Writing keys and values into the KV cache", "KVCacheWrite"),
    ("CastFromFP8", "FP8 -> BF16 cast on the KV read path", "CastFromFP8"),
    ("CastToFP8", "BF16 -> FP8 cast on the KV write path", "CastToFP8"),
    ("Quant", "Quantising activations and weights", "Quant"),
    ("RMSNorm", "RMS normalisation, also fused", "RMSNorm"),
    ("LayerNorm", "Layer, group and batch normalisation", "Others"),
    ("RoPE", "Rotary position embedding", "Others"),
    ("ActMul", "Activation with gating", "ActMul"),
    ("Elementwise", "Elementwise and copy kernels", "Elementwise"),
    ("ReduceOP", "Reductions", "ReduceOP"),
    ("Comm", "Communication between devices", "Comm"),
    ("Sampling", "Sampling tokens from logits", "Others"),
    ("Metadata", "Bookkeeping of the scheduler and of attention", "Others"),
    ("Memcpy", "Copies and fills by the runtime", "Others"),
    ("Misc", "Known, and none of the above", "Others"),
)
