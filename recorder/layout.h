// Memory layout of one rank's flight recorder: a header and a ring of entries. Written by libdrun, read by the agent,
// also after the writer was killed. C++17, header only. Every byte: docs/recorder.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace drun::recorder {

inline constexpr std::uint64_t kMagic = 0x6472'756e'7265'6331;  // "drunrec1"
inline constexpr std::uint32_t kEntries = 1024;                 // unless drun asks for more
inline constexpr std::size_t kNameBytes = 64;                   // including the terminating zero
inline constexpr std::uint8_t kFirstPairKind = 12;              // send and recv: seq counts within a pair of ranks

// One call. Times are the host's CLOCK_MONOTONIC in ns.
struct Call {
  std::uint64_t number = 0;  // counts the calls of this rank, from 1
  std::uint64_t seq = 0;     // counts the communicator's calls; for send and recv those between the two ranks
  std::uint64_t count = 0;
  std::int64_t started_ns = 0;
  std::int64_t ended_ns = 0;    // 0: not ended. May equal started_ns if the call did not wait
  std::uint32_t comm = 0;       // 0: all ranks, 1: ranks of the host, 2: ranks of the same local rank on all hosts
  std::uint32_t group = 0;      // first rank of the communicator; communicators without a common rank may share `comm`
  std::int32_t root = 0;        // rank in the job; for send and recv the peer
  std::uint32_t queued_us = 0;  // time in the queue before the start
  std::uint8_t kind = 0;        // as in headers between ranks (docs/runtime-api.md); 13: recv
  std::uint8_t dtype = 0;
  std::uint8_t op = 0;
  std::int8_t status = 0;  // drun_status, once it has ended
  std::uint32_t reserved = 0;
  char name[kNameBytes] = {};
};
inline constexpr std::size_t kCallWords = sizeof(Call) / sizeof(std::uint64_t);

// A seqlock. `sequence` is odd while the entry is written. A reader loads it before and after it copies the words: the
// copy is consistent if both values are equal and even.
struct Entry {
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> words[kCallWords];
};

// Created by the agent. libdrun sets rank and pid, and then counts in n_begun.
struct Header {
  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint32_t> entry_bytes, n_entries;
  std::atomic<std::int32_t> rank;  // -1 at first
  std::atomic<std::int32_t> pid;
  alignas(64) std::atomic<std::uint64_t> n_begun;
  std::atomic<std::uint64_t> world_seq;  // seq of the latest call of all ranks
};

static_assert(sizeof(Call) == 128 && sizeof(Entry) == 136 && sizeof(Header) == 128);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::int32_t>::is_always_lock_free);

inline constexpr std::size_t bytes_for(std::uint32_t n_entries) {
  return sizeof(Header) + std::size_t{n_entries} * sizeof(Entry);
}

}  // namespace drun::recorder
