#include "runtime/src/dtype.h"

#include <iterator>

namespace drun::runtime {
namespace {

struct Info {
  const char* name;
  std::size_t n_bytes;
  bool reducible;
};
constexpr Info kTypes[] = {{"i8", 1, true},  {"u8", 1, true},   {"i32", 4, true},   {"u32", 4, true}, {"i64", 8, true},
                           {"u64", 8, true}, {"f16", 2, false}, {"bf16", 2, false}, {"f32", 4, true}, {"f64", 8, true}};
constexpr const char* kOps[] = {"sum", "prod", "min", "max", "avg"};

}  // namespace

bool is_dtype(int value) { return value >= 0 && value < static_cast<int>(std::size(kTypes)); }
bool is_op(int value) { return value >= 0 && value < static_cast<int>(std::size(kOps)); }
std::size_t size_of(drun_dtype dtype) { return kTypes[dtype].n_bytes; }
const char* name_of(drun_dtype dtype) { return kTypes[dtype].name; }
const char* name_of(drun_op op) { return kOps[op]; }
bool can_reduce(drun_dtype dtype) { return kTypes[dtype].reducible; }

}  // namespace drun::runtime
