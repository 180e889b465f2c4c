// The memory region that the members of a group on one host share. docs/collectives.md has the protocol.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/error.h"
#include "runtime/src/backend/shm/arena.h"
#include "runtime/src/backend/shm/counter.h"
#include "runtime/src/backend/shm/peer_process.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

// Mapped into this process; in tests, for all ranks of the test. The protocol orders the accesses of threads and
// processes.
class Segment {
 public:
  static constexpr std::size_t kSlotBytes = 512u << 10;

  // Data that a rank publishes. Each item has its own cache line, or two. A change of this layout, or of its use, must
  // increment kLayout (arena.cpp).
  struct Call {  // shows the difference when digests differ; all of it is in them (announced_call.h)
    std::uint64_t seq;
    std::uint64_t count;
    std::uint32_t counts, comm;
    std::int32_t root;
    std::uint8_t kind, dtype, op, zero[1];
    std::uint32_t names;
    char name[kNameBytes + 1];  // set if names is not 0
    std::uint8_t end[28];       // fills two cache lines
  };
  static_assert(std::has_unique_object_representations_v<Call>);
  // Published when the rank has written its data of a step and needs no data of earlier steps. The same lines carry the
  // data of a small call, so that a waiter gets both at once.
  struct alignas(128) Arrival {
    Counter step;
    std::uint64_t digest;  // digest of the call that begins in the step
    char data[48];
  };
  static_assert(sizeof(Arrival) == 128 && offsetof(Arrival, data) + sizeof(Arrival::data) == 64);
  struct Control {
    Arrival arrivals[2];                        // for even and odd steps
    alignas(128) Counter reduced;               // last step whose part the rank has reduced
    alignas(128) Call calls[2];                 // for calls that begin in even and odd steps
    alignas(128) Sleepers arrival_sleepers[2];  // of the counters above
    Sleepers reduced_sleepers;
    alignas(128) std::atomic<std::int32_t> broken;  // not 0: the rank takes part in no more calls
    std::atomic<std::int32_t> orders_others;        // not 0: it orders the others when it sleeps (counter.h)
    ProcessMark process;                            // the rank's process

    Arrival& arrival(std::uint32_t step) { return arrivals[step % 2]; }
    Sleepers& sleepers_of(std::uint32_t step) { return arrival_sleepers[step % 2]; }
  };

  // Makes a new region for `n_ranks`, in one of them, before the others map it. The text of an error has the size.
  static Result<std::shared_ptr<Segment>> create(std::shared_ptr<Arena> arena, int n_ranks);
  static Result<std::shared_ptr<Segment>> map(std::shared_ptr<Arena> arena, std::size_t offset, int n_ranks);
  // The last of the ranks releases the region.
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int n_ranks() const { return n_ranks_; }
  std::size_t offset() const { return offset_; }  // in the arena
  Control& control(int rank) { return controls_[rank]; }
  // Slots of kSlotBytes, for even and odd steps: the data that the rank gives in a step, and the part that it has
  // reduced.
  char* given(int rank, std::uint32_t step) { return slot(rank, step % 2); }
  char* result(int rank, std::uint32_t step) { return slot(rank, 2 + step % 2); }

 private:
  Segment(std::shared_ptr<Arena> arena, std::size_t offset, void* memory, int n_ranks);
  static std::size_t control_bytes(int n_ranks);
  static std::size_t bytes_for(int n_ranks);
  char* slot(int rank, std::size_t index) { return slots_ + (static_cast<std::size_t>(rank) * 4 + index) * kSlotBytes; }

  struct Head {
    alignas(128) std::atomic<std::int32_t> n_left;  // number of ranks that no longer use it
  };

  std::shared_ptr<Arena> arena_;
  std::size_t offset_;
  int n_ranks_;
  std::size_t n_bytes_;
  void* memory_;
  Control* controls_;
  char* slots_;
};

}  // namespace drun::runtime
