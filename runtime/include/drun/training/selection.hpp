// Selects the elements of a tensor that are worth sending. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <variant>
#include <vector>

namespace drun {
inline namespace v0 {

// Sends the elements of the largest absolute values: this fraction of each tensor, 0 to 1.
struct TopK {
  double fraction = 0.01;
};
// Sends the elements of at least this absolute value.
struct Threshold {
  double value = 0.001;
};
using Selection = std::variant<TopK, Threshold>;

namespace training {

// Bits of the absolute value: they order as absolute values do. All NaN are the same, and larger than any number.
template <typename T>
auto magnitude(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static_assert(std::is_floating_point_v<T> && sizeof(T) == sizeof(Bits));
  const T absolute = std::fabs(value);
  Bits bits;
  std::memcpy(&bits, &absolute, sizeof bits);
  return value != value ? ~Bits{0} : bits;
}

// Number of elements in a fraction of `n`, rounded up; at least one, unless there is nothing. A product that is an
// integer except for its rounding error is not rounded up.
inline std::size_t top_k_count(std::size_t n, double fraction) {
  if (n == 0 || !(fraction > 0)) return 0;
  if (fraction >= 1) return n;
  const double exact = fraction * static_cast<double>(n);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(exact * (1 - 1e-12))), 1, n);
}

// Indices of the `k` elements of the largest absolute values, ascending; of equal ones the first. NaN is the largest,
// so that all ranks see it at once. `scratch` is overwritten.
template <typename T, typename Index, typename Bits>
void select_top_k(const T* values, std::size_t n, std::size_t k, std::vector<Index>& chosen,
                  std::vector<Bits>& scratch) {
  chosen.clear();
  k = std::min(k, n);
  if (k == 0) return;
  chosen.reserve(k);
  scratch.resize(n);
  for (std::size_t i = 0; i < n; ++i) scratch[i] = magnitude(values[i]);
  const auto kth = scratch.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(scratch.begin(), kth, scratch.end(), std::greater<Bits>());
  const Bits least = *kth;
  const auto larger = [least](Bits bits) { return bits > least; };
  auto n_equal = k - static_cast<std::size_t>(std::count_if(scratch.begin(), kth, larger));
  for (std::size_t i = 0; i < n; ++i) {
    const Bits bits = magnitude(values[i]);
    if (bits < least) continue;
    if (bits == least) {
      if (n_equal == 0) continue;
      --n_equal;
    }
    chosen.push_back(static_cast<Index>(i));
  }
}

// Indices of the elements of at least this absolute value, and of NaN; ascending.
template <typename T, typename Index>
void select_threshold(const T* values, std::size_t n, double threshold, std::vector<Index>& chosen) {
  chosen.clear();
  for (std::size_t i = 0; i < n; ++i) {
    if (!(std::fabs(static_cast<double>(values[i])) < threshold)) chosen.push_back(static_cast<Index>(i));
  }
}

}  // namespace training
}  // namespace v0
}  // namespace drun
