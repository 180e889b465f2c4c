// The results of a measurement, and their output: nccl-tests' table with six more columns, or its JSON with the same
// data. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/bound.h"
#include "bench/settings.h"

namespace drun::bench {

struct RankPlace {
  int rank = 0;
  int pid = 0;
  int local_rank = 0;
  std::string host;
  int device = 0;
  std::string device_info = "cpu";  // or the GPU's name
};

struct Heading {
  std::string version;
  std::string time;  // "2026-01-31 23:59:59"
  Settings settings;
  std::string nccl;  // "2.28.9 (/usr/lib/x86_64-linux-gnu/libnccl.so.2)"; empty: NCCL is not measured
  std::vector<RankPlace> ranks;
  Bound bound;
  std::string bound_text;                         // the bound in words
  std::optional<std::uint64_t> reduced_to_bytes;  // set if memory is too small for -e
};

// The figures of out-of-place calls, or of in-place calls.
struct Figures {
  double seconds = 0;  // one call, average of all ranks
  Bandwidth bandwidth;
  double p50_seconds = 0, p99_seconds = 0;  // of all calls, each timed by its slowest rank
  double percent = -1;                      // of the bound; negative: unknown
  std::optional<std::uint64_t> wrong;       // elements; nothing: not checked
};

struct Row {
  std::uint64_t n_bytes = 0, count = 0;
  std::string type, op;
  int root = -1;
  std::optional<Figures> out_of_place, in_place;  // nothing: not possible
};

struct Ending {
  std::uint64_t n_wrong = 0;     // measurements with wrong elements
  double average_bandwidth = 0;  // bus bandwidth over all measurements, bytes per second
  std::string time;
};

// Each function returns text to be written. Call begin() once, then row() for every row, then end() once.
class Report {
 public:
  virtual ~Report() = default;
  virtual std::string begin(const Heading& heading) = 0;
  virtual std::string row(const Row& row) = 0;
  virtual std::string end(const Ending& ending) = 0;
};

std::unique_ptr<Report> make_table();
std::unique_ptr<Report> make_json();

// Formats a number in `width` characters; larger numbers have fewer decimals.
std::string fit(double value, int width);

}  // namespace drun::bench
