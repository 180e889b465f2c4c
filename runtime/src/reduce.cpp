#include "runtime/src/reduce.h"

#include "runtime/src/kernels/kernels.h"

namespace drun::runtime {

void accumulate(void* into, const void* from, std::size_t count, drun_dtype dtype, drun_op op) {
  kernels().combine(into, into, from, count, dtype, op);
}

void combine(void* into, const void* a, const void* b, std::size_t count, drun_dtype dtype, drun_op op) {
  kernels().combine(into, a, b, count, dtype, op);
}

void finish(void* data, std::size_t count, drun_dtype dtype, drun_op op, int size) {
  if (op == DRUN_AVG) kernels().divide(data, count, dtype, size);
}

void finish(const Operation& operation, const Span& data, int size) {
  if (!operation.partial) finish(data.data, data.count, data.dtype, operation.op, size);
}

void scale(void* data, std::size_t count, drun_dtype dtype, double factor) {
  kernels().scale(data, count, dtype, factor);
}

}  // namespace drun::runtime
