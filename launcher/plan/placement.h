// Assigns ranks to hosts. Ranks are packed host by host, in the order of the list.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/host.h"

namespace drun::launcher {

struct RankPlace {
  int rank = 0;
  int host = 0;  // index of the host among those that have at least one rank
  int local_rank = 0;
  int local_size = 0;
  int cross_rank = 0;  // index among the hosts that have this local rank
  int cross_size = 0;  // number of hosts that have this local rank
  std::string gpu;     // the only GPU that the rank may see; "": drun does not restrict its GPUs
};

struct Placement {
  int size = 0;
  std::vector<RankPlace> ranks;   // by rank
  std::vector<int> host_indices;  // used host -> index into the input
  std::vector<int> local_sizes;   // by used host
};

// Pure. `np` 0 means all slots. Hosts that get no rank are left out of the job. If there are too few slots, fails with
// Errc::kUsage, the number of slots and what to type.
Result<Placement> place(const std::vector<Host>& hosts, int np);

// The same workers on the same hosts, but with `host` (an index among the hosts that have a rank) first, with the first
// ranks. The other hosts follow in their order.
Placement led_by(const Placement& placement, int host);

// Adds slots until there are enough for `np` workers. Each pass over the hosts, in their order, adds each host's own
// slots again, up to its max_slots.
std::vector<Host> with_slots_for(std::vector<Host> hosts, int np);

}  // namespace drun::launcher
