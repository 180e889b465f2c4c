#include "runtime/src/backend/shm/shm_backend.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/src/backend/failure_attribution.h"
#include "runtime/src/call_deadline.h"
#include "runtime/src/copy.h"
#include "runtime/src/dtype.h"
#include "runtime/src/reduce.h"
#include "runtime/src/words.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace drun::runtime {
namespace {

// Up to this size every rank reduces everything: saving a wait is worth more than the arithmetic costs.
constexpr std::size_t kSmallBytes = 8u << 10;
// Data of all ranks together that is reduced in well under a microsecond.
constexpr std::size_t kShortBytes = 1u << 10;
// Pieces of a large reduction are so small that the data in a rank's slots stays in the second-level cache beside the
// user's memory, but not so small that the steps between many ranks cost more. A smaller reduction has pieces as large
// as a slot.
constexpr std::size_t kLargeBytes = 1u << 20, kPieceOfLarge = 128u << 10, kMinPart = 16u << 10;
// With more ranks, the interrupts for all of them when one goes to sleep cost more than the others' fences.
constexpr int kMaxOrder = 8;
// A block stays in the first-level cache from one operand to the next, while the next one is fetched.
constexpr std::size_t kBlockBytes = 2u << 10;
constexpr std::size_t kLineBytes = 64;
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

// Fetches lines into this core's cache for writing: one transfer instead of one to read and one to own.
void fetch_to_write(const char* data, std::size_t n_bytes) {
  for (std::size_t at = 0; at < n_bytes; at += kLineBytes) {
#if defined(__x86_64__)  // for which the builtin does not emit this instruction
    asm volatile("prefetchw %0" : : "m"(data[at]));
#else
    __builtin_prefetch(data + at, 1);
#endif
  }
}

// Digest of all fields of Segment::Call.
std::uint64_t digest_of(const Operation& operation) {
  const auto halves = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; };
  const auto kinds = static_cast<std::uint32_t>(operation.kind) << 16 |
                     static_cast<std::uint32_t>(operation.dtype) << 8 | static_cast<std::uint32_t>(operation.op);
  // Two chains, which run in parallel.
  const std::uint64_t one = mixed(mixed(1, operation.seq ^ std::uint64_t{operation.names} << 32), operation.count);
  const std::uint64_t other = mixed(mixed(2, halves(operation.counts, operation.comm)),
                                    halves(static_cast<std::uint32_t>(operation.root), kinds));
  return mixed(one, other);
}

std::uint32_t last_step(const Segment::Control& control) {
  const std::uint32_t a = control.arrivals[0].step.value(), b = control.arrivals[1].step.value();
  return static_cast<std::int32_t>(a - b) > 0 ? a : b;
}

class ShmBackendImpl final : public ShmBackend {
 public:
  ShmBackendImpl(const JobContext& job_context, const Group& group, std::shared_ptr<Segment> segment,
                 std::unique_ptr<Backend> network)
      : job_context_(job_context),
        group_(group),
        segment_(std::move(segment)),
        network_(std::move(network)),
        rank_(group.own),
        size_(group.size()),
        spins_(has_core_for_each(job_context.client->welcome().local_size)),
        orders_others_(spins_ && size_ <= kMaxOrder && order_others_when_asleep()),
        step_(last_step(segment_->control(rank_))) {
    own().orders_others.store(orders_others_ ? 1 : 0, std::memory_order_release);
    own().process.tell();
  }

