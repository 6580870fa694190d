"""Expert routing in HIP."""

from tinyserve.ops.loader import compile_ops


@compile_ops("module_moe_gate")
def expert_gate_pick_fwd(scores, weights, experts, top_k): ...


def pick_experts(scores, weights, experts, top_k):
    expert_gate_pick_fwd(scores, weights, experts, top_k)
