// One message over several connections: stripe k of its bytes goes over connection k mod n, in order.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/src/algorithm/flow.h"

namespace drun::runtime {

// The state of one direction; both sides come to the same stripes from the length of the message alone. Bytes move in
// each connection as far as it can: what is ahead of a gap is counted once the gap is closed.
class Stripes {
 public:
  static constexpr std::size_t kBytes = 64u << 10;  // of one stripe

  explicit Stripes(std::size_t n_connections) : position_(n_connections) {
    for (std::size_t i = 0; i < n_connections; ++i) position_[i] = i * kBytes;
  }
  std::size_t n_connections() const { return position_.size(); }
  // What this connection can move next of `window`, whose first byte is number `done` of the message.
  Window window_of(std::size_t connection, const Window& window, std::size_t done) const;
  void moved(std::size_t connection, std::size_t n_bytes);
  // So many bytes from the front of `window` on have moved in all connections.
  std::size_t n_moved(const Window& window, std::size_t done) const;

 private:
  std::vector<std::size_t> position_;  // in the message: of the next byte of each connection
};

}  // namespace drun::runtime
