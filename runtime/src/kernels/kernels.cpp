#include "runtime/src/kernels/kernels.h"

namespace drun::runtime {

std::vector<NamedKernels> usable_kernels() {
  std::vector<NamedKernels> result{{"plain", &kPlainKernels}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) result.push_back({"avx2", &kAvx2Kernels});
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq")) {
    result.push_back({"avx512", &kAvx512Kernels});
  }
#endif
  return result;
}

const Kernels& kernels() {
  static const Kernels* const best = usable_kernels().back().kernels;
  return *best;
}

}  // namespace drun::runtime
