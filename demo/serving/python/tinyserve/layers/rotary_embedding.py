"""Rotary position embedding, in place."""

import triton
import triton.language as tl


@triton.jit
def _rotate_pairs_inplace(
    x_ptr,
    cos_sin_ptr,
    position_ptr,
    n_heads,
    HEAD_DIM: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0)
    head = tl.program_id(1)
    position = tl.load(position_ptr + token)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < HEAD_DIM // 2
    row = x_ptr + (token * n_heads + head) * HEAD_DIM
    first = tl.load(row + offsets, mask=mask)
    second = tl.load(row + HEAD_DIM // 2 + offsets, mask=mask)
    cos = tl.load(cos_sin_ptr + position * HEAD_DIM + offsets, mask=mask)
    sin = tl.load(cos_sin_ptr + position * HEAD_DIM + HEAD_DIM // 2 + offsets, mask=mask)
    tl.store(row + offsets, first * cos - second * sin, mask=mask)
    tl.store(row + HEAD_DIM // 2 + offsets, second * cos + first * sin, mask=mask)


def rotate_query_and_key(x, positions, cos_sin):
    n_tokens, n_heads, head_dim = x.shape
    block = triton.next_power_of_2(head_dim // 2)
    _rotate_pairs_inplace[(n_tokens, n_heads)](
        x,
        cos_sin,
        positions,
        n_heads,
        HEAD_DIM=head_dim,
        BLOCK=block,
    )
