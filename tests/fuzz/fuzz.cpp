#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

// Only with AddressSanitizer.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace drun::fuzz {
namespace {

// An element of a list takes at least 4 bytes of a message and less than 250 in memory; lists grow by doubling.
constexpr std::size_t kMaxGrowth = 128, kMaxFixed = 64u << 10;

std::vector<const Target*>& all() {
  static std::vector<const Target*> targets;
  return targets;
}

}  // namespace

Target::Target(const char* its_name, Run its_run, Seeds its_seeds) : name(its_name), run(its_run), seeds(its_seeds) {
  all().push_back(this);
}

const std::vector<const Target*>& targets() { return all(); }

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: broken expectation: %s\n", what);
  std::abort();
}

std::size_t allocated_bytes() {
  return __sanitizer_get_current_allocated_bytes != nullptr ? __sanitizer_get_current_allocated_bytes() : 0;
}

void expect_bounded_memory(std::size_t before, std::size_t n_input, std::size_t n_allowed) {
  const std::size_t now = allocated_bytes();
  expect(now <= before + kMaxGrowth * n_input + kMaxFixed + n_allowed, "the memory is bounded by the input");
}

std::string_view Input::bytes(std::size_t n_bytes) {
  const std::string_view out = in_.substr(0, n_bytes);
  in_.remove_prefix(out.size());
  return out;
}

std::uint8_t Input::byte() {
  const std::string_view one = bytes(1);
  return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one.front());
}

std::uint64_t Input::big_number() {
  std::uint64_t out = 0;
  for (int i = 0; i < 8; ++i) out = out << 8 | byte();
  return out;
}

std::uint32_t Input::number() {
  std::uint32_t out = 0;
  for (int i = 0; i < 4; ++i) out = out << 8 | byte();
  return out;
}

std::size_t Input::below(std::size_t n) { return byte() % n; }

Script& Script::byte(std::size_t value) {
  out_.push_back(static_cast<char>(value));
  return *this;
}

Script& Script::number(std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out_.push_back(static_cast<char>(value >> shift & 0xff));
  return *this;
}

Script& Script::big_number(std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out_.push_back(static_cast<char>(value >> shift & 0xff));
  return *this;
}

Script& Script::raw(std::string_view bytes) {
  out_.append(bytes);
  return *this;
}

}  // namespace drun::fuzz
