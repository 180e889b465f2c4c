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

// The communicators that every job has. The numbers of those that come of a split are above.
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
  kRecv = 13,  // in no header: what comes is a send
};

// When a call began. To read the clock takes a good part of the time of a small call, and one for which everybody is
// there has no use for it: it is read when somebody first asks. Copies know what is known when they are made.
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
  // Told once it is known; nullptr: nobody. Outlives that.
  void tell(Listener* listener) const { listener_ = listener; }
  // By a backend that has just asked: it need not wait for anybody, and the call ends in the same microsecond.
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
  drun_op op = DRUN_SUM;   // of what reduces
  int root = 0;            // of what has one; of a send to whom, of a recv from whom; a member of the communicator
  std::uint32_t comm = 0;  // the communicator's number
  std::uint64_t seq = 0;   // counts the calls of the communicator, from 1; sends to and from each rank apart
  std::uint64_t count = 0;
  std::uint32_t counts = 0;  // allgatherv: a digest of the counts of all ranks
  std::uint32_t names = 0;   // scan_name()'s digest, of several calls in one that of all of them; 0: not compared
  std::string name;          // for messages, and compared by its digest; at most kNameBytes if names is not 0
  // Not sent:
  int place = -1;        // of the root among those that carry out this part of the call, if these are not all
  bool partial = false;  // not all ranks' contributions come together in this part: averages are not divided yet
  CallClock clock;
  std::chrono::milliseconds timeout{0};
  double prescale = 1, postscale = 1;  // of what is given, of the result
  std::chrono::nanoseconds queued{0};  // for how long it waited for its turn, if it was not carried out at once

  Clock::time_point deadline() const { return clock.began() + timeout; }
  int root_here() const { return place >= 0 ? place : root; }
};

// "allreduce #12", "allreduce #12 'grad.17'"; of other communicators than the whole job "allreduce[local] #12".
std::string name_of(const Operation& operation);
std::string describe(const Operation& operation);  // "allreduce #12 of 10 f32 (sum)"
std::string name_of_comm(std::uint32_t comm);      // "local", "comm 5"
// What passes between two ranks is nobody else's business.
inline bool is_of_two(const Operation& operation) {
  return operation.kind == OpKind::kSend || operation.kind == OpKind::kRecv;
}
// Names differ if both gave one, and they do; those of a send and of its receive are the business of each.
bool same_call(const Operation& a, const Operation& b);
struct ScannedName {
  std::uint32_t digest;  // of all its bytes, also those that no text shows; not 0
  bool has_controls;     // what would break a line: bytes below ' ', and DEL
};
ScannedName scan_name(std::string_view name);
// In this order. 0 if one of them is.
std::uint32_t digest_of_names(std::uint32_t of_first, std::uint32_t of_next);

std::string in_words(std::chrono::milliseconds time);  // "300 s", "1500 ms"

inline constexpr std::size_t kNameBytes = 63;

// magic:4 version:1 kind:1 dtype:1 op:1 comm:4 root:4 counts:4 seq:8 count:8 names:4 name:64, which zeros fill up
inline constexpr std::size_t kHeaderBytes = 40 + kNameBytes + 1;
std::string encode_header(const Operation& operation);
// Nothing if it is not a header. Without the name, which only an error needs.
std::optional<Operation> decode_header(std::string_view bytes);
std::string name_in_header(std::string_view bytes);

}  // namespace drun::runtime