  Status allreduce(const Operation& operation, const Span& data) override {
    return allreduce_from(operation, data.data, data);
  }
  Status allreduce_from(const Operation& operation, const char* from, const Span& data) override {
    return finish(data.n_bytes() <= kSmallBytes ? reduce_at_once(operation, from, data)
                                                : reduce_in_parts(operation, from, data, true));
  }
  // The other contents of `data` afterwards are undefined for the caller.
  Status reduce(const Operation& operation, const Span& data) override {
    if (data.n_bytes() <= kSmallBytes) return allreduce(operation, data);
    return finish(reduce_in_parts(operation, data.data, data, rank_ == operation.root_here()));
  }
  Status reduce_scatter(const Operation& operation, const Span& data) override {
    const auto n = static_cast<std::size_t>(size_);
    return reduce_to_blocks(operation, data, equal_blocks(n, data.n_bytes() / n));
  }
  Status reduce_to_blocks(const Operation& operation, const Span& data, const std::vector<Block>& blocks) override {
    return finish(reduce_blocks(operation, data, blocks));
  }
  void meanwhile(Meanwhile work) override { meanwhile_ = std::move(work); }
  Status broadcast(const Operation& operation, void* data, std::size_t n_bytes) override {
    return finish(broadcast_pieces(operation, static_cast<char*>(data), n_bytes));
  }
  Status allgather(const Operation& operation, void* data, const std::vector<Block>& blocks) override {
    return finish(allgather_pieces(operation, static_cast<char*>(data), blocks));
  }
  // These calls go from rank to rank, over the network's loopback.
  Status gather(const Operation& operation, const void* send, void* recv) override {
    return finish(network_->gather(operation, send, recv));
  }
  Status scatter(const Operation& operation, const void* send, void* recv) override {
    return finish(network_->scatter(operation, send, recv));
  }
  Status alltoall(const Operation& operation, const void* send, const std::vector<Block>& send_blocks, void* recv,
                  const std::vector<Block>& recv_blocks) override {
    return finish(network_->alltoall(operation, send, send_blocks, recv, recv_blocks));
  }
  Status transfer(const std::vector<Transfer>& transfers) override { return finish(network_->transfer(transfers)); }
  Status adasum(const Operation& operation, const Span& data) override {
    return finish(network_->adasum(operation, data));
  }
  Status barrier(const Operation& operation) override {
    announce(operation);
    publish_arrival();
    return finish(wait_for_peers(operation, 0));
  }
  bool asks_for_time() const override { return true; }
  bool has_closed(int rank) const override { return network_->has_closed(rank); }
  // Marks this rank as broken and wakes sleepers, so that no rank goes on waiting for it.
  void close() override {
    own().broken.store(1, std::memory_order_release);
    for (int rank = 0; rank < size_; ++rank) {
      for (auto& arrival : segment_->control(rank).arrivals) arrival.step.wake();
      segment_->control(rank).reduced.wake();
    }
    network_->close();
  }

 private:
  Segment::Control& own() { return segment_->control(rank_); }

  // Offset in bytes of a rank's part in a piece; for rank `size`: the end.
  std::size_t begin_of_part(const Span& piece, int rank) const {
    return part_begin(piece.count, static_cast<std::size_t>(size_), static_cast<std::size_t>(rank)) *
           size_of(piece.dtype);
  }

  void announce(const Operation& operation) {
    auto& call = own().calls[(step_ + 1) % 2];
    call.seq = operation.seq;
    call.count = operation.count;
    call.counts = operation.counts;
    call.comm = operation.comm;
    call.root = operation.root;
    call.kind = static_cast<std::uint8_t>(operation.kind);
    call.dtype = static_cast<std::uint8_t>(operation.dtype);
    call.op = static_cast<std::uint8_t>(operation.op);
    call.names = operation.names;
    if (operation.names != 0) {
      char* at = call.name;
      for_words(operation.name, [&at](std::uint64_t word, std::size_t) {
        std::memcpy(at, &word, sizeof word);
        at += sizeof word;
      });
    }
    own().arrival(step_ + 1).digest = digest_ = digest_of(operation);
  }

  // Begins the next step: our data is in its slot, and we need no data of earlier steps any more.
  void arrive() {
    publish_arrival();
    own().arrival(step_).step.settle(own().sleepers_of(step_), sleepers_order());
  }
  // Does not wake sleepers: wait_for_arrivals() does, after it has polled.
  void publish_arrival() {
    ++step_;
    own().arrival(step_).step.publish(step_);
  }

  bool sleepers_order() {
    if (all_order_) return true;
    for (int rank = 0; rank < size_; ++rank) {
      if (segment_->control(rank).orders_others.load(std::memory_order_acquire) == 0) return false;
    }
    return all_order_ = true;
  }

