"""Write the demo's pair of traces: the same made workload with a BF16 and with an FP8 KV cache.

Every number is made, and chosen to be typical: 2 ranks, one prefill (eager, with Python frames but
without shapes) and a number of decode passes (graph replays). The FP8 window holds one pass fewer,
its decode kernel is 34 % faster, and it pays two casts that the BF16 side does not have.

usage: python demo/make_traces.py            writes demo/traces/{bf16,fp8}/*.trace.json.gz
"""

from __future__ import annotations

import ast
import gzip
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

DEMO = Path(__file__).resolve().parent
SERVING = DEMO / "serving"
PACKAGE = "python/tinyserve"
LAYERS = 8
PASSES = {"bf16": 41, "fp8": 40}
RANKS = 2
PID, TID, STREAM = 4100, 4100, 3

COPY = (
    "void at::native::elementwise_kernel_manual_unroll<128, 8, "
    "at::native::{impl}<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)"
    "::{{lambda()#3}}::operator()() const::{{lambda()#12}}::operator()() const"
    "::{{lambda(c10::BFloat16)#1}}>(at::TensorIteratorBase&, at::native::direct_copy_kernel_cuda"
    "(at::TensorIteratorBase&)::{{lambda()#3}}::operator()() const::{{lambda()#12}}::operator()() "
    "const::{{lambda(c10::BFloat16)#1}} const&)::{{lambda(int, bool)#1}}>(int, {{lambda(int, bool)#1}})"
)
KERNELS = {
    "norm": "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi8ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib",
    "gemm": "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1_AFC1",
    "rope": "_rotate_pairs_inplace",
    "to_fp8": "void at::native::vectorized_elementwise_kernel<4, at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#3}, std::array<char*, 2ul> >(int, at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#3}, std::array<char*, 2ul>)",
    "from_fp8": COPY.format(impl="gpu_kernel_impl"),
    "copy": COPY.format(impl="gpu_kernel_impl_nocast"),
    "write": "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_put_kernel_impl<at::native::OpaqueType<2> >(at::TensorIterator&, c10::ArrayRef<long>, c10::ArrayRef<long>)::{lambda(char*, char const*, long)#1}>(at::TensorIteratorBase&, c10::ArrayRef<long>, c10::ArrayRef<long>, at::native::index_put_kernel_impl<at::native::OpaqueType<2> >(at::TensorIterator&, c10::ArrayRef<long>, c10::ArrayRef<long>)::{lambda(char*, char const*, long)#1} const&, bool)::{lambda(int)#1}>(long, {lambda(int)#1})",
    "prefill": "void ck_tile::kentry<2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync<>, ck_tile::Default2DEpilogue<> > >(ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync<>, ck_tile::Default2DEpilogue<> >::Kargs)",
    "decode.bf16": "_ZN9tinyserve26latent_dec_a16w16_qh16_g16E",
    "decode.fp8": "_ZN9tinyserve24latent_dec_a8w8_qh16_g16E",
    "reduce": "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4>)",
    "gate": "void tinyserve::expert_gate_pick<hip_bfloat16, 64>(hip_bfloat16 const*, float*, int*, int, int)",
    "sort": "void ck_tile::kentry<2, ck_tile::MoeSortingMultiPhaseKernel_P23<ck_tile::MoeSortingProblemMp<int, float, int, true, false, false, true, 0> > >(ck_tile::MoeSortingMultiPhaseKernel_P23<ck_tile::MoeSortingProblemMp<int, float, int, true, false, false, true, 0> >::Kargs)",
    "moe1": "moe_gemm1_0",
    "moe2": "moe_gemm2_0",
    "comm": "void aiter::cross_device_reduce_2stage<std::bfloat16_t, 8, false>(aiter::RankData*, aiter::RankData*, aiter::RankSignals, aiter::Signal*, std::bfloat16_t*, int, int)",
}
DURATION_NS = {
    "norm": 6_200,
    "gemm": 46_000,
    "rope": 4_100,
    "to_fp8": 4_400,
    "from_fp8": 71_000,
    "copy": 5_500,
    "write": 7_400,
    "prefill": 310_000,
    "decode.bf16": 9_500,
    "decode.fp8": 6_270,
    "reduce": 4_700,
    "gate": 5_300,
    "sort": 6_600,
    "moe1": 96_000,
    "moe2": 71_000,
    "comm": 28_000,
}
FRAMES = {
    "rope": ("layers/rotary_embedding.py", "rotate_query_and_key"),
    "to_fp8": ("mem_cache/memory_pool.py", "set_kv_buffer"),
    "write": ("mem_cache/memory_pool.py", "set_kv_buffer"),
    "from_fp8": ("layers/attention_backend.py", "forward_extend"),
    "prefill": ("layers/attention_backend.py", "forward_extend"),
    "gate": ("ops/routing.py", "pick_experts"),
}
CASTS = {"to_fp8", "from_fp8", "copy"}


