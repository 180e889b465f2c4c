// The measurement itself, on one rank: all ranks go through the same rows together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bench/perform.h"
#include "bench/ranks.h"
#include "bench/report.h"

namespace drun::bench {

class Measurement {
 public:
  // The sizes in `settings` must fit into memory. All arguments must outlive this. `device`: nullptr, or the GPU
  // whose memory is measured.
  Measurement(const Settings& settings, const Ranks& ranks, const Device* device);
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  // Calls `show` with every row, on every rank. Fails if libdrun or `show` fails.
  using Show = std::function<Result<void>(const Row&)>;
  Result<void> run(const Show& show);

  std::uint64_t n_wrong() const { return n_wrong_; }  // measurements with wrong elements, the same on all ranks
  double average_bandwidth() const;

 private:
  Result<void> allocate();
  Result<void> series(Call call, const Show& show);  // all sizes
  Result<void> warm_up(Call call);
  Result<Row> one_size(const Call& call);
  // The bound for a row. If it is memory, its speed is measured with messages of this size.
  Result<Bound> bound_for(const Row& row);
  Result<Figures> measure(const Call& call, bool in_place, double n_bytes, const Bound& bound);
  Result<std::uint64_t> count_wrong(const Call& call, bool in_place);
  // Seconds of each of n_iterations calls, and the average of one call without waits in between.
  struct Times {
    std::vector<double> each;
    double average = 0;
  };
  Result<Times> time(const Call& call, bool in_place) const;
  Result<double> time_together(const Call& call, bool in_place) const;  // on a GPU: enqueues all calls, then waits
  Result<void> wait() const;                                            // for the work on the GPU
  Result<void> fill(const Call& call, const Pattern& pattern, bool in_place);

  const Settings& settings_;
  const Ranks& ranks_;
  const Device* device_;
  std::unique_ptr<char[]> send_, recv_;  // with a GPU: `send_` stages data between it and the host
  Buffers buffers_;
  std::uint64_t round_ = 0;
  std::uint64_t n_wrong_ = 0, n_measured_ = 0;
  double bandwidth_sum_ = 0;
};

}  // namespace drun::bench