  // Reduces the data at `from`, which may be the place of the result.
  Status reduce_at_once(const Operation& operation, const char* from, const Span& data) {
    announce(operation);
    const bool fits = data.n_bytes() <= sizeof(Segment::Arrival::data);
    const auto given = [&](int rank, std::uint32_t step) {
      return fits ? segment_->control(rank).arrival(step).data : segment_->given(rank, step);
    };
    if (data.count > 0) std::memcpy(given(rank_, step_ + 1), from, data.n_bytes());
    publish_arrival();
    if (auto all = wait_for_peers(operation, data.n_bytes()); !all) return all;
    if (data.count == 0) return {};
    // Read our own data at `from`: the cache line of its copy may still be with the others. `from` is the result's
    // place or does not overlap it, and is only one of the first two operands.
    const auto first = [&](int rank) { return rank == rank_ ? from : given(rank, step_); };
    combine(data.data, first(0), first(1), data.count, data.dtype, operation.op);
    for (int rank = 2; rank < size_; ++rank) {
      accumulate(data.data, given(rank, step_), data.count, data.dtype, operation.op);
    }
    drun::runtime::finish(operation, data, size_);
    // No rank needs our data of the step before any more: fetch its line while the caller works.
    if (spins_) fetch_to_write(reinterpret_cast<const char*>(&own().arrival(step_ + 1)), 1);
    return {};
  }

  // Reduces each piece in two phases: every rank reduces a part, and then copies the others' parts unless it does not
  // need them. The data of the next piece is written before that, so that no rank waits for a copy. `from` as above.
  Status reduce_in_parts(const Operation& operation, const char* from, const Span& data, bool takes) {
    operation.clock.began();
    const std::size_t element_bytes = size_of(data.dtype);
    const std::size_t of_large = std::max(kPieceOfLarge, kMinPart * static_cast<std::size_t>(size_));
    const std::size_t most = data.n_bytes() > kLargeBytes ? of_large : Segment::kSlotBytes;
    const std::size_t per_piece = std::min(most, Segment::kSlotBytes) / element_bytes;
    const auto piece_at = [&](std::size_t first) { return data.part(first, std::min(per_piece, data.count - first)); };
    const auto source_of = [&](const Span& piece) { return from + (piece.data - data.data); };
    announce(operation);
    // Calls without this phase do not move the counter: if it fell behind by half of its range, it would seem to be
    // ahead.
    own().reduced.move_to(step_, own().reduced_sleepers, sleepers_order());
    copy_contribution(source_of(piece_at(0)), piece_at(0));
    arrive();
    for (std::size_t done = 0; done < data.count;) {
      const Span piece = piece_at(done);
      const std::uint32_t step = step_;
      if (auto all = wait_for_arrivals(operation, done == 0); !all) return all;
      reduce_own_part(operation, source_of(piece), piece, step);
      own().reduced.move_to(step, own().reduced_sleepers, sleepers_order());
      done += piece.count;
      if (done < data.count) {
        copy_contribution(source_of(piece_at(done)), piece_at(done));
        arrive();
      }
      if (!takes) continue;
      if (auto all = wait_for_all(operation, Phase::kReduced, step); !all) return all;
      for (int rank = 0; rank < size_; ++rank) {
        if (rank == rank_) continue;
        const std::size_t begin = begin_of_part(piece, rank);
        take(piece.data + begin, result_of(rank, step) + begin, begin_of_part(piece, rank + 1) - begin);
      }
    }
    return {};
  }

  // Writes all parts except our own to our slot.
  void copy_contribution(const char* from, const Span& piece) {
    char* slot = segment_->given(rank_, step_ + 1);
    const std::size_t begin = begin_of_part(piece, rank_), end = begin_of_part(piece, rank_ + 1);
    copy_bytes(slot, from, begin);
    copy_bytes(slot + end, from + end, piece.n_bytes() - end);
  }

  // Place of a rank's reduced part of a step. With two ranks it is where the other one has written it: each cache line
  // then moves there and back once, and the rank that writes the next piece owns it already.
  char* result_of(int rank, std::uint32_t step) {
    return size_ == 2 ? segment_->given(1 - rank, step) : segment_->result(rank, step);
  }

  void take(char* to, const char* from, std::size_t n_bytes) {
    if (size_ > 2) {
      copy_bytes(to, from, n_bytes);
      return;
    }
    fetch_to_write(from, std::min(kBlockBytes, n_bytes));
    for (std::size_t at = 0; at < n_bytes; at += kBlockBytes) {
      const std::size_t n = std::min(kBlockBytes, n_bytes - at);
      fetch_to_write(from + at + n, std::min(kBlockBytes, n_bytes - at - n));
      fetch_to_write(to + at + n, std::min(kBlockBytes, n_bytes - at - n));
      copy_bytes(to + at, from + at, n);
    }
  }

