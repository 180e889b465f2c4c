#include "runtime/src/backend/shm/step_barrier.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/src/backend/shm/announced_call.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace drun::runtime {
namespace {

// With more ranks, the interrupts for all of them when one goes to sleep cost more than the others' fences.
constexpr int kMaxOrder = 8;
constexpr int kEagerPolls = 100;  // polls without a pause: in a small call the others arrive at once
constexpr std::chrono::microseconds kSpinTime{50}, kYieldTime{100};
constexpr std::chrono::milliseconds kPollEvery{1000}, kPollWait{5};

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A rank must not spin on a core that another rank needs to arrive.
bool has_core_for_each(int n_ranks) {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) >= n_ranks;
}

std::uint32_t last_step(const Segment::Control& control) {
  const std::uint32_t a = control.arrivals[0].step.value(), b = control.arrivals[1].step.value();
  return static_cast<std::int32_t>(a - b) > 0 ? a : b;
}

bool poll_eagerly(const Counter& counter, std::uint32_t step) {
  for (int i = 0; i < kEagerPolls; ++i) {
    if (counter.has_reached(step)) return true;
  }
  return false;
}

bool spin(const Counter& counter, std::uint32_t step) {
  const auto until = Clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 32; ++i) {
      relax();
      if (counter.has_reached(step)) return true;
    }
  } while (Clock::now() < until);
  return false;
}

// Yields the core to its other ranks, one of which is the one that we wait for: cheaper than to sleep and be woken.
bool yield(const Counter& counter, std::uint32_t step) {
  const auto until = Clock::now() + kYieldTime;
  do {
    for (int i = 0; i < 4; ++i) {
      ::sched_yield();
      if (counter.has_reached(step)) return true;
    }
  } while (Clock::now() < until);
  return false;
}

}  // namespace

StepBarrier::StepBarrier(const JobContext& job_context, const Group& group, Segment& segment, const Backend& network)
    : job_context_(job_context),
      group_(group),
      segment_(segment),
      network_(network),
      rank_(group.own),
      size_(group.size()),
      spins_(has_core_for_each(job_context.client->welcome().local_size)),
      orders_others_(spins_ && size_ <= kMaxOrder && order_others_when_asleep()),
      step_(last_step(segment_.control(rank_))) {
  own().orders_others.store(orders_others_ ? 1 : 0, std::memory_order_release);
  own().process.tell();
}

void StepBarrier::announce(const Operation& operation) {
  write_call(operation, own().calls[(step_ + 1) % 2]);
  own().arrival(step_ + 1).digest = digest_ = digest_of(operation);
}

void StepBarrier::arrive() {
  publish_arrival();
  own().arrival(step_).step.settle(own().sleepers_of(step_), sleepers_order());
}

bool StepBarrier::sleepers_order() {
  if (all_order_) return true;
  for (int rank = 0; rank < size_; ++rank) {
    if (segment_.control(rank).orders_others.load(std::memory_order_acquire) == 0) return false;
  }
  return all_order_ = true;
}

void StepBarrier::give_up() {
  own().broken.store(1, std::memory_order_release);
  for (int rank = 0; rank < size_; ++rank) {
    for (auto& arrival : segment_.control(rank).arrivals) arrival.step.wake();
    segment_.control(rank).reduced.wake();
  }
}

Status StepBarrier::check_calls(const Operation& operation) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || segment_.control(rank).arrival(step_).digest == digest_) continue;
    const Segment::Call call = segment_.control(rank).calls[step_ % 2];  // a copy: what was checked must not change
    auto theirs = read_call(call);
    if (theirs && same_call(*theirs, operation)) continue;  // one of the two has no name
    if (theirs) theirs->name = name_in(call);
    const std::string told = theirs ? describe_in(group_, std::move(*theirs)) : "something that is no call";
    return tl::unexpected<Failure>(mismatch_failure(job_context_, group_, operation, group_.world_rank(rank), told));
  }
  return {};
}

Status StepBarrier::wait_for_all(const Operation& operation, Phase phase, std::uint32_t step) {
  // Before the first wait, a fence would only make the others' lines wait for ours.
  bool settled = phase == Phase::kReduced;
  const auto settle = [&] {
    if (!std::exchange(settled, true)) own().arrival(step).step.settle(own().sleepers_of(step), sleepers_order());
  };
  if (!spins_) settle();
  for (int i = 1; i < size_; ++i) {
    const int rank = (rank_ + i) % size_;
    Counter& counter = counter_of(rank, phase, step);
    if (counter.has_reached(step) || (spins_ && poll_eagerly(counter, step))) continue;
    waited_ = true;
    settle();
    if (spins_ ? spin(counter, step) : yield(counter, step)) continue;
    if (auto there = sleep(operation, phase, rank, step); !there) return there;
  }
  settle();
  return {};
}

