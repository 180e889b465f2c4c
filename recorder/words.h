// Names for the numbers of a recorded call. Unknown numbers, of a newer libdrun, are "operation 14", "type 10", "op 6".
#pragma once

#include <cstdint>
#include <string>

namespace drun::recorder {

std::string kind_text(int kind);       // "allreduce"
std::string dtype_text(int dtype);     // "f32"
std::string op_text(int op);           // "sum"
std::uint64_t dtype_bytes(int dtype);  // 0: unknown
bool has_dtype(int kind);              // a barrier has none
bool reduces(int kind);
bool has_root(int kind);
// "allreduce #12 'grad.17'", "barrier[local] #2", "send #3 to rank 2".
std::string call_text(int kind, std::uint32_t comm, std::uint64_t seq, int root, const std::string& name);

}  // namespace drun::recorder
