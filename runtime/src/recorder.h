// This rank's flight recorder: the latest calls, in memory that the host's agent provides and reads. See
// recorder/layout.h and docs/recorder.md.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/fd.h"
#include "recorder/layout.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

// One thread at a time. Readers need no lock.
class Recorder {
 public:
  // Returns null, so that nothing is recorded, if `memory` is closed or has an unknown layout. The descriptor may be
  // closed afterwards.
  static std::shared_ptr<Recorder> open(const Fd& memory, int rank);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Records that a call has begun. `group` is the first rank of its communicator, `root` the job's rank for
  // operation.root, -1 if it has none, `queued` the time that it waited for its turn. Returns the number for end(),
  // never 0.
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
