#include "runtime/src/half.h"

#include "runtime/src/kernels/kernels.h"

namespace drun::runtime {

void widen(const void* from, drun_dtype dtype, float* into, std::size_t count) {
  kernels().widen(from, dtype, into, count);
}

void narrow(const float* from, void* into, drun_dtype dtype, std::size_t count) {
  kernels().narrow(from, into, dtype, count);
}

}  // namespace drun::runtime
