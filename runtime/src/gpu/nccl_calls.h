// The calls of an NCCL communicator that are under way on its GPU. Each lies between two events of the driver: polling
// these shows which calls have ended, for whom the first one waits, and whether its deadline has passed. docs/gpu.md,
// "Threads and the turn".
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "runtime/src/backend/failure_attribution.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/call_watch.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/group.h"
#include "runtime/src/job_context.h"
#include "runtime/src/operation.h"

namespace drun::runtime::gpu {

// A call, or several that began together.
struct NcclCall {
  Operation operation;    // the first of the calls that began together
  Event begin = nullptr;  // the user's streams have reached the call
  Event end = nullptr;
  std::vector<std::uint64_t> records;  // numbers in the flight recorder
  std::vector<int> peers;              // ranks of the job that it needs; empty: all members
  std::uint64_t number = 0;            // counts the calls
  Clock::duration stopped{};           // time that the process was stopped before it began
};

// Owned by the communicator of `group`; one thread at a time, as that. Never waits for the device.
class NcclCalls {
 public:
  NcclCalls(const JobContext& job_context, const Group& group, Device& device, CallWatch& watch)
      : job_context_(job_context), group_(group), device_(device), watch_(watch) {}

  // Begins the next call of the communicator: numbers it, and begins its records. It must be given to add(), or to
  // close() if it fails or is captured.
  NcclCall begin(const std::vector<const Operation*>& operations);
  // Takes the call's events from the device, if need be those of earlier calls, which it closes if they have ended.
  // Returns the error of cuEventCreate.
  DriverResult take_events(NcclCall& call);
  // The call is enqueued, and under way from here on.
  void add(NcclCall call) { under_way_.push_back(std::move(call)); }
  // Ends the call's records, and returns its events.
  void close(const NcclCall& call, int status);
  // Closes all calls that are under way.
  void forget(int status);

  // Closes the calls that have ended. Returns false if the device can't be used any more: the process is about to end,
  // or the program has taken the GPU back. Publishes a failure.
  Outcome<bool> poll_events();
  // Returns, and publishes, a failure if the deadline of the first call has passed, without the time for which this
  // process was stopped. Publishes for which ranks it waits. Must be called after poll_events().
  Status check_deadline();

  bool empty() const { return under_way_.empty(); }
  const Operation& first() const { return under_way_.front().operation; }  // not if empty()
  // Ranks of the job for which the first call waits, as poll_events() has seen it; empty if it waits for its own GPU,
  // or if there is no call. `number` identifies the call.
  struct Waiting {
    std::vector<int> peers;
    std::uint64_t number = 0;
  };
  Waiting waiting() const;

 private:
  static constexpr std::size_t kClosedTogether = 16;  // one query for so many calls costs less than their events

  std::uint64_t record(const Operation& operation);
  std::vector<int> peers_of(const std::vector<const Operation*>& operations) const;
  std::vector<int> peers_of(const NcclCall& call) const { return call.peers.empty() ? group_.others() : call.peers; }
  void close_first();
  // Closes the oldest calls, if the last of them has ended. Otherwise it does not look again before as many more.
  void close_oldest();
  // True if the event is reached. Publishes a failure.
  Outcome<bool> is_reached(Event event, const Operation& operation);

  const JobContext& job_context_;
  const Group& group_;
  Device& device_;
  CallWatch& watch_;
  std::deque<NcclCall> under_way_;
  WaitNote note_;
  std::uint64_t n_calls_ = 0;
  std::size_t look_at_ = kClosedTogether;  // close_oldest() looks at so many calls under way
  bool has_begun_ = false;                 // the first call no longer waits for its own GPU
};

}  // namespace drun::runtime::gpu