  // Reduces in the order of ranks, so that the result does not depend on which rank has the part.
  void reduce_own_part(const Operation& operation, const char* from, const Span& piece, std::uint32_t step) {
    const std::size_t end = begin_of_part(piece, rank_ + 1);
    char* result = result_of(rank_, step);
    for (std::size_t at = begin_of_part(piece, rank_); at < end;) {
      const std::size_t n_bytes = std::min(kBlockBytes, end - at), n = n_bytes / size_of(piece.dtype);
      const auto source = [&](int rank) { return (rank == rank_ ? from : segment_->given(rank, step)) + at; };
      fetch_to_write(result + at + n_bytes, std::min(kBlockBytes, end - at - n_bytes));
      fetch_to_write(piece.data + at + n_bytes, std::min(kBlockBytes, end - at - n_bytes));
      combine(result + at, source(0), source(1), n, piece.dtype, operation.op);
      for (int rank = 2; rank < size_; ++rank) accumulate(result + at, source(rank), n, piece.dtype, operation.op);
      drun::runtime::finish(operation, {result + at, n, piece.dtype}, size_);
      copy_bytes(piece.data + at, result + at, n_bytes);
      at += n_bytes;
    }
  }

  // In each step a piece of every member's block: each rank writes its data for the others' blocks, and reduces its own
  // block.
  Status reduce_blocks(const Operation& operation, const Span& data, const std::vector<Block>& blocks) {
    const std::size_t element_bytes = size_of(data.dtype);
    const std::size_t most = Segment::kSlotBytes / static_cast<std::size_t>(size_) / element_bytes * element_bytes;
    std::size_t longest = 0;
    for (const auto& block : blocks) longest = std::max(longest, block.n_bytes);
    announce(operation);
    std::size_t done = 0;
    do {
      const auto piece = [&](int member) {
        const Block& block = blocks[static_cast<std::size_t>(member)];
        const std::size_t skipped = std::min(done, block.n_bytes);
        return Block{block.offset + skipped, std::min(most, block.n_bytes - skipped)};
      };
      char* slot = segment_->given(rank_, step_ + 1);
      for (int member = 0; member < size_; ++member) {
        const Block theirs = piece(member);
        if (member == rank_ || theirs.n_bytes == 0) continue;
        copy_bytes(slot + static_cast<std::size_t>(member) * most, data.data + theirs.offset, theirs.n_bytes);
      }
      arrive();
      if (auto all = wait_for_arrivals(operation, done == 0); !all) return all;
      reduce_own_block(operation, data, piece(rank_), static_cast<std::size_t>(rank_) * most);
      done += most;
    } while (done < longest);
    return {};
  }

  // Reduces in the order of ranks. `place`: offset of the block in the others' slots.
  void reduce_own_block(const Operation& operation, const Span& data, const Block& ours, std::size_t place) {
    alignas(64) char sum[kBlockBytes];
    for (std::size_t at = 0; at < ours.n_bytes; at += kBlockBytes) {
      const std::size_t n_bytes = std::min(kBlockBytes, ours.n_bytes - at), n = n_bytes / size_of(data.dtype);
      char* own = data.data + ours.offset + at;
      const auto source = [&](int rank) { return rank == rank_ ? own : segment_->given(rank, step_) + place + at; };
      copy_bytes(sum, source(0), n_bytes);
      for (int rank = 1; rank < size_; ++rank) accumulate(sum, source(rank), n, data.dtype, operation.op);
      drun::runtime::finish(operation, {sum, n, data.dtype}, size_);
      copy_bytes(own, sum, n_bytes);
    }
  }

  Status broadcast_pieces(const Operation& operation, char* data, std::size_t total) {
    const bool is_root = rank_ == operation.root_here();
    announce(operation);
    std::size_t done = 0;
    do {
      const std::size_t n_bytes = std::min(Segment::kSlotBytes, total - done);
      if (is_root && n_bytes > 0) copy_bytes(segment_->given(rank_, step_ + 1), data + done, n_bytes);
      arrive();
      if (auto all = wait_for_arrivals(operation, done == 0); !all) return all;
      if (!is_root && n_bytes > 0) {
        copy_bytes(data + done, segment_->given(operation.root_here(), step_), n_bytes);
      }
      done += n_bytes;
    } while (done < total);
    return {};
  }

