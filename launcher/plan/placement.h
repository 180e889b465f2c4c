// Which rank runs where. Ranks are packed host by host, in the order of the list.
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
  int cross_size = 0;  // how many hosts have this local rank
  std::string gpu;     // the only one that it is to see; "": drun leaves that alone
};

struct Placement {
  int size = 0;
  std::vector<RankPlace> ranks;   // by rank
  std::vector<int> host_indices;  // used host -> index into the input
  std::vector<int> local_sizes;   // by used host
};

// `np` 0 = all slots. Pure. Hosts that get no rank are left out of the job. Too few slots: Errc::kUsage that says how
// many there are and what to type.
Result<Placement> place(const std::vector<Host>& hosts, int np);

// The same workers on the same hosts, but `host` (an index among those that have a rank) is the first of them, with the
// first ranks; the others follow in their order.
Placement led_by(const Placement& placement, int host);

// With slots for `np` workers where there are fewer: all slots again and again, in their order, as far as a host's
// max_slots allows.
std::vector<Host> with_slots_for(std::vector<Host> hosts, int np);

}  // namespace drun::launcher
