// One collective call as all ranks must agree on it, and the header that precedes every message to check that.
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

// The communicators that every job has. Communicators of a split have numbers above.
inline constexpr std::uint32_t kCommWorld = 0, kCommLocal = 1, kCommCross = 2, kFirstCommOfSplit = 16;

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
  kRecv = 13,  // never in a header: the message is the peer's send
};

// Start time of a call, read lazily: a clock read costs a good part of a small call, and a call whose peers are all
// there never needs it. A copy does not see a later read.
class CallClock {
 public:
  class Listener {
   public:
    virtual void call_began() = 0;

   protected:
    ~Listener() = default;
  };
  // One thread at a time.
  Clock::time_point began() const {
    if (!has_begun()) begin_at(Clock::now());
    return began_;
  }
  bool has_begun() const { return began_ != Clock::time_point{}; }
  void begin_at(Clock::time_point time) const;
  // Sets the listener to call once the start time is known; nullptr for none. It must live until then.
  void tell(Listener* listener) const { listener_ = listener; }
  // Set by a backend that has just read the clock and need not wait: the call ends within the same microsecond.
  void ends_at_once() const { is_short_ = true; }
  bool is_short() const { return is_short_; }

 private:
  mutable Clock::time_point began_{};
  mutable Listener* listener_ = nullptr;
  mutable bool is_short_ = false;
};

struct Operation {
  OpKind kind = OpKind::kBarrier;
  drun_dtype dtype = DRUN_INT8;
  drun_op op = DRUN_SUM;   // of reductions
  int root = 0;            // the root, or the peer of a send or recv; a member of the communicator
  std::uint32_t comm = 0;  // the communicator's number
  std::uint64_t seq = 0;   // number of the call in the communicator, from 1; sends and receives count per peer
  std::uint64_t count = 0;
  std::uint32_t counts = 0;  // allgatherv: a digest of the counts of all ranks
  std::uint32_t names = 0;   // scan_name()'s digest, or that of all names of a fused call; 0: not compared
  std::string name;          // for error texts; compared by its digest; at most kNameBytes if names is not 0
  // Not sent:
  int place = -1;        // of the root among the members that carry out this part of the call; -1: all members do
  bool partial = false;  // combines only some ranks' contributions: averages are not divided yet
  CallClock clock;
  std::chrono::milliseconds timeout{0};
  double prescale = 1, postscale = 1;  // of the input, of the result
  std::chrono::nanoseconds queued{0};  // time that it waited for its turn, if it was not carried out at once

  Clock::time_point deadline() const { return clock.began() + timeout; }
  int root_here() const { return place >= 0 ? place : root; }
};

// "allreduce #12", "allreduce #12 'grad.17'"; of other communicators than the whole job "allreduce[local] #12".
std::string name_of(const Operation& operation);
std::string describe(const Operation& operation);  // "allreduce #12 of 10 f32 (sum)"
std::string name_of_comm(std::uint32_t comm);      // "local", "comm 5"
// True for point-to-point calls, in which only two ranks take part.
inline bool is_of_two(const Operation& operation) {
  return operation.kind == OpKind::kSend || operation.kind == OpKind::kRecv;
}
// True if `a` and `b` are the same call. Names count only if both calls gave one; those of a send and of its receive
// are not compared.
bool same_call(const Operation& a, const Operation& b);
// False for a number that is no OpKind.
inline bool is_kind(int value) { return value >= 1 && value <= static_cast<int>(OpKind::kRecv); }
struct ScannedName {
  std::uint32_t digest;  // of all bytes, also those that no text shows; never 0
  bool is_plain;         // printable ASCII: no text needs to clean it
};
ScannedName scan_name(std::string_view name);
// Combines two digests, in this order. 0 if one of them is 0.
std::uint32_t digest_of_names(std::uint32_t of_first, std::uint32_t of_next);

inline constexpr std::size_t kNameBytes = 63;

// magic:4 version:1 kind:1 dtype:1 op:1 comm:4 root:4 counts:4 seq:8 count:8 names:4 name:64, zero-padded
inline constexpr std::size_t kHeaderBytes = 40 + kNameBytes + 1;
std::string encode_header(const Operation& operation);
// Returns nullopt if `bytes` is not a header. Leaves out the name, which only errors need (name_in_header()).
std::optional<Operation> decode_header(std::string_view bytes);
std::string name_in_header(std::string_view bytes);

}  // namespace drun::runtime
