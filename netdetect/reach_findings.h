// What the attempts of the hosts at each other's addresses mean, for `drun check`. Pure. docs/check.md explains each
// code.
#pragma once

#include <vector>

#include "netdetect/choose_most.h"
#include "netdetect/finding.h"

namespace drun::netdetect {

// Who can't connect to whom, and why; then interface_findings(). `gone`: hosts that were lost, of which nothing is
// said.
std::vector<Finding> reach_findings(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                                    const std::vector<AttemptResult>& results, const PartialChoice& most,
                                    const std::vector<int>& gone = {});

}  // namespace drun::netdetect
