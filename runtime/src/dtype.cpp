#include "runtime/src/dtype.h"

#include <iterator>

#include "runtime/src/half.h"

namespace drun::runtime {
namespace {

struct Info {
  const char* name;
  std::size_t n_bytes;
};
constexpr Info kTypes[] = {{"i8", 1},  {"u8", 1},  {"i32", 4},  {"u32", 4}, {"i64", 8},
                           {"u64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};
constexpr const char* kOps[] = {"sum", "prod", "min", "max", "avg", "adasum"};

}  // namespace

bool is_dtype(int value) { return value >= 0 && value < static_cast<int>(std::size(kTypes)); }
bool is_op(int value) { return value >= 0 && value < static_cast<int>(std::size(kOps)); }
std::size_t size_of(drun_dtype dtype) { return kTypes[dtype].n_bytes; }
const char* name_of(drun_dtype dtype) { return kTypes[dtype].name; }
const char* name_of(drun_op op) { return kOps[op]; }
drun_dtype reduced_as(drun_dtype dtype) { return is_half(dtype) ? DRUN_FLOAT32 : dtype; }

}  // namespace drun::runtime
