// The steps of the calls among the members of a group on one host: a rank announces its call, arrives at a step, and
// waits until the others have arrived. Finds calls that differ, and ranks that are gone. Moves no data: the slots of
// the Segment are the caller's. docs/collectives.md, "Shared memory inside a host".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/failure_attribution.h"
#include "runtime/src/backend/shm/segment.h"
#include "runtime/src/dtype.h"
#include "runtime/src/failure.h"
#include "runtime/src/group.h"
#include "runtime/src/job_context.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

// One rank's side, owned by its backend; one thread at a time. After a failure give_up() must be called, and no further
// call begins.
class StepBarrier {
 public:
  // `network` has the same members; it says whose connection has closed. The references must outlive the barrier.
  StepBarrier(const JobContext& job_context, const Group& group, Segment& segment, const Backend& network);

  Segment& segment() { return segment_; }
  int rank() const { return rank_; }  // in the group
  int size() const { return size_; }
  std::uint32_t step() const { return step_; }  // our latest
  // True if every rank of the host has a core of its own, so that a waiting rank may spin.
  bool spins() const { return spins_; }

  // Describes the call that begins in the next step. Must come before that step.
  void announce(const Operation& operation);
  // Begins the next step: our data is in its slot, and we need no data of earlier steps any more.
  void arrive();
  // The same, but does not wake sleepers: wait_for_arrivals() does, after it has polled.
  void publish_arrival() {
    ++step_;
    own().arrival(step_).step.publish(step_);
  }
  // Publishes that we have reduced our part of the step.
  void publish_reduced(std::uint32_t step) { own().reduced.move_to(step, own().reduced_sleepers, sleepers_order()); }

  // The waits return one Status in place: to make and move some, of 88 bytes each, would take a tenth of a small call.

  // Waits until all have published our latest step. `first`: it is the first step of a call, whose descriptions are
  // compared.
  Status wait_for_arrivals(const Operation& operation, bool first) {
    Status all = wait_for_all(operation, Phase::kArrived, step_);
    if (first && all && has_other_digest()) all = check_calls(operation);
    return all;
  }

  // The same for a call of one step with `n_bytes` of data. Reads the clock while our
  // data is on its way.
  Status wait_for_peers(const Operation& operation, std::size_t n_bytes) {
    operation.clock.began();
    waited_ = false;
    Status all = wait_for_arrivals(operation, true);
    // False for the last piece of a large call.
    const bool is_whole = operation.count * size_of(operation.dtype) <= kShortBytes;
    if (all && !waited_ && is_whole && n_bytes * static_cast<std::size_t>(size_) <= kShortBytes) {
      operation.clock.ends_at_once();
    }
    return all;
  }

  // Waits until all have reduced their part of the step.
  Status wait_for_reduced(const Operation& operation, std::uint32_t step) {
    return wait_for_all(operation, Phase::kReduced, step);
  }
  // Work that a call does in its thread while it waits. Returns the time for which it need not be called again; its
  // failure is the call's. Without it, a call only waits.
  using Meanwhile = std::function<Outcome<std::chrono::microseconds>()>;
  void meanwhile(Meanwhile work) { meanwhile_ = std::move(work); }

  // The call has succeeded.
  void end_call() { note_.done(job_context_); }
  // Marks this rank as broken and wakes sleepers, so that no rank goes on waiting for it.
  void give_up();

 private:
  // Data of all ranks together that is reduced in well under a microsecond.
  static constexpr std::size_t kShortBytes = 1u << 10;

  enum class Phase { kArrived, kReduced };
  Segment::Control& own() { return segment_.control(rank_); }
  Counter& counter_of(int rank, Phase phase, std::uint32_t step) {
    auto& control = segment_.control(rank);
    return phase == Phase::kArrived ? control.arrival(step).step : control.reduced;
  }
  Sleepers& sleepers_on(int rank, Phase phase, std::uint32_t step) {
    auto& control = segment_.control(rank);
    return phase == Phase::kArrived ? control.sleepers_of(step) : control.reduced_sleepers;
  }

  // True if all ranks order the others when they sleep (counter.h).
  bool sleepers_order();
  Status wait_for_all(const Operation& operation, Phase phase, std::uint32_t step);
  Status sleep(const Operation& operation, Phase phase, int rank, std::uint32_t step);
  // Sleeps until the counter moves, a wake-up, or the end of the time. Does the work of meanwhile() in between.
  Status sleep_for(Counter& counter, Sleepers& sleepers, std::uint32_t step, std::chrono::microseconds time);
  // Fails if some rank will never reach the step: by its memory and process, and by the rendezvous.
  Status check_peers(const Operation& operation, Phase phase, std::uint32_t step);
  Status check_rendezvous(const Operation& operation, Phase phase, int rank, std::uint32_t step);
  bool has_died(int rank, Phase phase, std::uint32_t step);
  tl::unexpected<Failure> has_gone(int rank, const Operation& operation);
  std::vector<int> missing(Phase phase, std::uint32_t step);
  Status timed_out(const Operation& operation, Phase phase, std::uint32_t step);
  // Leaves out our own line, which may still be with the others.
  bool has_other_digest() {
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_ && segment_.control(rank).arrival(step_).digest != digest_) return true;
    }
    return false;
  }
  // Fails if the call of some rank is another one; its digest also differs if only one of the two has a name.
  [[gnu::cold]] Status check_calls(const Operation& operation);

  const JobContext& job_context_;
  const Group& group_;
  Segment& segment_;
  const Backend& network_;
  int rank_, size_;
  bool spins_;
  bool orders_others_;  // order_others_when_asleep(); false where sleep is frequent
  bool all_order_ = false;
  bool waited_ = false;       // wait_for_all() had to wait for longer than a poll takes
  std::uint64_t digest_ = 0;  // of the current call; a copy, because reading the shared one would wait for its line
  std::uint32_t step_;
  WaitNote note_;
  Meanwhile meanwhile_;
};

}  // namespace drun::runtime
