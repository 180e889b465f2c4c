#include "runtime/src/operation.h"

#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/clean_text.h"
#include "runtime/src/dtype.h"
#include "runtime/src/words.h"

namespace drun::runtime {
namespace {

constexpr std::uint32_t kMagic = 0x6472'756e;  // "drun"
constexpr std::uint8_t kVersion = 3;

// The part of a text that follows the count.
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

constexpr std::uint64_t of_each_byte(unsigned char byte) { return 0x0101010101010101u * byte; }
constexpr std::uint64_t kBlanks = of_each_byte(' ');

// Nonzero if one of the eight bytes is below ' ', DEL or not ASCII. A byte that is 0 after the xor borrows from its
// highest bit in the subtraction; so may the bytes above it, but only if there is such a byte.
std::uint64_t not_plain_bytes(std::uint64_t word) {
  const std::uint64_t is_del = (word ^ of_each_byte(0x7f)) - of_each_byte(1);
  return ((word - kBlanks) | word | is_del) & of_each_byte(0x80);
}

template <typename T>
T big_endian(T value) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  if constexpr (sizeof value == 8) return __builtin_bswap64(value);
  if constexpr (sizeof value == 4) return __builtin_bswap32(value);
  return value;
}

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

std::string name_of_comm(std::uint32_t comm) {
  if (comm == kCommWorld) return "world";
  if (comm == kCommLocal) return "local";
  return comm == kCommCross ? "cross" : "comm " + std::to_string(comm);
}

bool same_call(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op && a.comm == b.comm && a.root == b.root &&
         a.seq == b.seq && a.count == b.count && a.counts == b.counts &&
         (a.names == b.names || a.names == 0 || b.names == 0);
}

ScannedName scan_name(std::string_view name) {
  std::uint64_t digest = name.size(), not_plain = 0;
  for_words(name, [&](std::uint64_t word, std::size_t n_bytes) {
    not_plain |= not_plain_bytes(n_bytes == 8 ? word : word | kBlanks << 8 * n_bytes);
    digest = mixed(digest, word);
  });
  const auto folded = static_cast<std::uint32_t>(digest);
  return {folded != 0 ? folded : 1, not_plain == 0};
}

std::uint32_t digest_of_names(std::uint32_t of_first, std::uint32_t of_next) {
  if (of_first == 0 || of_next == 0) return 0;
  const std::uint64_t mixed = (std::uint64_t{of_first} << 32 | of_next) * 0x9e3779b97f4a7c15u;
  const auto result = static_cast<std::uint32_t>(mixed >> 32);
  return result != 0 ? result : 1;
}

void CallClock::begin_at(Clock::time_point time) const {
  began_ = time;
  if (Listener* const listener = std::exchange(listener_, nullptr)) listener->call_began();
}

std::string encode_header(const Operation& operation) {
  std::string out(kHeaderBytes, '\0');
  char* at = out.data();
  const auto put = [&at](auto value) {
    value = big_endian(value);
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  };
  put(kMagic);
  put(kVersion);
  put(static_cast<std::uint8_t>(operation.kind));
  put(static_cast<std::uint8_t>(operation.dtype));
  put(static_cast<std::uint8_t>(operation.op));
  put(operation.comm);
  put(static_cast<std::uint32_t>(operation.root));
  put(operation.counts);
  put(operation.seq);
  put(operation.count);
  put(operation.names);
  if (operation.names != 0) operation.name.copy(at, kNameBytes);
  return out;
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
  operation.names = in.u32();
  (void)in.raw(kNameBytes + 1);
  if (!in.done() || kind < 1 || kind >= static_cast<int>(OpKind::kRecv) || !is_dtype(dtype) || !is_op(op))
    return std::nullopt;
  operation.kind = static_cast<OpKind>(kind);
  operation.dtype = static_cast<drun_dtype>(dtype);
  operation.op = static_cast<drun_op>(op);
  return operation;
}

std::string name_in_header(std::string_view bytes) {
  const auto name = bytes.substr(kHeaderBytes - kNameBytes - 1);
  return clean_line(name.substr(0, name.find('\0')));
}

}  // namespace drun::runtime
