// The methods that keep the ranks' replicas together, and their text form.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>
#include <variant>

#include "drun/training/compression.hpp"
#include "drun/training/partial.hpp"
#include "drun/training/sparse.hpp"

namespace drun {
inline namespace v0 {

using Method = std::variant<Compression, TopK, Threshold, PartialUpdate>;

// Parses "none", "fp16", "bf16", "topk=0.01", "threshold=0.001", "partial" or "partial=8"; throws DRUN_ERROR_ARGUMENT
// for anything else.
inline Method parse_method(const std::string& text) {
  if (text == "none") return Compression::none;
  if (text == "fp16") return Compression::fp16;
  if (text == "bf16") return Compression::bf16;
  if (text == "partial") return PartialUpdate{};
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string given = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (name != "topk" && name != "threshold" && name != "partial") {
    training::refuse("'" + text + "' is none of none, fp16, bf16, topk=FRACTION, threshold=VALUE, partial[=PARTS]");
  }
  char* end = nullptr;
  const double value = std::strtod(given.c_str(), &end);
  const bool is_number = !given.empty() && *end == '\0' && value - value == 0;
  if (name == "topk") {
    if (!is_number || !(value > 0 && value <= 1)) training::refuse("'" + text + "': a fraction above 0, at most 1");
    return TopK{value};
  }
  if (name == "threshold") {
    if (!is_number || !(value >= 0)) training::refuse("'" + text + "': a number, not negative");
    return Threshold{value};
  }
  const bool is_count = is_number && value >= 1 && value <= 1e6 && given.find_first_not_of("0123456789") == given.npos;
  if (!is_count) training::refuse("'" + text + "': a whole number from 1 to 1000000");
  return PartialUpdate{static_cast<std::size_t>(value)};
}

// The text that parse_method reads.
inline std::string in_words(const Method& method) {
  if (const auto* compression = std::get_if<Compression>(&method)) {
    return *compression == Compression::none ? "none" : *compression == Compression::fp16 ? "fp16" : "bf16";
  }
  if (const auto* top_k = std::get_if<TopK>(&method)) return training::in_words(Selection(*top_k));
  if (const auto* threshold = std::get_if<Threshold>(&method)) return training::in_words(Selection(*threshold));
  return "partial=" + std::to_string(std::get<PartialUpdate>(method).parts);
}

}  // namespace v0
}  // namespace drun
