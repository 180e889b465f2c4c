#include "runtime/src/backend/tcp/stripes.h"

#include <algorithm>

namespace drun::runtime {

Window Stripes::window_of(std::size_t connection, const Window& window, std::size_t done) const {
  const std::size_t at = position_[connection], end_of_stripe = (at / kBytes + 1) * kBytes;
  const std::size_t end = std::min(end_of_stripe, done + window.n_bytes);
  return at < end ? Window{window.data + (at - done), end - at} : Window{};
}

void Stripes::moved(std::size_t connection, std::size_t n_bytes) {
  std::size_t& at = position_[connection];
  at += n_bytes;
  if (n_bytes > 0 && at % kBytes == 0) at += (position_.size() - 1) * kBytes;
}

std::size_t Stripes::n_moved(const Window& window, std::size_t done) const {
  const std::size_t first_gap = *std::min_element(position_.begin(), position_.end());
  return std::min(first_gap - done, window.n_bytes);
}

}  // namespace drun::runtime
