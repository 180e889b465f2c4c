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

enum class OpKind : std::uint8_t {
  kAllreduce = 1,
  kBroadcast = 2,
  kAllgather = 3,
  kBarrier = 4,
  kReduce = 5,
  kReduceScatter = 6,
  kAllgatherv = 7,
  kGather = 8,
  kScatter = 9,
  kAlltoall = 10,
  kAlltoallv = 11,
  kSend = 12,
  kRecv = 13,  // in no header: what comes is a send
};

struct Operation {
  OpKind kind = OpKind::kBarrier;
  drun_dtype dtype = DRUN_INT8;
  drun_op op = DRUN_SUM;  // of what reduces
  int root = 0;           // of what has one; of a send to whom, of a recv from whom
  std::uint64_t seq = 0;  // counts the calls of the communicator, from 1; sends to and from each rank apart
  std::uint64_t count = 0;
  std::uint32_t counts = 0;  // allgatherv: a digest of the counts of all ranks
  // Not sent:
  Clock::time_point deadline{};
  std::chrono::milliseconds timeout{0};  // how long that was, for messages
  double prescale = 1, postscale = 1;    // of what is given, of the result
  std::string name;                      // that the program gave it, for messages
};

std::string name_of(const Operation& operation);   // "allreduce #12", "allreduce #12 'grad.17'"
std::string describe(const Operation& operation);  // "allreduce #12 of 10 f32 (sum)"
bool same_call(const Operation& a, const Operation& b);

std::string in_words(std::chrono::milliseconds time);  // "300 s", "1500 ms"

// magic:4 version:1 kind:1 dtype:1 op:1 root:4 counts:4 seq:8 count:8
inline constexpr std::size_t kHeaderBytes = 32;
std::string encode_header(const Operation& operation);
// Nothing if it is not a header.
std::optional<Operation> decode_header(std::string_view bytes);

}  // namespace drun::runtime
