// One message over several connections: stripe k of its bytes goes over connection k mod n, in order.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/src/algorithm/flow.h"

namespace drun::runtime {

// The state of one direction. Both sides derive the same stripes from the length of the message alone. Bytes move on
// each connection as far as it can go: bytes ahead of a gap are counted once the gap is closed.
class Stripes {
 public:
  static constexpr std::size_t kBytes = 64u << 10;  // per stripe

  explicit Stripes(std::size_t n_connections) : position_(n_connections) {
    for (std::size_t i = 0; i < n_connections; ++i) position_[i] = i * kBytes;
  }
  std::size_t n_connections() const { return position_.size(); }
  // The part of `window` that this connection can move next. The first byte of `window` is byte number `done` of the
  // message.
  Window window_of(std::size_t connection, const Window& window, std::size_t done) const;
  void moved(std::size_t connection, std::size_t n_bytes);
  // Number of bytes at the front of `window` that have moved on all connections.
  std::size_t n_moved(const Window& window, std::size_t done) const;

 private:
  std::vector<std::size_t> position_;  // position in the message of each connection's next byte
};

}  // namespace drun::runtime
