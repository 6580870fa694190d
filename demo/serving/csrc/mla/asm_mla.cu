// Loads the assembled decode kernel of this architecture and launches it.
#include <hip/hip_runtime.h>
#include <torch/extension.h>

#include "asm_kernel.h"
#include "asm_mla_configs.h"

void latent_decode_stage1_asm_fwd(
    torch::Tensor& q, torch::Tensor& kv, torch::Tensor& splits, torch::Tensor& page_table, float scaling) {
  AsmConfigs* configs = &cfg_mla_asm;
  const AsmConfig& config = find_config(configs, q.dtype(), kv.dtype(), q.size(1));
  AsmKernel kernel(config.knl_name, config.co_name);
  kernel.launch(q, kv, splits, page_table, scaling);
}

PYBIND11_MODULE(module_mla_asm, m) {
  m.def("latent_decode_stage1_asm_fwd", &latent_decode_stage1_asm_fwd);
}
