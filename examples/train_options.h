// The command line options of train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "drun/training.hpp"

namespace example {

struct Options {
  int epochs = 30;
  double learning_rate = 0.2;
  std::size_t batch = 32;  // of all ranks together
  std::uint64_t seed = 1;
  std::string data;        // empty: the built-in digits
  std::string checkpoint;  // empty: none
  drun::Method method;     // of compression
  std::size_t bucket_bytes = drun::kBucketBytes;
  bool help = false;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Options parse_options(int argc, char** argv);  // throws UsageError
int print_usage();                             // returns 0

}  // namespace example
