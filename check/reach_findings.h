// Findings of `drun check` from the attempts of the hosts at each other's addresses. Pure. docs/check.md explains
// each code.
#pragma once

#include <vector>

#include "check/finding.h"
#include "check/purpose.h"
#include "netdetect/choose_subset.h"

namespace drun::check {

// Hosts that can't connect to each other, and why; then interface_findings(). `gone`: hosts that were lost, which get
// no findings. `purpose`: the kind of program that runs on the hosts; a host that connects in one direction only is a
// failure if that program needs both.
std::vector<Finding> reach_findings(const std::vector<netdetect::HostInterfaces>& hosts,
                                    const netdetect::Candidates& candidates,
                                    const std::vector<netdetect::AttemptResult>& results,
                                    const netdetect::PartialChoice& most, const std::vector<int>& gone = {},
                                    Purpose purpose = Purpose::kAll);

}  // namespace drun::check
