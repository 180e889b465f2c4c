// Which hosts are at fault when not every two hosts can be connected. Pure.
#pragma once

#include <vector>

#include "netdetect/one_way.h"

namespace drun::netdetect {

// Hosts of which neither reached the other at any address, as far as they tried.
Pairs find_unconnected(const Tally& tally, const Directions& directions);

// The hosts without any candidate, then the fewest, found greedily, without which no pair would be left. Ends early
// when more than half of the hosts are in it.
std::vector<int> find_guilty(int n_hosts, const Candidates& candidates, const Pairs& pairs);

}  // namespace drun::netdetect