def microseconds(ns: int) -> str:
    """Write nanoseconds as Kineto does: microseconds with three decimals."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def first_line(path: str, function: str) -> int:
    """Give the first line of a function of the demo's serving stack, as Kineto would record it."""
    tree = ast.parse((SERVING / PACKAGE / path).read_text(encoding="utf-8"))
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return lines[0]


@dataclass
class Writer:
    """Collects the events of one rank; the GPU runs behind the CPU on one stream."""

    rng: random.Random
    events: list[str] = field(default_factory=list)
    cpu_ns: int = 1_000
    gpu_ns: int = 40_000_000
    next_id: int = 1

    def add(self, cat: str, name: str, start_ns: int, duration_ns: int, **args: object) -> None:
        """Write one complete event of the CPU thread."""
        self.events.append(
            f'{{"ph": "X", "cat": "{cat}", "name": {json.dumps(name)}, "pid": {PID}, "tid": {TID}, '
            f'"ts": {microseconds(start_ns)}, "dur": {microseconds(duration_ns)}, '
            f'"args": {json.dumps(args)}}}'
        )

    def kernel(self, key: str, correlation: int, **args: object) -> None:
        """Write one kernel with a duration that varies by up to 3 %."""
        duration_ns = DURATION_NS[key] * self.rng.randint(970, 1030) // 1000
        details = {**args, "device": 2, "stream": STREAM, "correlation": correlation}
        self.events.append(
            f'{{"ph": "X", "cat": "kernel", "name": {json.dumps(KERNELS[key])}, "pid": 2, '
            f'"tid": {STREAM}, "ts": {microseconds(self.gpu_ns)}, '
            f'"dur": {microseconds(duration_ns)}, "args": {json.dumps(details)}}}'
        )
        self.gpu_ns += duration_ns + 1_200

    def eager(self, key: str) -> None:
        """Write one launch from Python: frame, ops, launch and kernel."""
        start_ns, ident = self.cpu_ns, self.next_id
        self.cpu_ns += 40_000
        self.next_id += 4
        if key in FRAMES:
            path, function = FRAMES[key]
            where = f"/opt/tinyserve/{PACKAGE}/{path}({first_line(path, function)}): {function}"
            self.add("python_function", where, start_ns, 38_000, **{"Python id": ident})
        external = {}
        if key in CASTS:
            for depth, op in enumerate(("aten::to", "aten::_to_copy", "aten::copy_")):
                self.add(
                    "cpu_op",
                    op,
                    start_ns + 1_000 * (depth + 1),
                    30_000 - 4_000 * depth,
                    **{"External id": ident + depth + 1},
                )
            external = {"External id": ident + 3}
        launch = {"correlation": ident, "cid": 211, **external}
        self.add("cuda_runtime", "hipLaunchKernel", start_ns + 8_000, 3_000, **launch)
        self.kernel(key, ident, kind="Dispatch Kernel", grid=[304, 1, 1], **external)

    def replay(self, keys: list[str]) -> None:
        """Write one graph launch and the kernels it brings; they share its correlation."""
        self.add(
            "cuda_runtime", "hipGraphLaunch", self.cpu_ns, 90_000, correlation=self.next_id, cid=409
        )
        for key in keys:
            self.kernel(key, self.next_id, kind="Dispatch Task")
        self.cpu_ns += 200_000
        self.next_id += 1


def layer(side: str, *, decode: bool) -> list[str]:
    """List the kernels of one layer in order."""
    cast_in = ["to_fp8"] if side == "fp8" else []
    cast_out = ["from_fp8"] if side == "fp8" and not decode else []
    attention = [f"decode.{side}", "reduce"] if decode else ["copy", *cast_out, "prefill"]
    moe = ["gate", "sort", "moe1", "moe2", "comm"]
    return ["norm", "gemm", "rope", *cast_in, "write", *attention, "gemm", "comm", "norm", *moe]


def rank_json(side: str, rank: int) -> str:
    """Give the trace of one rank as Kineto JSON."""
    writer = Writer(random.Random(f"{side}-{rank}"))
    for key in [key for _ in range(LAYERS) for key in layer(side, decode=False)]:
        writer.eager(key)
    for _ in range(PASSES[side]):
        writer.replay([key for _ in range(LAYERS) for key in layer(side, decode=True)])
    head = (
        '{"schemaVersion": 1, "deviceProperties": [{"id": 2, "name": "AMD Instinct MI308X"}], '
        f'"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {RANKS}}},\n'
        '"with_stack": 1, "traceEvents": [\n'
    )
    tail = '\n], "traceName": "made for the demo", "baseTimeNanoseconds": 1775100000000000000}\n'
    return head + ",\n".join(writer.events) + tail


def main() -> None:
    """Write both sides; the same bytes on every run."""
    for side in PASSES:
        folder = DEMO / "traces" / side
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(RANKS):
            packed = gzip.compress(rank_json(side, rank).encode(), 9, mtime=0)
            (folder / f"made-TP-{rank}.trace.json.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
