#include "runtime/src/gpu/nccl_reduction.h"

#include <cstring>

#include "runtime/src/dtype.h"

namespace drun::runtime::gpu {
namespace {

double scale_of(const Operation& operation) { return operation.prescale * operation.postscale; }

// Writes a scale as an element of that type, f32 or f64.
void write_scale(double scale, drun_dtype dtype, char out[8]) {
  const auto narrowed = static_cast<float>(scale);
  if (dtype == DRUN_FLOAT64) {
    std::memcpy(out, &scale, sizeof scale);
  } else {
    std::memcpy(out, &narrowed, sizeof narrowed);
  }
}

}  // namespace

// Sums and averages can be scaled by one factor of their type, which is too imprecise for halves. The CPU path scales
// other reductions, and averages integers, which NCCL rounds differently.
bool nccl_can_reduce(const Operation& operation) {
  if (operation.op == DRUN_AVG && !is_float(operation.dtype)) return false;
  const bool adds = operation.op == DRUN_SUM || operation.op == DRUN_AVG;
  return scale_of(operation) == 1 || (adds && is_wide_float(operation.dtype));
}

std::size_t n_reduced_at_once(const Operation& operation, int n_members) {
  if (n_members > 1 || scale_of(operation) == 1) return operation.count;
  const std::size_t block = (std::size_t{16} << 10) / size_of(operation.dtype);
  return operation.count < block ? operation.count : operation.count / block * block;
}

NcclReductions::~NcclReductions() {
  for (const NcclRedOp op : made_) nccl_.RedOpDestroy(op, comm_);
}

NcclResult NcclReductions::add(const Operation& operation, NcclRedOp& op) {
  const double scale = scale_of(operation);
  switch (operation.op) {
    case DRUN_PROD:
      op = kNcclProd;
      return kNcclSuccess;
    case DRUN_MIN:
      op = kNcclMin;
      return kNcclSuccess;
    case DRUN_MAX:
      op = kNcclMax;
      return kNcclSuccess;
    default:
      break;
  }
  // NCCL's average of one rank is a scaled reduction; its sum is a copy.
  op = operation.op == DRUN_AVG && n_members_ > 1 ? kNcclAvg : kNcclSum;
  if (scale == 1) return kNcclSuccess;
  char scalar[8] = {};
  write_scale(operation.op == DRUN_AVG ? scale / n_members_ : scale, operation.dtype, scalar);
  const auto made =
      nccl_.RedOpCreatePreMulSum(&op, scalar, nccl_type_of(operation.dtype), kNcclScalarInHostMemory, comm_);
  if (made == kNcclSuccess) made_.push_back(op);
  return made;
}

}  // namespace drun::runtime::gpu
