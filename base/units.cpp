#include "base/units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace drun {
namespace {

constexpr std::array kRateUnits = {"b/s", "kb/s", "Mb/s", "Gb/s"};
constexpr std::array kTimeUnits = {"us", "ms", "s"};

// Removes trailing zeros after the decimal point.
std::string without_zeros(std::string out) {
  if (out.find('.') == std::string::npos) return out;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

// At most three significant digits, without trailing zeros: 9.4, 94.1, 941.
std::string digits(double value) {
  std::array<char, 32> text{};
  const double magnitude = std::fabs(value);
  const int n_decimals = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  std::snprintf(text.data(), text.size(), "%.*f", n_decimals, value);
  return without_zeros(text.data());
}

template <std::size_t N>
std::string scaled(double value, const std::array<const char*, N>& units) {
  std::size_t i = 0;
  for (; i + 1 < units.size() && std::fabs(value) >= 999.5; ++i) value /= 1000;
  return digits(value) + " " + units[i];
}

// `first`: the size of the first unit.
template <std::size_t N>
Unit common_unit(double typical, double least, double first, const std::array<const char*, N>& names) {
  constexpr double kStep = 1000, kReadable = 0.1;
  std::size_t i = 0;
  double size = first;
  for (; i + 1 < names.size() && typical >= 0.9995 * size * kStep; ++i) size *= kStep;
  if (i > 0 && least < kReadable * size) size /= kStep, --i;
  return {size, names[i]};
}

}  // namespace

std::string Unit::figure(double value) const { return figure_text(value / size); }

std::string Unit::text(double value) const { return figure(value) + " " + name; }

Unit rate_unit(double typical, double least) { return common_unit(typical, least, 1, kRateUnits); }

Unit time_unit(double typical, double least) { return common_unit(typical, least, 1e-6, kTimeUnits); }

std::string figure_text(double value) {
  if (value == 0 || !std::isfinite(value)) return "0";
  // Rounds first, because rounding may add a digit: 9.996 becomes 10.
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2e", value);
  const double rounded = std::strtod(text.data(), nullptr);
  const int magnitude = static_cast<int>(std::floor(std::log10(std::fabs(rounded)) + 1e-9));
  std::snprintf(text.data(), text.size(), "%.*f", std::clamp(2 - magnitude, 0, 12), rounded);
  return without_zeros(text.data());
}

std::string rate_text(double bits_per_second) { return scaled(bits_per_second, kRateUnits); }

std::string size_text(std::size_t n_bytes) {
  static constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  return scaled(static_cast<double>(n_bytes), kUnits);
}

std::string time_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds == 0) return "0 s";
  if (seconds >= 2 * kHour) return digits(seconds / kHour) + " h";
  if (seconds >= 10 * kMinute) return digits(seconds / kMinute) + " min";
  return scaled(seconds * 1e6, kTimeUnits);
}

std::string time_text(std::chrono::duration<double> time) { return time_text(time.count()); }

std::string limit_text(std::chrono::milliseconds limit) {
  const auto ms = limit.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

std::string share_text(double share) {
  const double percent = std::fabs(share * 100);
  if (percent > 0 && percent < 0.01) return "less than 0.01 %";
  const double step = percent >= 9.95 ? 1 : percent >= 0.095 ? 0.1 : 0.01;
  return digits(std::round(share * 100 / step) * step) + " %";
}

}  // namespace drun
