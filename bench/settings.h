// The settings of a `drun bench`: drun parses them from the command line and passes them to the workers as words.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/kind.h"
#include "runtime/include/drun/drun.h"

namespace drun::bench {

constexpr int kAllRoots = -1;

// kCpu: host memory, moved by libdrun. kNccl: GPU memory, moved by NCCL; every rank needs a GPU.
enum class Backend { kCpu, kNccl };

// The defaults are those of nccl-tests.
struct Settings {
  Kind kind = Kind::kAllReduce;
  std::vector<drun_op> ops = {DRUN_SUM};
  std::vector<drun_dtype> dtypes = {DRUN_FLOAT32};
  int root = 0;  // or kAllRoots
  std::uint64_t min_bytes = 32u << 20, max_bytes = 32u << 20;
  std::uint64_t step_bytes = 1u << 20;
  std::uint64_t factor = 1;  // above 1: multiplies the size, and step_bytes is unused
  int n_iterations = 20;
  int n_warmups = 1;
  int n_checks = 1;  // 0: results are not checked
  bool json = false;
  Backend backend = Backend::kCpu;
  bool registers = false;  // registers the buffers with NCCL
};

// "8", "1.5K", "128M", "2g": binary units. Errors have no subject.
Result<std::uint64_t> parse_size(std::string_view text);
// nccl-tests' name or libdrun's ("float", "f32"), or "all".
Result<std::vector<drun_dtype>> parse_dtypes(std::string_view text);
// "sum", ..., or "all".
Result<std::vector<drun_op>> parse_ops(std::string_view text);
bool is_op_name(std::string_view text);
// A rank, or "all".
Result<int> parse_root(std::string_view text);

// "cpu" or "nccl".
Result<Backend> parse_backend(std::string_view text);

std::string dtype_name(drun_dtype dtype);  // "float", as nccl-tests has it
std::string op_name(drun_op op);
std::size_t element_size(drun_dtype dtype);

// Checks that the settings make sense and that the number of sizes is bounded. The subject of the error is the
// option.
Result<void> check(const Settings& settings);
// From min_bytes to max_bytes. Precondition: check() has passed.
std::vector<std::uint64_t> sizes(const Settings& settings);
// For the warm-up: from min_bytes to max_bytes, each twice the one before.
std::vector<std::uint64_t> warmup_sizes(const Settings& settings);

// Settings as words of the worker's argv, and back. They differ only in the collective. Precondition: there is at
// least one.
std::vector<std::string> to_words(const std::vector<Settings>& settings);
constexpr const char* kNcclWord = "backend=nccl";  // one of the words
Result<std::vector<Settings>> from_words(const std::vector<std::string>& words);

}  // namespace drun::bench
