// Reads a flight recorder that another process writes, or wrote until it was killed. Its contents are not trusted: any
// number may have any value at any time. Any thread; lock-free, never waits.
#pragma once

#include <optional>
#include <string>

#include "recorder/layout.h"

namespace drun::recorder {

// Progress of a rank.
struct Standing {
  std::uint64_t n_begun = 0;
  std::uint64_t world_seq = 0;
  std::optional<Call> open;  // the oldest of the last kEntries calls that has not ended
  std::optional<Call> last;  // the latest that has ended
};

class Reader {
 public:
  // `memory` has bytes_for(n_entries) bytes and must outlive the reader.
  Reader(const void* memory, std::uint32_t n_entries);
  int rank() const;  // as set by the writer; -1: not set yet
  std::uint64_t n_begun() const;
  // Nothing if the call was overwritten, has not begun, or is being written. Control characters of its name become '?'.
  std::optional<Call> call(std::uint64_t number) const;
  Standing standing() const;

 private:
  const Header* header_;
  const Entry* entries_;
  std::uint32_t n_entries_;
};

// The call's name, without trailing zeros.
std::string name_of(const Call& call);

}  // namespace drun::recorder
