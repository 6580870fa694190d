"""Latent decode attention, assembled by hand for each architecture."""

import torch

from tinyserve.ops.loader import compile_ops


@compile_ops("module_mla_asm")
def latent_decode_stage1_asm_fwd(q, kv, out, page_table, scaling): ...


def latent_decode_fwd(q, kv, out, page_table, scaling):
    splits = torch.empty(q.shape[0], 16, q.shape[-1], dtype=torch.float32)
    latent_decode_stage1_asm_fwd(q, kv, splits, page_table, scaling)
    torch.sum(splits, dim=1, out=out)
    return out
