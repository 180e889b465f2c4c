// Who takes part, and what their hosts can do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/bound.h"
#include "bench/device.h"
#include "bench/report.h"

namespace drun::bench {

// What libdrun said, as an error.
Result<void> checked(int drun_status);

struct Ranks {
  std::vector<RankPlace> places;   // by rank
  std::vector<int> ranks_of_host;  // by host
  std::vector<std::size_t> host_of_rank;
  std::uint64_t max_bytes = 0;  // that one buffer may have everywhere
  Bound bound;
  std::string bound_text;
};

// `device`: this rank's GPU, whose memory is measured; nullptr: the host's.
// Collective: all ranks tell each other, and if they are all on one host they copy memory at once, for a moment, to see
// how fast it is.
Result<Ranks> meet(const Device* device);

}  // namespace drun::bench
