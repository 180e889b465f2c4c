#include "launcher/plan/host_range.h"

#include <cstdint>
#include <optional>

#include "base/text.h"

namespace drun::launcher {
namespace {

tl::unexpected<TextFault> fault(std::size_t offset, std::string cause, std::string hint = {}) {
  return tl::unexpected<TextFault>(TextFault{offset, std::move(cause), std::move(hint)});
}

std::string in_quotes(std::string_view s) { return "'" + std::string(s) + "'"; }

std::string padded(std::uint64_t v, std::size_t width) {
  std::string digits = std::to_string(v);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

// Expands one piece between commas: a number, or two with a '-'. Appends the names it stands for.
FaultOr<void> expand_piece(std::string_view piece, std::size_t offset, std::vector<std::string>& out) {
  if (piece.empty()) return fault(offset, "a number is missing in the brackets", "node[01-16,20]");
  const auto dash = piece.find('-');
  const std::string_view first = piece.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : piece.substr(dash + 1);
  const auto low = parse_number(first);
  const auto high = parse_number(last);
  if (!low || !high) {
    if (dash != std::string_view::npos && (first.empty() || last.empty())) {
      return fault(offset, "the range " + in_quotes(piece) + " needs a number on both sides of the '-'", "node[01-16]");
    }
    return fault(offset, in_quotes(piece) + " in the brackets is neither a number nor a range", "node[01-16,20]");
  }
  const std::size_t width = first.size() > 1 && first[0] == '0' ? first.size() : 1;
  if (last.size() > 1 && last[0] == '0' && last.size() != first.size()) {
    return fault(offset, "the bounds of " + in_quotes(piece) + " are padded differently",
                 "[" + padded(*low, last.size()) + "-" + std::string(last) + "]");
  }
  if (*low > *high) {
    return fault(offset, "the range " + in_quotes(piece) + " runs backwards",
                 "[" + std::string(last) + "-" + std::string(first) + "]");
  }
  if (*high - *low >= kMaxHosts - out.size()) {
    return fault(offset, "the range " + in_quotes(piece) + " makes more than " + std::to_string(kMaxHosts) + " hosts");
  }
  for (std::uint64_t v = *low;; ++v) {
    out.push_back(padded(v, width));
    if (v == *high) break;
  }
  return {};
}

}  // namespace

FaultOr<std::vector<std::string>> expand_ranges(std::string_view pattern) {
  std::vector<std::string> names{std::string()};
  std::size_t at = 0;
  while (at < pattern.size()) {
    const auto open = pattern.find('[', at);
    const auto stray = pattern.find(']', at);
    if (stray < open) return fault(stray, "a ']' without its '['", "node[01-16]");
    const std::string_view plain = pattern.substr(at, open - at);
    if (open == std::string_view::npos) {
      for (auto& name : names) name += plain;
      break;
    }
    const auto close = pattern.find_first_of("[]", open + 1);
    if (close == std::string_view::npos) {
      return fault(open, "the '[' is never closed", std::string(pattern.substr(0, open)) + "[01-16]");
    }
    if (pattern[close] == '[') return fault(close, "a '[' inside of brackets", "node[01-16]");
    std::vector<std::string> numbers;
    std::size_t offset = open + 1;
    for (const std::string_view piece : split(pattern.substr(open + 1, close - open - 1), ',')) {
      const auto expanded = expand_piece(piece, offset, numbers);
      if (!expanded) return tl::unexpected<TextFault>(expanded.error());
      offset += piece.size() + 1;
    }
    if (names.size() > kMaxHosts / numbers.size()) {
      return fault(open, "the brackets make more than " + std::to_string(kMaxHosts) + " hosts");
    }
    std::vector<std::string> product;
    product.reserve(names.size() * numbers.size());
    for (const auto& name : names) {
      for (const auto& number : numbers) {
        std::string whole = name;
        whole += plain;
        whole += number;
        product.push_back(std::move(whole));
      }
    }
    names = std::move(product);
    at = close + 1;
  }
  return names;
}

}  // namespace drun::launcher
