// Reads a flight recorder that another process writes, or wrote until it was killed. Nothing in it is trusted: every
// number may be anything at any moment. Any thread; takes no lock and waits for nobody.
#pragma once

#include <optional>
#include <string>

#include "recorder/layout.h"

namespace drun::recorder {

// Where a rank stands.
struct Standing {
  std::uint64_t n_begun = 0;
  std::uint64_t world_seq = 0;
  std::optional<Call> open;  // the oldest that has not ended, of the last kEntries
  std::optional<Call> last;  // the latest that has
};

class Reader {
 public:
  // `memory` has bytes_for(n_entries) bytes, and outlives it.
  Reader(const void* memory, std::uint32_t n_entries);
  int rank() const;  // as its writer says; -1: it has not yet
  std::uint64_t n_begun() const;
  // Nothing if it is not there any more, not yet, or being written right now. Its name has printable bytes alone.
  std::optional<Call> call(std::uint64_t number) const;
  Standing standing() const;

 private:
  const Header* header_;
  const Entry* entries_;
  std::uint32_t n_entries_;
};

// Without the zeros behind it.
std::string name_of(const Call& call);

}  // namespace drun::recorder