  Status allgather_pieces(const Operation& operation, char* data, const std::vector<Block>& blocks) {
    std::size_t longest = 0;
    for (const auto& block : blocks) longest = std::max(longest, block.n_bytes);
    announce(operation);
    std::size_t done = 0;
    do {
      // The piece of the rank's block in this step.
      const auto now = [&](int rank) {
        const Block& block = blocks[static_cast<std::size_t>(rank)];
        const std::size_t skipped = std::min(done, block.n_bytes);
        return Block{block.offset + skipped, std::min(Segment::kSlotBytes, block.n_bytes - skipped)};
      };
      const Block ours = now(rank_);
      if (ours.n_bytes > 0) copy_bytes(segment_->given(rank_, step_ + 1), data + ours.offset, ours.n_bytes);
      arrive();
      if (auto all = wait_for_arrivals(operation, done == 0); !all) return all;
      for (int rank = 0; rank < size_; ++rank) {
        const Block theirs = now(rank);
        if (rank == rank_ || theirs.n_bytes == 0) continue;
        copy_bytes(data + theirs.offset, segment_->given(rank, step_), theirs.n_bytes);
      }
      done += Segment::kSlotBytes;
    } while (done < longest);
    return {};
  }

  enum class Phase { kArrived, kReduced };
  Counter& counter_of(int rank, Phase phase, std::uint32_t step) {
    auto& control = segment_->control(rank);
    return phase == Phase::kArrived ? control.arrival(step).step : control.reduced;
  }
  Sleepers& sleepers_on(int rank, Phase phase, std::uint32_t step) {
    auto& control = segment_->control(rank);
    return phase == Phase::kArrived ? control.sleepers_of(step) : control.reduced_sleepers;
  }

  // Waits until all have published our latest step. `first`: it is the first step of a call, whose descriptions are
  // compared.
  Status wait_for_arrivals(const Operation& operation, bool first) {
    if (auto all = wait_for_all(operation, Phase::kArrived, step_); !all) return all;
    return first ? check_calls(operation) : Status{};
  }

  // The same for a call of one step. Reads the clock while our data is on its way.
  Status wait_for_peers(const Operation& operation, std::size_t n_bytes) {
    operation.clock.began();
    waited_ = false;
    auto all = wait_for_arrivals(operation, true);
    // False for the last piece of a large call.
    const bool is_whole = operation.count * size_of(operation.dtype) <= kShortBytes;
    if (all && !waited_ && is_whole && n_bytes * static_cast<std::size_t>(size_) <= kShortBytes)
      operation.clock.ends_at_once();
    return all;
  }

