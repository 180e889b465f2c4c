// This rank's flight recorder: the last calls, in memory that the host's agent gave, and reads. recorder/layout.h,
// docs/recorder.md.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/fd.h"
#include "recorder/layout.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

// One thread at a time; who reads needs no lock.
class Recorder {
 public:
  // nullptr if the memory is none, or none that we know: nothing is recorded then. The descriptor may be closed.
  static std::shared_ptr<Recorder> open(const Fd& memory, int rank);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // The call is going on from now. `group`: the first rank of its communicator; `root`: the rank of the job that
  // operation.root is; `queued`: how long it waited. Returns what end() needs, never 0.
  std::uint64_t begin(const Operation& operation, int group, int root, std::chrono::nanoseconds queued = {});
  void end(std::uint64_t number, int status) { end(number, status, monotonic_ns()); }
  void end(std::uint64_t number, int status, std::int64_t ended_ns);

 private:
  Recorder(void* memory, std::size_t n_bytes, std::uint32_t n_entries);
  recorder::Entry& entry(std::uint64_t number) { return entries_[(number - 1) % n_entries_]; }

  recorder::Header* header_;
  recorder::Entry* entries_;
  std::size_t n_bytes_;
  std::uint32_t n_entries_;
};

}  // namespace drun::runtime
