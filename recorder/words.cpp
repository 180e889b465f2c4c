#include "recorder/words.h"

#include <iterator>

namespace drun::recorder {

namespace {

struct Kind {
  const char* name;
  bool reduces, has_root, has_dtype;
};
constexpr Kind kKinds[] = {
    {"allreduce", true, false, true},   {"broadcast", false, true, true},  {"allgather", false, false, true},
    {"barrier", false, false, false},   {"reduce", true, true, true},      {"reduce_scatter", true, false, true},
    {"allgatherv", false, false, true}, {"gather", false, true, true},     {"scatter", false, true, true},
    {"alltoall", false, false, true},   {"alltoallv", false, false, true}, {"send", false, true, true},
    {"recv", false, true, true},
};
struct Type {
  const char* name;
  std::uint64_t n_bytes;
};
constexpr Type kTypes[] = {{"i8", 1},  {"u8", 1},  {"i32", 4},  {"u32", 4}, {"i64", 8},
                           {"u64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};
constexpr const char* kOps[] = {"sum", "prod", "min", "max", "avg", "adasum"};

const Kind* find(int kind) {
  return kind >= 1 && kind <= static_cast<int>(std::size(kKinds)) ? &kKinds[kind - 1] : nullptr;
}
const Type* find_type(int dtype) {
  return dtype >= 0 && dtype < static_cast<int>(std::size(kTypes)) ? &kTypes[dtype] : nullptr;
}

}  // namespace

std::string kind_text(int kind) {
  const Kind* known = find(kind);
  return known != nullptr ? known->name : "operation " + std::to_string(kind);
}

std::string dtype_text(int dtype) {
  const Type* known = find_type(dtype);
  return known != nullptr ? known->name : "type " + std::to_string(dtype);
}

std::string op_text(int op) {
  return op >= 0 && op < static_cast<int>(std::size(kOps)) ? kOps[op] : "op " + std::to_string(op);
}

std::uint64_t dtype_bytes(int dtype) {
  const Type* known = find_type(dtype);
  return known != nullptr ? known->n_bytes : 0;
}

bool has_dtype(int kind) { return find(kind) == nullptr || find(kind)->has_dtype; }
bool reduces(int kind) { return find(kind) != nullptr && find(kind)->reduces; }
bool has_root(int kind) { return find(kind) != nullptr && find(kind)->has_root; }

std::string call_text(int kind, std::uint32_t comm, std::uint64_t seq, int root, const std::string& name) {
  std::string text = kind_text(kind);
  if (comm != 0) text += comm == 1 ? "[local]" : comm == 2 ? "[cross]" : "[comm " + std::to_string(comm) + "]";
  text += " #" + std::to_string(seq);
  if (!name.empty()) text += " '" + name + "'";
  if (kind == 12) text += " to rank " + std::to_string(root);
  if (kind == 13) text += " from rank " + std::to_string(root);
  return text;
}

}  // namespace drun::recorder
