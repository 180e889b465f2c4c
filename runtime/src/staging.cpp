#include "runtime/src/staging.h"

#include "runtime/src/copy.h"
#include "runtime/src/half.h"
#include "runtime/src/reduce.h"

namespace drun::runtime {

void stage(const Operation& operation, const void* from, void* into, std::size_t count) {
  if (is_half(operation.dtype)) {
    widen(from, operation.dtype, static_cast<float*>(into), count);
  } else if (from != into && count > 0) {
    copy_bytes(into, from, count * size_of(operation.dtype));
  }
  if (operation.prescale != 1) scale(into, count, reduced_as(operation.dtype), operation.prescale);
}

void unstage(const Operation& operation, void* from, void* into, std::size_t count) {
  if (operation.postscale != 1) scale(from, count, reduced_as(operation.dtype), operation.postscale);
  if (is_half(operation.dtype)) {
    narrow(static_cast<const float*>(from), into, operation.dtype, count);
  } else if (from != into && count > 0) {
    copy_bytes(into, from, count * size_of(operation.dtype));
  }
}

}  // namespace drun::runtime
