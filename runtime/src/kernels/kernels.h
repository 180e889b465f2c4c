// The loops over elements, compiled for several instruction sets. Documented in reduce.h and half.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/include/drun/drun.h"

namespace drun::runtime {

struct Kernels {
  // `into` may be `a` or `b`, but must not overlap them otherwise.
  void (*combine)(void* into, const void* a, const void* b, std::size_t count, drun_dtype dtype, drun_op op);
  void (*divide)(void* data, std::size_t count, drun_dtype dtype, int size);
  void (*scale)(void* data, std::size_t count, drun_dtype dtype, double factor);
  void (*widen)(const void* from, drun_dtype dtype, float* into, std::size_t count);
  void (*narrow)(const float* from, void* into, drun_dtype dtype, std::size_t count);
};

// For any processor of the architecture: SSE2, NEON.
extern const Kernels kPlainKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

struct NamedKernels {
  const char* name;
  const Kernels* kernels;
};
// The kernels that this processor can run; the best is the last.
std::vector<NamedKernels> usable_kernels();
// The best kernels that this processor can run.
const Kernels& kernels();

}  // namespace drun::runtime
