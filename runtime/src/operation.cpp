#include "runtime/src/operation.h"

#include "base/bytes.h"
#include "runtime/src/dtype.h"

namespace drun::runtime {
namespace {

constexpr std::uint32_t kMagic = 0x6472'756e;  // "drun"
constexpr std::uint8_t kVersion = 1;

const char* kind_name(OpKind kind) {
  switch (kind) {
    case OpKind::kAllreduce:
      return "allreduce";
    case OpKind::kBroadcast:
      return "broadcast";
    case OpKind::kAllgather:
      return "allgather";
    case OpKind::kBarrier:
      return "barrier";
  }
  return "unknown operation";
}

}  // namespace

std::string name_of(const Operation& operation) {
  return kind_name(operation.kind) + std::string(" #") + std::to_string(operation.seq);
}

std::string describe(const Operation& operation) {
  std::string text = name_of(operation);
  if (operation.kind == OpKind::kBarrier) return text;
  text += " of " + std::to_string(operation.count) + " " + name_of(operation.dtype);
  if (operation.kind == OpKind::kAllreduce) text += std::string(" (") + name_of(operation.op) + ")";
  if (operation.kind == OpKind::kBroadcast) text += " from rank " + std::to_string(operation.root);
  return text;
}

bool same_call(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op && a.root == b.root && a.seq == b.seq &&
         a.count == b.count;
}

std::string encode_header(const Operation& operation) {
  ByteWriter out;
  out.u32(kMagic);
  out.u8(kVersion);
  out.u8(static_cast<std::uint8_t>(operation.kind));
  out.u8(static_cast<std::uint8_t>(operation.dtype));
  out.u8(static_cast<std::uint8_t>(operation.op));
  out.i32(operation.root);
  out.u32(0);
  out.u64(operation.seq);
  out.u64(operation.count);
  return out.take();
}

std::optional<Operation> decode_header(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.u32() != kMagic || in.u8() != kVersion) return std::nullopt;
  Operation operation;
  const int kind = in.u8();
  const int dtype = in.u8();
  const int op = in.u8();
  operation.root = in.i32();
  in.u32();
  operation.seq = in.u64();
  operation.count = in.u64();
  if (!in.done() || kind < 1 || kind > 4 || !is_dtype(dtype) || !is_op(op)) return std::nullopt;
  operation.kind = static_cast<OpKind>(kind);
  operation.dtype = static_cast<drun_dtype>(dtype);
  operation.op = static_cast<drun_op>(op);
  return operation;
}

}  // namespace drun::runtime