  Status wait_for_all(const Operation& operation, Phase phase, std::uint32_t step) {
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

  static bool poll_eagerly(const Counter& counter, std::uint32_t step) {
    for (int i = 0; i < kEagerPolls; ++i) {
      if (counter.has_reached(step)) return true;
    }
    return false;
  }

  static bool spin(const Counter& counter, std::uint32_t step) {
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
  static bool yield(const Counter& counter, std::uint32_t step) {
    const auto until = Clock::now() + kYieldTime;
    do {
      for (int i = 0; i < 4; ++i) {
        ::sched_yield();
        if (counter.has_reached(step)) return true;
      }
    } while (Clock::now() < until);
    return false;
  }

  Status sleep(const Operation& operation, Phase phase, int rank, std::uint32_t step) {
    Counter& counter = counter_of(rank, phase, step);
    auto poll_all = Clock::now() + kPollEvery;
    for (;;) {
      const auto left = call_deadline_.left(operation);
      if (left.count() <= 0) return timed_out(operation, phase, step);
      note_.waiting(job_context_, group_, operation, [&] { return missing(phase, step); });
      const auto time = std::min(left + std::chrono::milliseconds(1), CallDeadline::kPollInterval);
      if (auto slept = sleep_for(counter, sleepers_on(rank, phase, step), step, time); !slept) {
        return slept;
      }
      if (counter.has_reached(step)) return {};
      if (auto alive = check_alive(job_context_, name_of(operation)); !alive) return alive;
      for (int other = 0; other < size_; ++other) {
        if (segment_->control(other).broken.load(std::memory_order_acquire) != 0) {
          return tl::unexpected<Failure>(explain_closed(job_context_, group_.world_rank(other), name_of(operation)));
        }
        if (has_died(other, phase, step)) return has_gone(other, operation);
      }
      if (Clock::now() >= poll_all) {  // for failures that only the rendezvous knows
        if (auto reason = published_failure(job_context_, name_of(operation), kPollWait)) {
          return tl::unexpected<Failure>(std::move(*reason));
        }
        const int waited_for = group_.world_rank(rank);
        if (has_left(job_context_, waited_for, kPollWait) && !counter.has_reached(step)) {
          Failure gone{DRUN_ERROR_PEER, job_context_.name_of(waited_for) + " left before " + name_of(operation),
                       waited_for, job_context_.host_of(waited_for)};
          publish_failure(job_context_, gone);
          return tl::unexpected<Failure>(std::move(gone));
        }
        poll_all = Clock::now() + kPollEvery;
      }
      if (network_->has_closed(rank)) {
        if (counter.has_reached(step)) return {};
        return has_gone(rank, operation);
      }
    }
  }

  // Sleeps until the counter moves, a wake-up, or the end of the time. Does the work of meanwhile() in between.
  Status sleep_for(Counter& counter, Sleepers& sleepers, std::uint32_t step, std::chrono::microseconds time) {
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
  bool has_died(int rank, Phase phase, std::uint32_t step) {
    const Counter& counter = counter_of(rank, phase, step);
    return !counter.has_reached(step) && segment_->control(rank).process.has_ended() && !counter.has_reached(step);
  }

  tl::unexpected<Failure> has_gone(int rank, const Operation& operation) {
    const auto& process = segment_->control(rank).process;
    return tl::unexpected<Failure>(explain_closed(job_context_, group_.world_rank(rank), name_of(operation),
                                                  [&] { return process.has_ended() ? process.pid() : 0; }));
  }

  std::vector<int> missing(Phase phase, std::uint32_t step) {
    std::vector<int> result;
    for (int rank = 0; rank < size_; ++rank) {
      if (!counter_of(rank, phase, step).has_reached(step)) result.push_back(group_.world_rank(rank));
    }
    return result;
  }

  Status timed_out(const Operation& operation, Phase phase, std::uint32_t step) {
    const auto waited_for = missing(phase, step);
    if (waited_for.empty()) return {};  // all have arrived just now
    return tl::unexpected<Failure>(timeout_failure(job_context_, group_, operation, waited_for));
  }

  Status check_calls(const Operation& operation) {
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_ || segment_->control(rank).arrival(step_).digest == digest_) continue;
      const auto& call = segment_->control(rank).calls[step_ % 2];
      Operation theirs;
      theirs.kind = static_cast<OpKind>(call.kind);
      theirs.dtype = static_cast<drun_dtype>(call.dtype);
      theirs.op = static_cast<drun_op>(call.op);
      theirs.comm = call.comm;
      theirs.root = call.root;
      theirs.seq = call.seq;
      theirs.count = call.count;
      theirs.counts = call.counts;
      theirs.names = call.names;
      if (same_call(theirs, operation)) continue;  // one of the two has no name
      if (call.names != 0) theirs.name.assign(call.name, ::strnlen(call.name, kNameBytes));
      return tl::unexpected<Failure>(
          mismatch_failure(job_context_, group_, operation, group_.world_rank(rank), describe_in(group_, theirs)));
    }
    return {};
  }

  Status finish(Status status) {
    if (status) {
      note_.done(job_context_);
    } else {
      close();
    }
    return status;
  }

  const JobContext& job_context_;
  Group group_;
  std::shared_ptr<Segment> segment_;
  std::unique_ptr<Backend> network_;
  int rank_, size_;  // in the group
  bool spins_;
  bool orders_others_;  // order_others_when_asleep(); false where sleep is frequent
  bool all_order_ = false;
  bool waited_ = false;       // wait_for_all() had to wait for longer than a poll takes
  std::uint64_t digest_ = 0;  // of the current call; a copy, because reading the shared one would wait for its line
  std::uint32_t step_;        // our latest step
  CallDeadline call_deadline_;
  WaitNote note_;
  Meanwhile meanwhile_;
};

}  // namespace

std::unique_ptr<ShmBackend> make_shm_backend(const JobContext& job_context, const Group& group,
                                             std::shared_ptr<Segment> segment, std::unique_ptr<Backend> network) {
  return std::make_unique<ShmBackendImpl>(job_context, group, std::move(segment), std::move(network));
}

}  // namespace drun::runtime
