// Which hosts are at fault when some host has no address that its peers reach. Pure.
#pragma once

#include <vector>

#include "netdetect/tally.h"

namespace drun::netdetect {

// The fewest hosts, found greedily, without which every other one would have a good candidate: a host that reaches
// nobody spoils the addresses of all others, and they are not to be blamed. Ends early when more than half of the
// hosts are in it.
std::vector<int> find_guilty(int n_hosts, const Candidates& candidates, const Tally& tally);

}  // namespace drun::netdetect