Status StepBarrier::sleep(const Operation& operation, Phase phase, int rank, std::uint32_t step) {
  Counter& counter = counter_of(rank, phase, step);
  auto poll_all = Clock::now() + kPollEvery;
  for (;;) {
    const auto left = job_context_.call_deadline.left(operation);
    if (left.count() <= 0) return timed_out(operation, phase, step);
    note_.waiting(job_context_, group_, operation, [&] { return missing(phase, step); });
    const auto time = std::min(left + std::chrono::milliseconds(1), CallDeadline::kPollInterval);
    if (auto slept = sleep_for(counter, sleepers_on(rank, phase, step), step, time); !slept) {
      return slept;
    }
    if (counter.has_reached(step)) return {};
    if (auto alive = check_alive(job_context_, name_of(operation)); !alive) return alive;
    if (auto there = check_peers(operation, phase, step); !there) return there;
    if (Clock::now() >= poll_all) {
      if (auto there = check_rendezvous(operation, phase, rank, step); !there) return there;
      poll_all = Clock::now() + kPollEvery;
    }
    if (network_.has_closed(rank)) {
      if (counter.has_reached(step)) return {};
      return has_gone(rank, operation);
    }
  }
}

Status StepBarrier::check_peers(const Operation& operation, Phase phase, std::uint32_t step) {
  for (int other = 0; other < size_; ++other) {
    if (segment_.control(other).broken.load(std::memory_order_acquire) != 0) {
      return tl::unexpected<Failure>(explain_closed(job_context_, group_.world_rank(other), name_of(operation)));
    }
    if (has_died(other, phase, step)) return has_gone(other, operation);
  }
  return {};
}

// For failures that only the rendezvous knows.
Status StepBarrier::check_rendezvous(const Operation& operation, Phase phase, int rank, std::uint32_t step) {
  if (auto reason = published_failure(job_context_, name_of(operation), kPollWait)) {
    return tl::unexpected<Failure>(std::move(*reason));
  }
  const int waited_for = group_.world_rank(rank);
  if (has_left(job_context_, waited_for, kPollWait) && !counter_of(rank, phase, step).has_reached(step)) {
    Failure gone{DRUN_ERROR_PEER, job_context_.name_of(waited_for) + " left before " + name_of(operation), waited_for,
                 job_context_.host_of(waited_for)};
    publish_failure(job_context_, gone);
    return tl::unexpected<Failure>(std::move(gone));
  }
  return {};
}

Status StepBarrier::sleep_for(Counter& counter, Sleepers& sleepers, std::uint32_t step,
                              std::chrono::microseconds time) {
  const auto until = Clock::now() + time;
  while (meanwhile_ && !counter.has_reached(step)) {
    const auto may_sleep = meanwhile_();
    if (!may_sleep) return tl::unexpected<Failure>(may_sleep.error());
    if (*may_sleep >= time || Clock::now() >= until) break;
    if (may_sleep->count() > 0) counter.sleep(step, *may_sleep, sleepers, orders_others_);
  }
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now());
  if (left.count() > 0) counter.sleep(step, left, sleepers, orders_others_);
  return {};
}

// True if the process ended before the step: one that ended after it has done its part. The check is repeated,
// because a process ends after all its writes.
bool StepBarrier::has_died(int rank, Phase phase, std::uint32_t step) {
  const Counter& counter = counter_of(rank, phase, step);
  return !counter.has_reached(step) && segment_.control(rank).process.has_ended() && !counter.has_reached(step);
}

tl::unexpected<Failure> StepBarrier::has_gone(int rank, const Operation& operation) {
  const auto& process = segment_.control(rank).process;
  return tl::unexpected<Failure>(explain_closed(job_context_, group_.world_rank(rank), name_of(operation),
                                                [&] { return process.has_ended() ? process.pid() : 0; }));
}

std::vector<int> StepBarrier::missing(Phase phase, std::uint32_t step) {
  std::vector<int> result;
  for (int rank = 0; rank < size_; ++rank) {
    if (!counter_of(rank, phase, step).has_reached(step)) result.push_back(group_.world_rank(rank));
  }
  return result;
}

Status StepBarrier::timed_out(const Operation& operation, Phase phase, std::uint32_t step) {
  const auto waited_for = missing(phase, step);
  if (waited_for.empty()) return {};  // all have arrived just now
  return tl::unexpected<Failure>(timeout_failure(job_context_, group_, operation, waited_for));
}

}  // namespace drun::runtime
