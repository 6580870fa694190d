"""Runs batches: prefill for new requests, decode for the others."""

from tinyserve.layers.attention_backend import LatentAttentionBackend
from tinyserve.mem_cache.memory_pool import LatentKVPool


class ModelRunner:
    """Owns the cache and the attention backend of one rank."""

    def __init__(self, config):
        self.page_size = config.page_size
        self.kv_pool = LatentKVPool(
            config.cache_tokens, config.latent_dim, config.n_layers, config.kv_cache_dtype
        )
        self.attn_backend = LatentAttentionBackend(self, config.kv_cache_dtype)

    def forward(self, layer, batch):
        q, latent = layer.project(batch.hidden)
        self.kv_pool.set_kv_buffer(layer.layer_id, batch.slots, latent)
        if batch.is_prefill:
            out = self.attn_backend.forward_extend(
                q, self.kv_pool, layer, batch.positions, batch.page_table
            )
        else:
            out = self.attn_backend.forward_decode(
                q, self.kv_pool, layer, batch.positions, batch.page_table
            )
        weights, experts = layer.gate.forward(out)
        return layer.experts(out, weights, experts)
