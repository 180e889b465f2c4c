#include "runtime/src/copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace drun::runtime {
namespace {

TEST(CopyBytes, CopiesAllOfThemAndNothingElse) {
  constexpr std::size_t kMax = 70'000, kMargin = 64;
  std::vector<unsigned char> from(kMax + 2 * kMargin);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 251);
  // Lengths around those at which libc changes its method, and around the pieces.
  for (const std::size_t n : {0, 1, 31, 2047, 2048, 2049, 2111, 2112, 4095, 4096, 4097, 65'536, 69'999}) {
    for (const std::size_t begin : {0, 1, 16, 63}) {
      std::vector<unsigned char> into(kMax + 2 * kMargin, 0xee);
      copy_bytes(into.data() + kMargin, from.data() + begin, n);
      for (std::size_t i = 0; i < into.size(); ++i) {
        const bool inside = i >= kMargin && i < kMargin + n;
        ASSERT_EQ(into[i], inside ? from[begin + i - kMargin] : 0xee) << n << " from " << begin << " at " << i;
      }
    }
  }
  copy_bytes(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace drun::runtime
