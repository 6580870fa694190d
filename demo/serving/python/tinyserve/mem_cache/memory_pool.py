"""The paged KV cache."""

import torch


class LatentKVPool:
    """One latent vector a token and layer, stored in the cache's own dtype."""

    def __init__(self, size, dim, n_layers, dtype):
        self.dtype = dtype
        self.store_dtype = torch.uint8 if dtype == torch.float8_e4m3fnuz else dtype
        self.kv_buffer = [torch.zeros(size, dim, dtype=self.store_dtype) for _ in range(n_layers)]

    def get_key_buffer(self, layer_id):
        if self.store_dtype != self.dtype:
            return self.kv_buffer[layer_id].view(self.dtype)
        return self.kv_buffer[layer_id]

    def set_kv_buffer(self, layer_id, slots, latent):
        if latent.dtype != self.dtype:
            latent = latent.to(self.dtype)
        if self.store_dtype != self.dtype:
            latent = latent.view(self.store_dtype)
        self.kv_buffer[layer_id][slots] = latent
