// Finds the faulty hosts when some pairs of hosts can't be connected. Pure.
#pragma once

#include <vector>

#include "netdetect/asymmetric_reach.h"

namespace drun::netdetect {

// Pairs of hosts of which neither reached the other at any address, and at least one tried.
Pairs find_unconnected(const ReachabilityVotes& tally, const ReachabilityMatrix& directions);

// The hosts without any candidate, then a small set of hosts, found greedily, that covers all other pairs in `pairs`.
// Stops early when the result has more than half of the hosts.
std::vector<int> find_faulty_hosts(int n_hosts, const Candidates& candidates, const Pairs& pairs);

}  // namespace drun::netdetect
