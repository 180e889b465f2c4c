#include "examples/digits.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

// The assembler embeds the file unchanged.
__asm__(
    ".section .rodata\n"
    ".global drun_example_digits_begin\n"
    ".global drun_example_digits_end\n"
    "drun_example_digits_begin:\n"
    ".incbin \"" DIGITS_FILE
    "\"\n"
    "drun_example_digits_end:\n"
    ".byte 0\n"
    ".section .note.GNU-stack,\"\",%progbits\n"
    ".text\n");
extern "C" const char drun_example_digits_begin[], drun_example_digits_end[];

namespace example {
namespace {

[[noreturn]] void bad_line(const std::string& path, std::size_t line, const std::string& what) {
  throw std::runtime_error(path + ":" + std::to_string(line) + ": " + what);
}

void parse_line(std::string_view text, const std::string& path, std::size_t line, Digits& into) {
  for (std::size_t column = 0; column <= kPixels; ++column) {
    int value = -1;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_label = column == kPixels;
    if (error != std::errc() || value < 0 || value > (is_label ? 9 : 16)) {
      bad_line(path, line,
               "value " + std::to_string(column + 1) + " is not " + (is_label ? "a digit" : "a number of 0 to 16"));
    }
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    if (is_label ? !text.empty() : text.empty() || text.front() != ',')
      bad_line(path, line, "not 65 values with commas between");
    if (!is_label) text.remove_prefix(1);
    if (is_label)
      into.labels.push_back(value);
    else
      into.pixels.push_back(value / 16.0);
  }
}

Digits parse(std::string_view text, const std::string& path) {
  Digits result;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    auto one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!one.empty() && one.back() == '\r') one.remove_suffix(1);
    if (!one.empty()) parse_line(one, path, line, result);
  }
  if (result.size() < 10) throw std::runtime_error(path + ": only " + std::to_string(result.size()) + " images");
  return result;
}

}  // namespace

Digits load_digits(const std::string& path) {
  if (path.empty()) {
    return parse(
        {drun_example_digits_begin, static_cast<std::size_t>(drun_example_digits_end - drun_example_digits_begin)},
        "built-in digits");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": " + std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse(text, path);
}

}  // namespace example
