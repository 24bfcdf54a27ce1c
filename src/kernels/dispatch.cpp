#include "kernels/cpu/isa_tables.h"
#include "kernels/kernels.h"

namespace hadal::kernels {

bool isa_supported(Isa isa) {
  __builtin_cpu_init();
  // The scalar source, too, uses fused multiply-add and float16 conversion: hadal needs them everywhere.
  const bool base = __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  switch (isa) {
    case Isa::kScalar:
      return base;
    case Isa::kAvx2:
      return base && __builtin_cpu_supports("avx2");
    case Isa::kAvx512:
      return base && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
}

Isa detect_isa() {
  if (isa_supported(Isa::kAvx512)) {
    return Isa::kAvx512;
  }
  return isa_supported(Isa::kAvx2) ? Isa::kAvx2 : Isa::kScalar;
}

const char* isa_name(Isa isa) {
  return kernels_for(isa).name;
}

const Kernels& kernels_for(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return avx2::kTable;
    case Isa::kAvx512:
      return avx512::kTable;
    case Isa::kScalar:
      break;
  }
  return scalar::kTable;
}

}  // namespace hadal::kernels
