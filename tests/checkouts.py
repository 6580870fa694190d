"""Scratch checkouts with the layouts of a serving engine and a kernel library, written for tests."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

File = str | bytes


def git(folder: Path, *arguments: str, **extra: str) -> str:
    """Run git with a fixed identity and date; gives its output without the last line end."""
    names = {"NAME": "Ada Tester", "EMAIL": "ada@example.invalid", "DATE": "2026-01-01T00:00:00Z"}
    identity = {
        f"GIT_{role}_{key}": text for role in ("AUTHOR", "COMMITTER") for key, text in names.items()
    }
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "init.defaultBranch=main", *arguments],
        check=True,
        capture_output=True,
        env={**os.environ, **identity, **extra},
    )
    return done.stdout.decode().rstrip("\n")


def write_tree(folder: Path, files: Mapping[str, File]) -> Path:
    """Write files below a folder, making folders as needed."""
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            target.write_text(content, encoding="utf-8", newline="")
    return folder


def commit_tree(folder: Path, files: Mapping[str, File], message: str = "change") -> str:
    """Write files and commit all of them; makes the repository when there is none. Gives the id."""
    write_tree(folder, files)
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def line_of(text: str, part: str, nth: int = 1) -> int:
    """Give the 1-based number of the nth line that holds `part`."""
    found = [number for number, line in enumerate(text.split("\n"), 1) if part in line]
    return found[nth - 1]


def elf_with(*symbols: str, wide: bool = True) -> bytes:
    """Build a small ELF file whose symbol table has these names."""
    strings = b"\x00" + b"".join(symbol.encode() + b"\x00" for symbol in symbols)
    offsets, at = [], 1
    for symbol in symbols:
        offsets.append(at)
        at += len(symbol.encode()) + 1
    entry, head, section = (24, 64, 64) if wide else (16, 52, 40)
    table = b"\x00" * entry
    for offset in offsets:
        table += struct.pack("<I", offset) + b"\x00" * (entry - 4)
    body = table + strings
    start = head + len(body)
    layout = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
    sections = struct.pack(layout, *([0] * 10))
    sections += struct.pack(layout, 0, 2, 0, 0, head, len(table), 2, 0, 0, entry)
    sections += struct.pack(layout, 0, 3, 0, 0, head + len(table), len(strings), 0, 0, 0, 0)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + b"\x00" * 9
    if wide:
        rest = struct.pack("<HHIQQQIHHHHHH", 1, 224, 1, 0, 0, start, 0, head, 0, 0, section, 3, 2)
    else:
        rest = struct.pack("<HHIIIIIHHHHHH", 1, 224, 1, 0, 0, start, 0, head, 0, 0, section, 3, 2)
    return ident + rest + body + sections


BACKEND = dedent('''\
    """Attention backend of the look-alike engine."""

    import torch
    from kernlib.mla import mla_decode_fwd

    from engine.srt.layers.attention.utils import fill_indices_kernel
    from engine.srt.layers.quantization.fp8 import fp8_dtype
    from engine.srt.utils import get_bool_env_var, is_cuda, is_gfx95_supported, is_hip

    _is_hip = is_hip()
    _is_cuda = is_cuda()
    _use_fp8_prefill = get_bool_env_var("ENGINE_FP8_PREFILL", "True") and is_gfx95_supported()


    class AiterAttnBackend(AttentionBackend):
        def _prefill_fp8(self, q, k, v):
            if k_cache.dtype != fp8_dtype:
                k_cache = k_cache.to(fp8_dtype)
            return run_prefill(q, k, v)

        def forward_extend(self, q, k, v, layer, forward_batch):
            if self.use_mla:
                if layer.qk_head_dim != self.lora_rank + self.rope_dim:
                    kvc, k_pe = torch.split(self.buffer, [self.lora_rank, self.rope_dim], dim=-1)

                    if self.kv_cache_dtype == fp8_dtype:
                        dtype = q.dtype

                        kvc = kvc.to(dtype)
                        k_pe = k_pe.to(dtype)

                    if _use_fp8_prefill:
                        return self._prefill_fp8(q, kvc, k_pe)
                    return self.attend(q, kvc, k_pe)
                else:
                    raise ValueError("unsupported head size")
            k_cache, v_cache = forward_batch.pool.get_kv_buffer(layer.layer_id)
            # needed until the kernel takes FP8
            if self.kv_cache_dtype == fp8_dtype:
                dtype = q.dtype
                k_cache = k_cache.to(dtype)
                v_cache = v_cache.to(dtype)
            kv_cpu = k_cache.to("cpu", non_blocking=True)
            w = self.w_kc.to(torch.bfloat16) * self.w_scale
            return self.attend(q, k_cache, v_cache)

        def forward_decode(self, q, k, v, layer, forward_batch):
            fill_indices_kernel[(forward_batch.batch_size,)](
                self.req_to_token,
                forward_batch.seq_lens,
            )
            # mla_decode_fwd(q, k) was here
            logger.info("calling mla_decode_fwd now")
            if self.use_mla:
                mla_decode_fwd(
                    q.view(-1, layer.heads, layer.dim),
                    forward_batch.pool.get_key_buffer(layer.layer_id),
                )
            return q


    def create_backend(runner):
        return AiterAttnBackend(runner)
    ''')

UTILS = dedent('''\
    import triton
    import triton.language as tl


    @triton.jit
    def tanh(x):
        return 2 * tl.sigmoid(2 * x) - 1


    @triton.jit
    def fill_indices_kernel(
        req_to_token_ptr,
        seq_lens_ptr,
        BLOCK: tl.constexpr,
    ):
        value = tanh(tl.load(seq_lens_ptr))
        tl.store(req_to_token_ptr, value)


    @triton.autotune(configs=[], key=["n"])
    @triton.jit(do_not_specialize=["n"])
    def fill_indices_kernel_wide(out_ptr, n, BLOCK: tl.constexpr):
        tl.store(out_ptr, n)


    def fill_wide(out):
        """Launch `fill_indices_kernel_wide` over the output."""
        kernel = fill_indices_kernel_wide
        kernel[(1,)](out, out.numel(), BLOCK=64)
    ''')

POOL = dedent("""\
    class MHATokenToKVPool(KVCache):
        def set_kv_buffer(self, layer, loc, cache_k, cache_v):
            if cache_k.dtype != self.dtype:
                cache_k = cache_k.to(self.dtype)
                cache_v = cache_v.to(self.dtype)
            self.k_buffer[layer][loc] = cache_k


    class MLATokenToKVPool(KVCache):
        def set_kv_buffer(self, layer, loc, cache_k, cache_v):
            assert not self.stores_fp8_elsewhere
            if cache_k.dtype != self.dtype:
                cache_k = cache_k.to(self.dtype)
            self.kv_buffer[layer][loc] = cache_k
    """)

FLASHINFER = dedent("""\
    from engine.srt.layers.quantization.fp8 import fp8_dtype


    class FlashInferBackend(AttentionBackend):
        def forward_extend(self, q, k, v, layer):
            if self.kv_cache_dtype == fp8_dtype:
                k_cache = self.k_cache.to(q.dtype)
            return self.run(q, k_cache)
    """)

ENGINE: dict[str, File] = {
    "python/engine/srt/layers/attention/aiter_backend.py": BACKEND,
    "python/engine/srt/layers/attention/flashinfer_backend.py": FLASHINFER,
    "python/engine/srt/layers/attention/utils.py": UTILS,
    "python/engine/srt/mem_cache/memory_pool.py": POOL,
    "python/engine/srt/layers/quantization/fp8.py": dedent("""\
        import torch
        from eng_kernel import per_token_quant

        fp8_dtype = torch.float8_e4m3fnuz


        def quantise(x):
            x_q = torch.empty_like(x, dtype=fp8_dtype)
            per_token_quant(x, x_q)
            return x_q


        @torch.library.register_fake("eng_kernel::per_token_quant")
        def _per_token_quant_fake(x):
            return per_token_quant(x, x)


        @torch.compile(dynamic=True)
        def scale_and_add(x, y):
            return x * 2 + y


        def unused_wrapper(x):
            per_token_quant(x, x)
        """),
    "python/engine/srt/model.py": dedent("""\
        from engine.srt.layers.attention.aiter_backend import create_backend
        from engine.srt.layers.attention.flashinfer_backend import FlashInferBackend
        from engine.srt.layers.attention.utils import fill_wide
        from engine.srt.layers.quantization.fp8 import quantise, scale_and_add
        from engine.srt.mem_cache.memory_pool import MHATokenToKVPool, MLATokenToKVPool


        def build(runner):
            fill_wide(runner.out)
            quantise(scale_and_add(runner.x, runner.y))
            return create_backend(runner), FlashInferBackend, MHATokenToKVPool, MLATokenToKVPool
        """),
    "eng-kernel/python/eng_kernel/__init__.py": dedent("""\
        import torch


        def per_token_quant(x, out):
            torch.ops.eng_kernel.per_token_quant.default(x, out)
        """),
    "eng-kernel/csrc/gemm/quant.cu": dedent("""\
        #include "quant.cuh"

        // per_token_quant_kernel is launched below
        template <typename T, int kTile>
        __global__ void __launch_bounds__(256, 1) per_token_quant_kernel(
            const T* __restrict__ in, unsigned char* out) {
          out[threadIdx.x] = in[threadIdx.x];
        }

        namespace {
        __global__ void hidden_kernel(int n) {}
        }  // namespace

        void per_token_quant(torch::Tensor in, torch::Tensor out) {
          TORCH_WARN("per_token_quant_kernel is slow");
          per_token_quant_kernel<float, 16>
              <<<1, 256>>>(in.data_ptr<float>(), out.data_ptr<unsigned char>());
        }
        """),
    "eng-kernel/csrc/gemm/quant.cuh": "#pragma once\n",
    "eng-kernel/csrc/elementwise/act.cu": dedent("""\
        namespace eng_hip {
        namespace act {
        template <typename T>
        __global__ void act_and_mul_kernel(T* out, const T* in) { *out = *in; }
        }
        }

        #define LAUNCH(name, n) \\
          do { \\
            name<float><<<n, 64>>>(nullptr, nullptr); \\
          } while (0)

        void silu_and_mul(int n) { LAUNCH(eng_hip::act::act_and_mul_kernel, n); }
        """),
    "eng-kernel/csrc/common_extension.cc": dedent("""\
        TORCH_LIBRARY_FRAGMENT(eng_kernel, m) {
          m.def("per_token_quant(Tensor x, Tensor! out) -> ()");
          m.impl("per_token_quant", torch::kCUDA, &per_token_quant);
          m.impl("silu_and_mul", torch::kCUDA, &silu_and_mul);
        }
        """),
    "eng-kernel/CMakeLists.txt": 'set(SOURCES\n  "csrc/gemm/quant.cu"\n  "csrc/common_extension.cc"\n)\n',
    "eng-kernel/setup_rocm.py": 'sources = [\n    "csrc/elementwise/act.cu",\n]\n',
    "tests/test_kernels.py": UTILS,
    "README.md": "# Engine\n\nfill_indices_kernel\n",
}  # fmt: skip

SYMBOL = "_ZN7kernlib24mla_a8w8_qh16_gqaratio16E"
OTHER_SYMBOL = "_ZN7kernlib27mla_a8w8_qh16_gqaratio16_psE"

KERNLIB: dict[str, File] = {
    "kernlib/mla.py": dedent("""\
        import kernlib


        def mla_decode_fwd(q, kv):
            kernlib.mla_decode_stage1_asm_fwd(
                q,
                kv,
            )
            return q
        """),
    "kernlib/__init__.py": "from .ops.attention import *\nfrom .ops.quant import *\nfrom .tuned import *\n",
    "kernlib/ops/attention.py": dedent("""\
        from ..jit.core import compile_ops


        @compile_ops("module_mla_asm")
        def mla_decode_stage1_asm_fwd(q, kv) -> None: ...
        """),
    "kernlib/ops/quant.py": dedent("""\
        from ..jit.core import compile_ops


        @compile_ops("module_quant", fc_name="group_quant_impl")
        def group_quant(x, out) -> None: ...


        def per_group_quant(x, out):
            group_quant(x, out)
            return out
        """),
    "kernlib/ops/triton/_kernels/gemm.py": dedent("""\
        import triton
        from kernlib.ops.triton.utils.kernel_repr import make_kernel_repr

        _gemm_repr = make_kernel_repr(
            "_gemm_a16_w16_kernel",
            [
                "BLOCK_SIZE_M",
                "BLOCK_SIZE_N",
                "activation",
            ],
        )


        @triton.heuristics({"EVEN": lambda args: args["K"] % 2 == 0})
        @triton.jit(repr=_gemm_repr)
        def _gemm_a16w16(a_ptr, b_ptr, K, BLOCK_SIZE_M, BLOCK_SIZE_N, activation):
            pass
        """),
    "kernlib/ops/triton/gemm.py": dedent("""\
        from kernlib.ops.triton._kernels.gemm import _gemm_a16w16


        def gemm_a16w16(x, w):
            grid = lambda META: (1,)
            _gemm_a16w16[grid](x, w, 1, BLOCK_SIZE_M=16, BLOCK_SIZE_N=16, activation="")
            return x


        def gemm(x, w):
            return gemm_a16w16(x, w)
        """),
    "kernlib/ops/flydsl/hgemm.py": dedent("""\
        import flydsl.compiler as flyc


        def compile_hgemm(dtype, m, n, k, bias):
            KERNEL_NAME = f"hgemm_{dtype}_{m}x{n}x{k}_SPLIT"
            KERNEL_NAME += "_AS1" if m else "_AS0"
            if bias:
                KERNEL_NAME += "_BIAS"

            @flyc.kernel(known_block_size=[64, 1, 1])
            def hgemm_kernel(a, b):
                return a

            @flyc.jit
            def launch(a, b):
                hgemm_kernel._func.__name__ = KERNEL_NAME
                hgemm_kernel(a, b).launch(grid=(1,))

            return launch


        def hgemm(a, b):
            run = compile_hgemm("bf16", 16, 64, 64, False)
            return run(a, b)
        """),
    "kernlib/tuned.py": dedent("""\
        from kernlib.ops.flydsl.hgemm import hgemm
        from kernlib.ops.quant import per_group_quant
        from kernlib.ops.triton.gemm import gemm


        def dispatch(x, w):
            return gemm(hgemm(x, w), per_group_quant(x, w))
        """),
    "kernlib/jit/optCompilerConfig.json": dedent("""\
        {
            "module_mla_asm": {"srcs": ["f'{LIB_CSRC_DIR}/py_itfs/asm_mla.cu'"]},
            "module_quant": {"srcs": ["f'{LIB_CSRC_DIR}/kernels/quant_kernels.cu'"]},
            "module_norm": {"srcs": ["f'{LIB_CSRC_DIR}/py_itfs_ck/rmsnorm_ck.cu'"]}
        }
        """),
    "csrc/py_itfs/asm_mla.cu": dedent("""\
        #include "asm_mla_configs.hpp"
        void mla_decode_stage1_asm_fwd(void* q, void* kv) { auto* config = &cfg_mla_asm; run(config); }
        """),
    "csrc/py_itfs_ck/rmsnorm_ck.cu": dedent("""\
        void rmsnorm2d_host(void* x) {
          // rmsnorm2d_fwd is the library's
          rmsnorm2d_fwd(x, 1);
        }
        """),
    "csrc/kernels/quant_kernels.cu": dedent("""\
        namespace kernlib {
        template <typename T>
        __global__ void
        group_quant_kernel(T* out) {
          *out = 0;
        }

        void group_quant_impl(void* x) {
          group_quant_kernel<float><<<1, 1>>>(nullptr);
        }
        }  // namespace kernlib
        """),
    "csrc/kernels/not_built.cu": "__global__ void forgotten_kernel(int n) {}\nvoid f() { forgotten_kernel<<<1, 1>>>(0); }\n",
    "hsa/gfx942/mla/mla_asm.csv": dedent(f"""\
        qType,Gqa,knl_name,co_name
        fp8,16,{SYMBOL},mla_a8w8.co
        #fp8,8,_ZN7kernlib17mla_commented_outE,mla_a8w8.co
        fp8,16,{OTHER_SYMBOL},mla_a8w8_ps.co
        fp8,4,_ZN7kernlib16mla_dangling_rowE,missing.co
        fp8,4,_ZN7kernlib16mla_other_symbolE,mla_a8w8.co
        fp8,4,_ZN7kernlib11mla_pointerE,pointer.co
        """),
    "hsa/gfx942/mla/mla_a8w8.co": elf_with(SYMBOL, f"{SYMBOL}.kd"),
    "hsa/gfx942/mla/mla_a8w8_ps.co": elf_with(OTHER_SYMBOL),
    "hsa/gfx942/mla/pointer.co": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "hsa/gfx950/mla/mla_asm.csv": f"knl_name,co_name\n{SYMBOL},mla.co\n",
    "hsa/gfx950/mla/mla.co": elf_with(SYMBOL),
    "op_tests/test_mla.py": "from kernlib.mla import mla_decode_fwd\n\n\ndef test():\n    mla_decode_fwd(1, 2)\n",
}  # fmt: skip
