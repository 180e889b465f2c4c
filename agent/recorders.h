// The flight recorders of this host's workers. The agent creates them, each worker's libdrun writes its own, and the
// agent reads them, also after the worker's end. See docs/recorder.md. Owned by the agent; one thread.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>

#include "base/fd.h"
#include "control/messages.h"
#include "recorder/reader.h"

namespace drun::agent {

class Recorders {
 public:
  // Applies to recorders made from now on.
  void set_entries(std::uint32_t n) { n_entries_ = n; }
  // Creates a recorder for a worker that has just requested one and writes its own rank into it. The result is closed
  // if there is no memory.
  Fd make();
  // The rank's current activity, from its latest recorder; nothing if it has none. The time is the host's
  // CLOCK_MONOTONIC.
  std::optional<control::RankActivity> activity_of(std::uint32_t rank);
  // The rank's calls since the previous request, at most `most`: calls that have ended and, at the end of the rank
  // (`all`), also calls that have not. Calls that were overwritten before they were read are counted.
  control::Timeline new_calls_of(std::uint32_t rank, std::size_t most, bool all);

 private:
  // A mapping of memory that can't shrink under its reader.
  class Memory {
   public:
    Memory(void* place, std::size_t n_bytes) : place_(place), n_bytes_(n_bytes) {}
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    const void* place() const { return place_; }

   private:
    void* place_;
    std::size_t n_bytes_;
  };
  struct Recorder {
    Recorder(void* place, std::uint32_t n) : memory(place, recorder::bytes_for(n)), reader(place, n), n_entries(n) {}
    Memory memory;
    recorder::Reader reader;
    std::uint32_t n_entries;
    std::uint64_t told = 0;  // calls up to this one were returned by new_calls_of()
  };
  Recorder* of(std::uint32_t rank);

  std::uint32_t n_entries_ = recorder::kEntries;
  std::list<Recorder> nameless_;                          // recorders without a rank yet; bounded
  std::map<std::uint32_t, std::list<Recorder>> by_rank_;  // only the latest is written; bounded
};

}  // namespace drun::agent
