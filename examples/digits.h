// The UCI handwritten digits: 8x8 images of 0..9. A copy is embedded, so that the program needs no other file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace example {

inline constexpr std::size_t kPixels = 64;
inline constexpr std::size_t kDigits = 10;

struct Digits {
  std::vector<double> pixels;  // kPixels per image, 0..1
  std::vector<int> labels;
  std::size_t size() const { return labels.size(); }
  const double* image(std::size_t i) const { return pixels.data() + i * kPixels; }
};

// Loads a CSV file with 64 pixels (0..16) and the digit per line; empty path: the embedded copy. Throws
// std::runtime_error that names the file and line.
Digits load_digits(const std::string& path);

}  // namespace example
