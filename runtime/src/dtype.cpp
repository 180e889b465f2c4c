#include "runtime/src/dtype.h"

#include <iterator>

namespace drun::runtime {
namespace {

constexpr const char* kTypes[] = {"i8", "u8", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"};
static_assert(std::size(kTypes) == std::size(kBytesOfTypes));
constexpr const char* kOps[] = {"sum", "prod", "min", "max", "avg", "adasum"};
static_assert(std::size(kOps) == DRUN_ADASUM + 1);

}  // namespace

const char* name_of(drun_dtype dtype) { return kTypes[dtype]; }
const char* name_of(drun_op op) { return kOps[op]; }

}  // namespace drun::runtime
