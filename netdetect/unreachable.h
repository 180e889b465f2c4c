// Builds the error for pairs of hosts that can't be connected: faulty hosts, addresses tried, outcomes. Pure.
#pragma once

#include <vector>

#include "base/error.h"
#include "netdetect/asymmetric_reach.h"

namespace drun::netdetect {

// `pairs`: hosts that can't connect to each other. `faulty`: the result of find_faulty_hosts(). `lacking`: hosts for
// which there was no candidate to choose. At least one of the lists must not be empty.
Error unreachable_error(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                        const ReachabilityVotes& tally, const Pairs& pairs, const std::vector<int>& faulty,
                        const std::vector<int>& lacking);

}  // namespace drun::netdetect
