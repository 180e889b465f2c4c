// The error when not every two hosts can be connected: who is at fault, what was tried, what came back. Pure.
#pragma once

#include <vector>

#include "base/error.h"
#include "netdetect/one_way.h"

namespace drun::netdetect {

// `pairs`: hosts between which no connection comes about. `guilty`: as find_guilty() says. `lacking`: hosts for which
// there was nothing to choose. One of the lists is not empty.
Error unreachable_error(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, const Tally& tally,
                        const Pairs& pairs, const std::vector<int>& guilty, const std::vector<int>& lacking);

}  // namespace drun::netdetect
