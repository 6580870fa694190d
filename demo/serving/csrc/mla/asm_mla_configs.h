#pragma once
// Generated from hsa/<arch>/mla/mla_asm.csv when the module is built.
#include <string>
#include <unordered_map>

struct AsmConfig {
  std::string knl_name;
  std::string co_name;
};

using AsmConfigs = std::unordered_map<std::string, AsmConfig>;
extern AsmConfigs cfg_mla_asm;
