// Fuzz targets: each is a function of arbitrary bytes that must neither crash nor break one of its expectations.
// docs/testing.md, "Fuzzing", says how they run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drun::fuzz {

using Run = void (*)(std::string_view bytes);
using Seeds = std::vector<std::string> (*)();

// A target adds itself to targets() when the program starts.
struct Target {
  Target(const char* its_name, Run its_run, Seeds its_seeds);
  const char* name;  // of its source, and of its folder in tests/fuzz/corpus
  Run run;
  Seeds seeds;  // valid inputs, from which the fuzzer begins
};
const std::vector<const Target*>& targets();

// Ends the process with `what` if it does not hold.
void expect(bool holds, const char* what);

// Bytes that are allocated now, as AddressSanitizer counts them; 0 without it.
std::size_t allocated_bytes();
// Expects that decoding `n_input` bytes has allocated at most a multiple of them since `before`, and `n_allowed` bytes.
void expect_bounded_memory(std::size_t before, std::size_t n_input, std::size_t n_allowed = 0);

// Takes decisions from the input. Reads past its end give zeros.
class Input {
 public:
  explicit Input(std::string_view bytes) : in_(bytes) {}
  std::uint8_t byte();
  std::uint32_t number();            // 4 bytes
  std::uint64_t big_number();        // 8 bytes
  std::size_t below(std::size_t n);  // 0 to n-1; n is 1 to 256
  std::string_view bytes(std::size_t n_bytes);
  std::string_view text() { return bytes(byte()); }  // up to 255 bytes behind their length
  std::string_view rest() { return bytes(in_.size()); }
  bool empty() const { return in_.empty(); }

 private:
  std::string_view in_;
};

// The seed for an Input: what its functions will return.
class Script {
 public:
  Script& byte(std::size_t value);
  Script& number(std::uint32_t value);
  Script& big_number(std::uint64_t value);
  Script& text(std::string_view bytes) { return byte(bytes.size()).raw(bytes); }
  Script& raw(std::string_view bytes);
  operator std::string() const { return out_; }

 private:
  std::string out_;
};

}  // namespace drun::fuzz
