"""Latent attention over a paged KV cache."""

import torch

from tinyserve.layers.rotary_embedding import rotate_query_and_key
from tinyserve.ops.mla import latent_decode_fwd

fp8_dtype = torch.float8_e4m3fnuz


class LatentAttentionBackend:
    """Prefill reads the cache in BF16; decode reads it in whatever dtype it is stored."""

    def __init__(self, runner, kv_cache_dtype):
        self.runner = runner
        self.kv_cache_dtype = kv_cache_dtype
        self.page_size = runner.page_size

    def forward_extend(self, q, kv_pool, layer, positions, page_table):
        rotate_query_and_key(q, positions, layer.rotary_cos_sin)
        latent = kv_pool.get_key_buffer(layer.layer_id)
        latent = latent[page_table]
        if self.kv_cache_dtype == fp8_dtype:
            # The prefill kernel has no FP8 variant, so the whole prefix is widened first.
            latent = latent.to(q.dtype)
        k_nope, k_pe = latent.split([layer.kv_lora_rank, layer.rope_dim], dim=-1)
        return layer.prefill(q, k_nope, k_pe)

    def forward_decode(self, q, kv_pool, layer, positions, page_table):
        rotate_query_and_key(q, positions, layer.rotary_cos_sin)
        latent = kv_pool.get_key_buffer(layer.layer_id)
        out = torch.empty_like(q)
        latent_decode_fwd(q, latent, out, page_table, layer.scaling)
        return out
