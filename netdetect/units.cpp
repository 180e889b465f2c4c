#include "netdetect/units.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <span>

namespace drun::netdetect {
namespace {

// Two digits below 10 and three above, without zeros that say nothing: 9.4, 94.1, 941.
std::string digits(double value) {
  std::array<char, 32> text{};
  const double magnitude = std::fabs(value);
  const int n_decimals = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  std::snprintf(text.data(), text.size(), "%.*f", n_decimals, value);
  std::string out = text.data();
  if (out.find('.') != std::string::npos) {
    while (out.back() == '0') out.pop_back();
    if (out.back() == '.') out.pop_back();
  }
  return out;
}

std::string scaled(double value, std::span<const char* const> units) {
  std::size_t i = 0;
  for (; i + 1 < units.size() && std::fabs(value) >= 999.5; ++i) value /= 1000;
  return digits(value) + " " + units[i];
}

}  // namespace

std::string rate_text(double bits_per_second) {
  static constexpr std::array kUnits = {"b/s", "kb/s", "Mb/s", "Gb/s"};
  return scaled(bits_per_second, kUnits);
}

std::string size_text(std::size_t n_bytes) {
  static constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  return scaled(static_cast<double>(n_bytes), kUnits);
}

std::string time_text(double seconds) {
  static constexpr std::array kUnits = {"us", "ms", "s"};
  return scaled(seconds * 1e6, kUnits);
}

std::string share_text(double share) { return digits(std::round(share * 1000) / 10) + " %"; }

}  // namespace drun::netdetect
