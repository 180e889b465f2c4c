// The region that the members of a group on one host share. docs/collectives.md has the protocol.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/error.h"
#include "runtime/src/backend/shm/arena.h"
#include "runtime/src/backend/shm/counter.h"
#include "runtime/src/backend/shm/life.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

// Mapped into this process, or into a test for all its ranks. Threads: the protocol's business.
class Segment {
 public:
  static constexpr std::size_t kSlotBytes = 512u << 10;

  // What a rank tells the others. Each on its own cache line, or two. Who changes this, or what the ranks do with it,
  // counts up kLayout (arena.cpp).
  struct Call {  // what differs, once the digests do: all of it is in them (shm_backend.cpp)
    std::uint64_t seq;
    std::uint64_t count;
    std::uint32_t counts, comm;
    std::int32_t root;
    std::uint8_t kind, dtype, op, zero[1];
    std::uint32_t names;
    char name[kNameBytes + 1];  // if names is not 0
    std::uint8_t end[28];       // of its two cache lines
  };
  static_assert(std::has_unique_object_representations_v<Call>);
  // That it has given what belongs to a step, and is through with all steps before. With it, for whoever waits for it,
  // comes what a small call needs beside it.
  struct alignas(128) Arrival {
    Counter step;
    std::uint64_t digest;  // of the call that begins in the step
    char data[48];
  };
  static_assert(sizeof(Arrival) == 128 && offsetof(Arrival, data) + sizeof(Arrival::data) == 64);
  struct Control {
    Arrival arrivals[2];                        // by turns of the steps
    alignas(128) Counter reduced;               // its part of the step is reduced
    alignas(128) Call calls[2];                 // by turns of the steps in which calls begin
    alignas(128) Sleepers arrival_sleepers[2];  // of the counters above
    Sleepers reduced_sleepers;
    alignas(128) std::atomic<std::int32_t> broken;  // not 0: the rank takes part in nothing more
    std::atomic<std::int32_t> orders_others;        // not 0: when it sleeps (counter.h)
    ProcessMark process;                            // whose control this is

    Arrival& arrival(std::uint32_t step) { return arrivals[step % 2]; }
    Sleepers& sleepers_of(std::uint32_t step) { return arrival_sleepers[step % 2]; }
  };

  // A new region for so many ranks. By one of them, before the others map it. An error has the size in its text.
  static Result<std::shared_ptr<Segment>> create(std::shared_ptr<Arena> arena, int n_ranks);
  static Result<std::shared_ptr<Segment>> map(std::shared_ptr<Arena> arena, std::size_t offset, int n_ranks);
  // The last of its ranks gives the region back.
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int n_ranks() const { return n_ranks_; }
  std::size_t offset() const { return offset_; }  // in the arena
  Control& control(int rank) { return controls_[rank]; }
  // kSlotBytes each, by turns: what the rank gives in a step, and what it has reduced.
  char* given(int rank, std::uint32_t step) { return slot(rank, step % 2); }
  char* result(int rank, std::uint32_t step) { return slot(rank, 2 + step % 2); }

 private:
  Segment(std::shared_ptr<Arena> arena, std::size_t offset, void* memory, int n_ranks);
  static std::size_t control_bytes(int n_ranks);
  static std::size_t bytes_for(int n_ranks);
  char* slot(int rank, std::size_t index) { return slots_ + (static_cast<std::size_t>(rank) * 4 + index) * kSlotBytes; }

  struct Head {
    alignas(128) std::atomic<std::int32_t> n_left;  // ranks that use it no more
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
