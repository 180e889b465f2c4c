#include "runtime/src/operation.h"

#include <utility>

#include "base/bytes.h"
#include "runtime/src/dtype.h"

namespace drun::runtime {
namespace {

constexpr std::uint32_t kMagic = 0x6472'756e;  // "drun"
constexpr std::uint8_t kVersion = 2;

// What a text says behind the count.
enum class Detail { kNothing, kOp, kFromRoot, kToRoot, kOpToRoot, kCounts, kTypeAlone };

struct KindInfo {
  OpKind kind;
  const char* name;
  Detail detail;
};
constexpr KindInfo kKinds[] = {
    {OpKind::kAllreduce, "allreduce", Detail::kOp},
    {OpKind::kBroadcast, "broadcast", Detail::kFromRoot},
    {OpKind::kAllgather, "allgather", Detail::kNothing},
    {OpKind::kBarrier, "barrier", Detail::kNothing},
    {OpKind::kReduce, "reduce", Detail::kOpToRoot},
    {OpKind::kReduceScatter, "reduce_scatter", Detail::kOp},
    {OpKind::kAllgatherv, "allgatherv", Detail::kCounts},
    {OpKind::kGather, "gather", Detail::kToRoot},
    {OpKind::kScatter, "scatter", Detail::kFromRoot},
    {OpKind::kAlltoall, "alltoall", Detail::kNothing},
    {OpKind::kAlltoallv, "alltoallv", Detail::kTypeAlone},
    {OpKind::kSend, "send", Detail::kToRoot},
    {OpKind::kRecv, "recv", Detail::kFromRoot},
};

const KindInfo& info(OpKind kind) { return kKinds[static_cast<std::size_t>(kind) - 1]; }

std::string hex(std::uint32_t value) {
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(value >> shift) & 0xf];
  return text;
}

}  // namespace

std::string name_of(const Operation& operation) {
  std::string text = info(operation.kind).name;
  if (operation.comm != kCommWorld) text += "[" + name_of_comm(operation.comm) + "]";
  text += " #" + std::to_string(operation.seq);
  if (!operation.name.empty()) text += " '" + operation.name + "'";
  return text;
}

std::string describe(const Operation& operation) {
  std::string text = name_of(operation);
  if (operation.kind == OpKind::kBarrier) return text;
  text += " of " + std::to_string(operation.count) + " " + name_of(operation.dtype);
  const std::string op = std::string(" (") + name_of(operation.op) + ")", root = std::to_string(operation.root);
  switch (info(operation.kind).detail) {
    case Detail::kNothing:
      return text;
    case Detail::kOp:
      return text + op;
    case Detail::kFromRoot:
      return text + " from rank " + root;
    case Detail::kToRoot:
      return text + " to rank " + root;
    case Detail::kTypeAlone:
      return name_of(operation) + " of " + name_of(operation.dtype);
    case Detail::kOpToRoot:
      return text + " to rank " + root + op;
    case Detail::kCounts:
      return text + " in all (counts " + hex(operation.counts) + ")";
  }
  return text;
}

std::string in_words(std::chrono::milliseconds time) {
  const auto count = time.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

std::string name_of_comm(std::uint32_t comm) {
  if (comm == kCommWorld) return "world";
  if (comm == kCommLocal) return "local";
  return comm == kCommCross ? "cross" : "comm " + std::to_string(comm);
}

bool same_call(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op && a.comm == b.comm && a.root == b.root &&
         a.seq == b.seq && a.count == b.count && a.counts == b.counts;
}

void CallClock::begin_at(Clock::time_point time) const {
  began_ = time;
  if (Listener* const listener = std::exchange(listener_, nullptr)) listener->call_began();
}

std::string encode_header(const Operation& operation) {
  ByteWriter out;
  out.u32(kMagic);
  out.u8(kVersion);
  out.u8(static_cast<std::uint8_t>(operation.kind));
  out.u8(static_cast<std::uint8_t>(operation.dtype));
  out.u8(static_cast<std::uint8_t>(operation.op));
  out.u32(operation.comm);
  out.i32(operation.root);
  out.u32(operation.counts);
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
  operation.comm = in.u32();
  operation.root = in.i32();
  operation.counts = in.u32();
  operation.seq = in.u64();
  operation.count = in.u64();
  if (!in.done() || kind < 1 || kind >= static_cast<int>(OpKind::kRecv) || !is_dtype(dtype) || !is_op(op))
    return std::nullopt;
  operation.kind = static_cast<OpKind>(kind);
  operation.dtype = static_cast<drun_dtype>(dtype);
  operation.op = static_cast<drun_op>(op);
  return operation;
}

}  // namespace drun::runtime
