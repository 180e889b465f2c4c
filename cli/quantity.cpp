#include "cli/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/text.h"
#include "bench/settings.h"

namespace drun::cli {

namespace {

struct Quantity {
  double number = 0;
  std::string_view unit;
};

// An unsigned number, and the text after it.
std::optional<Quantity> take_number(std::string_view text) {
  Quantity out;
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), out.number);
  if (error != std::errc()) return std::nullopt;
  out.unit = trim(text.substr(static_cast<std::size_t>(rest - text.data())));
  return out;
}

Error wrong(std::string_view text, const char* what, const char* hint) {
  return Error(Errc::kUsage, "'" + std::string(text) + "' is not " + what).with_hint(hint);
}

// Removes the prefix "", "k", "m", "g" or "t" from `unit`. Returns its power of `base`; 1 if there is none.
double take_prefix(std::string_view& unit, double base) {
  constexpr std::string_view kLetters = "kmgt";
  if (unit.empty()) return 1;
  const auto at = kLetters.find(static_cast<char>(unit[0] | 0x20));
  if (at == std::string_view::npos) return 1;
  unit.remove_prefix(1);
  return std::pow(base, static_cast<double>(at + 1));
}

// Bytes per unit. 0: no such unit.
double byte_unit(std::string_view unit) {
  const std::string low = lower(unit);
  if (low.empty() || low == "b") return 1;
  std::string_view rest = low;
  const double binary = take_prefix(rest, 1024);
  if (binary == 1) return 0;
  if (rest.empty() || rest == "ib") return binary;
  if (rest != "b") return 0;
  rest = low;
  return take_prefix(rest, 1000);
}

// Bits per second per unit. 0: no such unit. Only the case of the b tells bits from bytes if nothing else does.
double rate_unit(std::string_view unit) {
  const double prefix = take_prefix(unit, 1000);
  const std::string low = lower(unit);
  if (low == "bit" || low == "bits" || low == "bit/s" || low == "bits/s") return prefix;
  if (low == "byte/s" || low == "bytes/s") return prefix * 8;
  if (low == "b/s" || low == "bps") return unit[0] == 'B' ? prefix * 8 : prefix;
  return 0;
}

double time_unit(std::string_view unit) {
  if (unit == "s" || unit == "sec") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "us" || unit == "\u00b5s" || unit == "\u03bcs") return 1e-6;
  if (unit == "min") return 60;
  return 0;
}

}  // namespace

Result<std::size_t> parse_bytes(std::string_view text) {
  const auto quantity = take_number(text);
  const double bytes = quantity ? std::round(quantity->number * byte_unit(quantity->unit)) : 0;
  if (!(bytes >= 1 && bytes < 1e18)) return fail(wrong(text, "a size in bytes", "100MB, 25MiB"));
  return static_cast<std::size_t>(bytes);
}

Result<double> parse_rate(std::string_view text) {
  const auto quantity = take_number(text);
  const double rate = quantity ? quantity->number * rate_unit(quantity->unit) : 0;
  if (!(rate >= 1 && rate < 1e18)) return fail(wrong(text, "a rate", "1gbit, 100mbit, 125MB/s"));
  return rate;
}

Result<double> parse_time(std::string_view text) {
  const auto quantity = take_number(text);
  const double seconds = quantity ? quantity->number * time_unit(quantity->unit) : 0;
  if (!(seconds > 0 && seconds < 1e7)) return fail(wrong(text, "a time", "300ms, 0.3s"));
  return seconds;
}

Result<std::uint64_t> parse_count(std::string_view text) {
  const auto quantity = take_number(text);
  double count = 0;
  if (quantity) {
    std::string_view unit = quantity->unit;
    if (lower(unit) == "b") unit = "g";
    const double prefix = take_prefix(unit, 1000);
    if (unit.empty()) count = std::round(quantity->number * prefix);
  }
  if (!(count >= 1 && count < 1e16)) return fail(wrong(text, "a number of parameters", "110M, 7B"));
  return static_cast<std::uint64_t>(count);
}

Result<std::size_t> parse_dtype_size(std::string_view text) {
  struct Alias {
    std::string_view name, known;
  };
  constexpr std::array<Alias, 6> kAliases = {{{"float16", "half"},
                                              {"fp16", "half"},
                                              {"float32", "float"},
                                              {"fp32", "float"},
                                              {"float64", "double"},
                                              {"fp64", "double"}}};
  const std::string low = lower(text);
  std::string_view name = low;
  if (low == "fp8" || low == "f8") name = "uint8";
  for (const auto& alias : kAliases) {
    if (name == alias.name) name = alias.known;
  }
  const auto types = bench::parse_dtypes(name);
  if (!types || types->size() != 1) {
    return fail(wrong(text, "a type of gradients", "f16, bf16, f32, f64, int8"));
  }
  return bench::element_size(types->front());
}

std::string digits(double value) {
  char text[40];
  const int behind = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f", behind, value);
  std::string out = text;
  if (behind == 0) return out;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

}  // namespace drun::cli
