// What the attempts of the hosts at each other's addresses mean, for `drun check`. Pure. docs/check.md explains each
// code.
#pragma once

#include <vector>

#include "check/finding.h"
#include "check/purpose.h"
#include "netdetect/choose_most.h"

namespace drun::check {

// Who can't connect to whom, and why; then interface_findings(). `gone`: hosts that were lost, of which nothing is
// said. `purpose`: what runs on the hosts; a host that connects in one direction only is a failure for what can't work
// with it.
std::vector<Finding> reach_findings(const std::vector<netdetect::HostInterfaces>& hosts,
                                    const netdetect::Candidates& candidates,
                                    const std::vector<netdetect::AttemptResult>& results,
                                    const netdetect::PartialChoice& most, const std::vector<int>& gone = {},
                                    Purpose purpose = Purpose::kAll);

}  // namespace drun::check
