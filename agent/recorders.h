// The flight recorders of this host's workers: made here, written by their libdruns, and read here, also after their
// end. docs/recorder.md. Owned by the agent; one thread.
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
  // For ranks that ask from now on.
  void set_entries(std::uint32_t n) { n_entries_ = n; }
  // A new one, for a worker that has just asked; it says itself whose it is. Closed: no memory.
  Fd make();
  // Where the rank stands, by its latest recorder; nothing if it has none. The time is the host's CLOCK_MONOTONIC.
  std::optional<control::RankActivity> activity_of(std::uint32_t rank);
  // What the rank has done since it was asked last, at most `most` calls: those that have ended, and at the end of the
  // rank (`all`) also the ones that have not. Calls that were overwritten before are counted.
  control::Timeline news_of(std::uint32_t rank, std::size_t most, bool all);

 private:
  // Memory that may not shrink under its reader.
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
    std::uint64_t told = 0;  // calls up to this one are in some news
  };
  Recorder* of(std::uint32_t rank);

  std::uint32_t n_entries_ = recorder::kEntries;
  std::list<Recorder> nameless_;                          // nobody has said yet whose they are; bounded
  std::map<std::uint32_t, std::list<Recorder>> by_rank_;  // the latest alone is written; bounded
};

}  // namespace drun::agent
