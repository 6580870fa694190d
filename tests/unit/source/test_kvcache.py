"""What counts as keys and values of a cache, and which condition decides a cast."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from agent.source.parse import TreeCache
from agent.source.python.casts import Cast, read_cast
from agent.source.python.kvcache import decides
from agent.source.python.sites import sites_named
from agent.source.snapshot import SourceFile

BACKEND = "python/engine/layers/attention/backend.py"


def cast_of(body: str, *, owner: str = "Backend", path: str = BACKEND) -> Cast:
    """Read the last `.to(…)` of a method body."""
    text = f"class {owner}:\n    def method(self, q, x, cache_k, latent, pool):\n"
    text += indent(dedent(body).strip("\n"), " " * 8) + "\n"
    file = SourceFile("engine", path, f"{path}:{text}", text.encode())
    *_, site = sites_named(file, TreeCache(), "to")
    cast = read_cast(site, path)
    assert cast is not None
    return cast


@pytest.mark.parametrize(
    "body",
    [
        "k_cache.to(q.dtype)",
        "self.kv_buffer[layer].to(q.dtype)",
        "pool.get_key_buffer(3).to(q.dtype)",
        "latent = pool.get_key_buffer(3)\nlatent = latent[rows]\nlatent.to(q.dtype)",
        "all = K_Buffer[rows]\nc, k_pe = torch.split(all, [1, 2])\nk_pe.to(q.dtype)",
        "all = torch.index_select(K_Buffer, 0, rows)\nall.to(q.dtype)",
        "if self.kv_cache_dtype == fp8_dtype:\n    k_pe.to(q.dtype)",
        "k_cache.view(-1, 64).to(torch.bfloat16)",
    ],
)
def test_what_is_read_from_a_cache_is_on_the_kv_path(body: str) -> None:
    cast = cast_of(body)
    assert (cast.on_kv_path, cast.direction) == (True, "from")


@pytest.mark.parametrize(
    "body",
    [
        "self.cos_sin_cache.to(q.dtype)",
        "cos_sin_cache[rows, :half].to(q.dtype)",
        "self.k_scale_cache.to(q.dtype)",
        "encoder_cache.to(q.dtype)",
        "torch.cat((self.cos_sin_cache, rows), dim=0).to(dtype=q.dtype)",
        "self._visual_token_ids_cache.to(q.dtype)",
        "kv_indices.to(q.dtype)",
        "(latents.float() - noise).to(latents.dtype)",
        "self.vae.to(device=there, dtype=wide)",
        "latents.to(q.dtype)",
        "k_pe.to(q.dtype)",
        "k_pe = self.rope(x)\nk_pe.to(q.dtype)",
        "latent.to(self.dtype)",
        "x.to(k_cache_scale.dtype)",
    ],
)
def test_what_is_only_called_a_cache_is_not(body: str) -> None:
    assert not cast_of(body).on_kv_path


@pytest.mark.parametrize(
    "path",
    ["python/engine/multimodal_gen/stages/denoise.py", "engine/models/vaes/decoder.py",
     "engine/diffusion/attention.py", "engine/encoders/vision.py"],
)  # fmt: skip
def test_models_of_images_have_no_kv_cache(path: str) -> None:
    assert not cast_of("k_cache.to(q.dtype)", path=path).on_kv_path


def test_a_pool_writes_its_own_dtype() -> None:
    written = cast_of("latent.to(self.dtype)", owner="LatentKVPool")
    assert (written.on_kv_path, written.direction) == (True, "to")
    assert not cast_of("token_ids.to(self.dtype)", owner="LatentKVPool").on_kv_path
    assert not cast_of("cos_sin.to(self.dtype)", owner="LatentKVPool").on_kv_path


@pytest.mark.parametrize(
    ("guard", "reads", "writes"),
    [
        ("+self.kv_cache_dtype == fp8_dtype", True, True),
        ("-self.kv_cache_dtype != fp8_dtype", True, True),
        ("+is_fp8_kv_cache", True, True),
        ("+self.kv_cache_dtype != fp8_dtype", False, True),
        ("+cache_k.dtype != self.dtype", True, True),
        ("-cache_k.dtype == self.dtype", True, True),
        ("+k_cache.dtype != q.dtype", True, True),
        ("+cache_k.dtype == self.dtype", False, False),
        ("+cos_sin_cache.dtype != q.dtype", False, False),
        ("+q.dtype != x.dtype", False, False),
        ("+layer.qk_head_dim != kv_lora_rank + qk_rope_head_dim", False, False),
        ("+dv % tile_size == 0", False, False),
        ("-max_pages <= 0", False, False),
        ("+k_nope.dtype == torch.bfloat16", False, False),
        ("+self.use_mla", False, False),
    ],
)
def test_only_a_test_of_the_cache_s_dtype_decides(guard: str, *, reads: bool, writes: bool) -> None:
    assert (decides(guard, "from"), decides(guard, "to")) == (reads, writes)
