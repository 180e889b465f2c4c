// Which interface each host got and why, and which look usable but are not, for `drun check`. Pure.
#pragma once

#include <vector>

#include "netdetect/choose_most.h"
#include "netdetect/duplicates.h"
#include "netdetect/finding.h"
#include "netdetect/tally.h"

namespace drun::netdetect {

std::vector<Finding> interface_findings(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                                        const Tally& tally, const PartialChoice& most,
                                        const std::vector<SharedAddress>& shared, const std::vector<int>& gone);

}  // namespace drun::netdetect
