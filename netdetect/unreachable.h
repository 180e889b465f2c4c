// Builds the error for pairs of hosts that can't be connected: faulty hosts, addresses tried, outcomes. Pure.
#pragma once

#include <vector>

#include "base/error.h"
#include "netdetect/one_way.h"

namespace drun::netdetect {

// `pairs`: hosts that can't connect to each other. `guilty`: the result of find_guilty(). `lacking`: hosts for which
// there was no candidate to choose. At least one of the lists must not be empty.
Error unreachable_error(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, const Tally& tally,
                        const Pairs& pairs, const std::vector<int>& guilty, const std::vector<int>& lacking);

}  // namespace drun::netdetect
