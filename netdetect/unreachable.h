// The error when a host has no address that its peers reach: who is at fault, what was tried, what came back. Pure.
#pragma once

#include <vector>

#include "base/error.h"
#include "netdetect/tally.h"

namespace drun::netdetect {

// `lacking`: the hosts that have no good candidate, at least one.
Error unreachable_error(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, const Tally& tally,
                        const std::vector<int>& lacking);

}  // namespace drun::netdetect
