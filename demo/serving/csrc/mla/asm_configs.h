#pragma once
// Rows of hsa/<arch>/mla/mla_asm.csv.
struct AsmConfig {
  const char* knl_name;
  const char* co_name;
};
