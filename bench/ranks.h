// The ranks that take part, and the limits of their hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/bound.h"
#include "bench/device.h"
#include "bench/report.h"

namespace drun::bench {

// Turns a drun_status other than DRUN_OK into an error with libdrun's message.
Result<void> checked(int drun_status);

struct Ranks {
  std::vector<RankPlace> places;   // by rank
  std::vector<int> ranks_of_host;  // by host
  std::vector<std::size_t> host_of_rank;
  std::uint64_t max_bytes = 0;  // max size of one buffer on all ranks
  Bound bound;
  std::string bound_text;
};

// Collective: all ranks exchange their properties. If all are on one host and measure its memory, they also copy
// memory at once, for a moment, to measure its speed. `device`: this rank's GPU, whose memory is measured; nullptr:
// the host's memory is.
Result<Ranks> meet(const Device* device);

}  // namespace drun::bench
