// One collective call as all ranks must agree on it, and the header that goes ahead of every message to check that.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/include/drun/drun.h"

namespace drun::runtime {

using Clock = std::chrono::steady_clock;

enum class OpKind : std::uint8_t { kAllreduce = 1, kBroadcast = 2, kAllgather = 3, kBarrier = 4 };

struct Operation {
  OpKind kind = OpKind::kBarrier;
  drun_dtype dtype = DRUN_INT8;
  drun_op op = DRUN_SUM;  // allreduce
  int root = 0;           // broadcast
  std::uint64_t seq = 0;  // counts the calls of the communicator, from 1
  std::uint64_t count = 0;
  // Not sent:
  Clock::time_point deadline{};
  std::chrono::milliseconds timeout{0};  // how long that was, for messages
};

std::string name_of(const Operation& operation);   // "allreduce #12"
std::string describe(const Operation& operation);  // "allreduce #12 of 10 f32 (sum)"
bool same_call(const Operation& a, const Operation& b);

// magic:4 version:1 kind:1 dtype:1 op:1 root:4 zero:4 seq:8 count:8
inline constexpr std::size_t kHeaderBytes = 32;
std::string encode_header(const Operation& operation);
// Nothing if it is not a header.
std::optional<Operation> decode_header(std::string_view bytes);

}  // namespace drun::runtime
