// Sums and averages that travel as halves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "drun/training/half.hpp"
#include "drun/training/transport.hpp"

namespace drun {
inline namespace v0 {

enum class Compression { none, fp16, bf16 };

namespace training {

// Divides each value by `n_ranks` and converts it to a half. A finite value that could make the sum of `n_ranks` such
// values infinite is cut to the largest one that can't, so that finite gradients have finite averages; infinities and
// NaN pass. Returns the number of values that were cut.
template <typename Half, typename T>
std::uint64_t narrow(const T* from, std::size_t count, int n_ranks, std::uint16_t* into) {
  const T limit = static_cast<T>(largest_of<Half>(n_ranks)), divisor = static_cast<T>(n_ranks);
  std::uint64_t n_cut = 0;
  for (std::size_t i = 0; i < count; ++i) {
    T value = from[i] / divisor;
    const bool is_cut = std::fabs(value) > limit && std::fabs(from[i]) <= std::numeric_limits<T>::max();
    value = is_cut ? std::copysign(limit, value) : value;
    n_cut += is_cut ? 1 : 0;
    into[i] = Half::narrow(for_rounding(value));
  }
  return n_cut;
}

// Converts halves back and multiplies them by `factor`.
template <typename Half, typename T>
void widen(const std::uint16_t* from, std::size_t count, T factor, T* into) {
  for (std::size_t i = 0; i < count; ++i) into[i] = static_cast<T>(Half::widen(from[i])) * factor;
}

// Sums in f32, in rank order, rounded once to halves. An allreduce of halves gives the same result, but here halves are
// what travels.
template <typename Half>
class HalfSum {
 public:
  // Collective, in place, on `count` halves.
  void operator()(Transport& transport, std::uint16_t* data, std::size_t count, const std::string& name) {
    const auto size = static_cast<std::size_t>(transport.size()), rank = static_cast<std::size_t>(transport.rank());
    // For few elements the number of messages dominates, and the library's own allreduce is faster.
    if (count < kFewElements || size == 1) return transport.allreduce(data, count, Half::kDtype, DRUN_SUM, name);
    counts_.assign(size, count / size);
    for (std::size_t i = 0; i < count % size; ++i) ++counts_[i];
    const std::size_t own = counts_[rank], begin = count / size * rank + std::min(rank, count % size);
    own_counts_.assign(size, own);
    received_.resize(own * size);
    sums_.resize(own);
    transport.alltoallv(data, counts_.data(), received_.data(), own_counts_.data(), Half::kDtype, name);
    widen<Half>(received_.data(), own, 1.0f, sums_.data());
    for (std::size_t from = 1; from < size; ++from) {
      const std::uint16_t* block = received_.data() + from * own;
      for (std::size_t i = 0; i < own; ++i) sums_[i] += Half::widen(block[i]);
    }
    for (std::size_t i = 0; i < own; ++i) data[begin + i] = Half::narrow(sums_[i]);
    transport.allgatherv(data + begin, own, data, counts_.data(), Half::kDtype, name);
  }

 private:
  static constexpr std::size_t kFewElements = 16384;
  std::vector<std::size_t> counts_, own_counts_;
  std::vector<std::uint16_t> received_;
  std::vector<float> sums_;
};

}  // namespace training
}  // namespace v0
}  // namespace drun
