// Picks the best experts of each token.
#include <hip/hip_runtime.h>
#include <torch/extension.h>

namespace tinyserve {

template <typename scalar_t, int kWarp>
__global__ void expert_gate_pick(
    const scalar_t* __restrict__ scores,
    float* __restrict__ weights,
    int* __restrict__ experts,
    int n_experts,
    int top_k) {
  const int token = blockIdx.x;
  const scalar_t* row = scores + token * n_experts;
  for (int k = 0; k < top_k; ++k) {
    float best = -INFINITY;
    int arg = -1;
    for (int e = threadIdx.x; e < n_experts; e += kWarp) {
      const float score = static_cast<float>(row[e]);
      if (score > best) {
        best = score;
        arg = e;
      }
    }
    weights[token * top_k + k] = best;
    experts[token * top_k + k] = arg;
  }
}

}  // namespace tinyserve

void expert_gate_pick_fwd(
    torch::Tensor& scores, torch::Tensor& weights, torch::Tensor& experts, int top_k) {
  const int n_tokens = scores.size(0);
  const int n_experts = scores.size(1);
  tinyserve::expert_gate_pick<hip_bfloat16, 64><<<n_tokens, 64>>>(
      scores.data_ptr<hip_bfloat16>(),
      weights.data_ptr<float>(),
      experts.data_ptr<int>(),
      n_experts,
      top_k);
}

PYBIND11_MODULE(module_moe_gate, m) {
  m.def("expert_gate_pick_fwd", &expert_gate_pick_fwd);
}
