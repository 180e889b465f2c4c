// The UCI handwritten digits: 8x8 images of 0..9. A copy is part of the program, so that one file is all it needs.
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

// From a CSV file of 64 pixels (0..16) and the digit per line; an empty path: the built-in copy.
// Throws std::runtime_error that names the file and line.
Digits load_digits(const std::string& path);

}  // namespace example
